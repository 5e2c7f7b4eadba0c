"""Core time of common tasks with this source tree and with another one, such as an earlier commit, in turns.

Writes ``benchmarks/results/speed_against.csv``. Both trees need their compiled kernels::

    git worktree add ../before COMMIT
    cd ../before && PYTHONPATH=src python setup.py build_ext --inplace && cd -
    PYTHONPATH=. python benchmarks/speed_against.py ../before

Every task runs in a process of its own that imports one of the trees, on one thread per library; the two trees take
turns, so that whatever else the machine does meets both. A figure is the median over the rounds of core seconds; the
ratio is that of the other tree divided by this one: above 1, this tree is faster. A task repeats what takes
milliseconds until it has run for some tenths of a second.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks._timing import RESULTS, write_table

TREE = Path(__file__).resolve().parent.parent
START = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
folder = sys.argv[1]
def measure(run, times=1):
    run()
    begun = time.process_time()
    for _ in range(times):
        run()
    print((time.process_time() - begun) / times)
"""
LOAD = START + 'import qmedoid\nmodel = qmedoid.load(folder + "/model.qmedoid")\n'
FIT = """
import qmedoid
from sklearn.datasets import load_breast_cancer, make_classification
made = lambda n, classes: make_classification(n, 15, n_informative=8, n_classes=classes, flip_y=0.1, random_state=0)
"""
TASKS = {
    "fit: 569 rows, 2 classes": START
    + FIT
    + "X, y = load_breast_cancer(return_X_y=True)\nmeasure(lambda: qmedoid.MedoidClassifier(random_state=0).fit(X, y))",
    "fit: 2,000 rows, 2 classes": START
    + FIT
    + "X, y = made(2000, 2)\nmeasure(lambda: qmedoid.MedoidClassifier(random_state=0).fit(X, y))",
    "fit: 2,000 rows, 4 classes": START
    + FIT
    + "X, y = made(2000, 4)\nmeasure(lambda: qmedoid.MedoidClassifier(random_state=0).fit(X, y))",
    "fit: evidence alone, 2,000 rows": START
    + FIT
    + "X, y = made(2000, 2)\nmeasure(lambda: qmedoid.EvidenceClassifier(random_state=0).fit(X, y))",
    "fit: nearest medoid, 2,000 rows": START
    + FIT
    + "X, y = made(2000, 2)\nmeasure(lambda: qmedoid.NearestMedoidClassifier(random_state=0).fit(X, y))",
    "predict_proba: 20,000 rows": LOAD
    + 'table = dict(np.load(folder + "/table.npz"))\nmeasure(lambda: model.predict_proba(table), 3)',
    "predict_proba: one row": LOAD
    + 'table = {k: v[:1] for k, v in np.load(folder + "/table.npz").items()}\n'
    + "measure(lambda: model.predict_proba(table), 300)",
    "explain: one row": LOAD
    + 'table = {k: v[:50] for k, v in np.load(folder + "/table.npz").items()}\n'
    + "measure(lambda: model.explain(table, row=3), 20)",
    "load a model": LOAD + 'measure(lambda: qmedoid.load(folder + "/model.qmedoid"), 30)',
    "score a CSV file of 100,000 rows": START
    + 'import contextlib, io\nfrom qmedoid.cli import main\ndef run():\n    sys.argv = ["qmedoid", "score", folder + '
    + '"/model.qmedoid", folder + "/table.csv", "-o", folder + "/out.csv", "--force"]\n'
    + "    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n        main()\n"
    + "measure(run)",
    "qmedoid --help, with the start": 'import sys, time\nsys.argv = ["qmedoid", "--help"]\nimport contextlib, io\n'
    + "from qmedoid.cli import main\nwith contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
    + "    main()\nprint(time.process_time())",
}
FIRST_MODEL = START + (
    "import csv, qmedoid\n"
    "rng = np.random.default_rng(0)\n"
    "n = 100_000\n"
    'table = {f"x{k}": np.round(rng.normal(size=n), 3) for k in range(10)}\n'
    'table["kind"] = np.array(list("abcd"))[rng.integers(4, size=n)]\n'
    'y = np.where(table["x0"] + table["x1"] ** 2 + (table["kind"] == "a") + rng.normal(size=n) > 1.5, "yes", "no")\n'
    'np.savez(folder + "/table.npz", **{name: cells[:20_000] for name, cells in table.items()})\n'
    'with open(folder + "/table.csv", "w", newline="") as file:\n'
    "    writer = csv.writer(file)\n"
    "    writer.writerow(table)\n"
    "    writer.writerows(zip(*table.values()))\n"
    "model = qmedoid.MedoidClassifier(random_state=0).fit({k: v[:2000] for k, v in table.items()}, y[:2000])\n"
    'model.save(folder + "/model.qmedoid")\n'
)


def run(tree: Path, code: str, folder: Path) -> str:
    """Run code in a process that imports the package of a source tree; what it printed last."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = os.pathsep.join([str(tree / "src"), str(tree)])
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env=os.environ | threads | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"A task failed with {tree}:\n{done.stderr}")
    return done.stdout.strip().rpartition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the other source tree, with compiled kernels")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    trees = {"other": arguments.other.resolve(), "this": TREE}
    with tempfile.TemporaryDirectory() as parent:
        folders = {name: Path(parent) / name for name in trees}
        for name, tree in trees.items():
            folders[name].mkdir()
            run(tree, FIRST_MODEL, folders[name])
        seconds: dict[tuple[str, str], list[float]] = {(task, name): [] for task in TASKS for name in trees}
        for round_ in range(arguments.rounds):
            for task, code in TASKS.items():
                for name in sorted(trees, reverse=bool(round_ % 2)):
                    seconds[task, name].append(float(run(trees[name], code, folders[name])))
    rows = []
    for task in TASKS:
        other, this = (statistics.median(seconds[task, name]) for name in ("other", "this"))
        ratios = [a / b for a, b in zip(seconds[task, "other"], seconds[task, "this"], strict=True)]
        rows.append(
            {
                "task": task,
                "core seconds before": f"{other:.3g}",
                "core seconds after": f"{this:.3g}",
                "ratio": f"{other / this:.2f}",
                "least and largest ratio": f"{min(ratios):.2f} to {max(ratios):.2f}",
            }
        )
    write_table(RESULTS / "speed_against.csv", "PYTHONPATH=. python benchmarks/speed_against.py ../before", rows)


if __name__ == "__main__":
    main()
