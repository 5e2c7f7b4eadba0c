"""Checks an installed qmedoid: ``python tests/check_wheel.py``, in an environment that has the wheel and no more.

``--without-kernels`` expects an installation that was made without a C compiler.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_iris

import qmedoid

CHECKOUT = Path(__file__).resolve().parents[1]


def called(*words: str) -> "subprocess.CompletedProcess[str]":
    """What a command of the installed program left."""
    return subprocess.run([sys.executable, "-m", "qmedoid", *words], capture_output=True, text=True, check=False)


def main() -> None:
    """Fit, predict, save, load and explain, with the kernels that are expected, and without the experiments."""
    place = Path(qmedoid.__file__).resolve()
    kernels = called("--version").stdout.partition("kernels: ")[2].strip()
    assert CHECKOUT / "src" not in place.parents, f"{place} is the checkout and not what was installed."
    wanted = "NumPy" if "--without-kernels" in sys.argv else "compiled"
    assert kernels == wanted or kernels.startswith(f"{wanted}:"), f"The kernels are {kernels}, and not {wanted}."
    X, y = load_iris(return_X_y=True)
    model = qmedoid.MedoidClassifier(random_state=0).fit(X[::2], y[::2])
    accuracy = model.score(X[1::2], y[1::2])
    assert accuracy > 0.9, f"The accuracy on iris is {accuracy}."
    with tempfile.TemporaryDirectory() as folder:
        saved = qmedoid.load(model.save(Path(folder) / "iris.qmedoid"))
    assert (saved.predict_proba(X) == model.predict_proba(X)).all()
    why = saved.explain(X, row=0)
    total = sum(column["contribution"] for column in why["columns"]) + sum(why["terms"].values())
    assert abs(total - why["margin"]) < 1e-9
    done = called("reproduce")
    assert done.returncode == 1, "The experiments are in the wheel."
    assert "not part of the installed package" in done.stderr, done.stderr
    print(f"qmedoid {qmedoid.__version__}, kernels: {kernels}, accuracy {accuracy:.3f}")
    print("decisions", "".join(map(str, saved.predict(X))))


if __name__ == "__main__":
    main()
