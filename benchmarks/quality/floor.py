"""How small a calibration error can be: that of perfect probabilities, and of perfect scores with a learnt curve.

Run as ``QMEDOID_DATA=... python -m benchmarks.quality.floor`` (some minutes). Ours is fitted to tuning splits of every
set. Then labels of its fit rows and test rows are drawn from its own probabilities, which are right by that. Judged on
the drawn labels, these probabilities show what chance does, and those of a calibration that is learnt from the drawn
labels of the fit rows show what is left to a model whose scores are perfect. No real label of a test row is looked at.
"""

import numpy as np
from benchmarks._timing import RESULTS, write_table
from benchmarks.quality.judging import calibration
from benchmarks.quality.protocol import FIRST_SEED, encode_split
from benchmarks.quality.tables import available, load_table

from qmedoid.arrays import Array, Codes
from qmedoid.calibration.curve import Calibration
from qmedoid.calibration.fit import fit_calibration
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence

SPLITS, DRAWS = 3, 4


def ratios(name: str, seed: int) -> tuple[list[float], list[float], int, int]:
    """Calibration errors in units of chance, of known and of learnt probabilities, and numbers of rows."""
    data = encode_split(load_table(name), seed)
    fitted = fit_evidence(data.X, data.y, data.n_classes, EvidenceSettings(), seed)
    held_out, scores = fitted.out_of_fold, fitted.model.scores(data.X_test)
    truth = fit_calibration(held_out, data.y, "curve")
    rng = np.random.default_rng(seed)
    known, learnt = [], []
    for _ in range(DRAWS):
        y, y_test = drawn(truth, held_out, rng), drawn(truth, scores, rng)
        for found, curve in ((known, truth), (learnt, fit_calibration(held_out, y, "curve"))):
            error = calibration(y_test, np.exp(log_softmax(curve.apply(scores))))
            found.append(error["ece"] / error["chance_ece"])
    return known, learnt, len(held_out), len(scores)


def drawn(calibration: Calibration, scores: Array, rng: np.random.Generator) -> Codes:
    """Classes by chance, as likely as a calibration says."""
    chances = np.exp(log_softmax(calibration.apply(scores))).cumsum(axis=1)
    classes: Codes = (rng.random((len(scores), 1)) > chances[:, :-1]).sum(axis=1)
    return classes


def main() -> None:
    rows: list[dict[str, object]] = []
    for name in available()[0]:
        found = [ratios(name, FIRST_SEED["tuning"] + place) for place in range(SPLITS)]
        known, learnt = (np.concatenate([one[part] for one in found]) for part in (0, 1))
        rows.append(
            {
                "set": name,
                "fit rows": found[0][2],
                "test rows": found[0][3],
                "known": f"{known.mean():.2f}",
                "learnt": f"{learnt.mean():.2f}",
                "deviation of a split": f"{learnt.std():.2f}",
            }
        )
        print(f"{name}: {learnt.mean():.2f}", flush=True)
    write_table(RESULTS / "quality" / "floor.csv", "python -m benchmarks.quality.floor", rows)


if __name__ == "__main__":
    main()
