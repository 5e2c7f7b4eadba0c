"""Exact medoid: core-seconds against SciPy's cdist, banditpam and a float32 matrix product with verification.

Run ``python benchmarks/speed_medoid.py``. cdist is timed on a block of rows and scaled up where all rows would take
more than a minute; the table says where. banditpam is a randomized method: ``same`` says whether it found the medoid.
"""

import argparse

import numpy as np
from scipy.spatial.distance import cdist

from _timing import RESULTS, core_seconds, write_table
from qmedoid.geometry.medoids import TIE_TOLERANCE, medoid_index
from qmedoid.kernels.backend import compiled

CDIST_ROWS = 1000
PRODUCT_NUMBERS = 2**22  # in a block of the product; the quickest of the sizes tried


def gaussian(n, d, rng):
    return rng.normal(size=(n, d))


def heavy_tails(n, d, rng):
    return rng.standard_t(3, size=(n, d))


def two_clusters(n, d, rng):
    X = rng.normal(size=(n, d))
    X[: n // 2, 0] += 50.0
    return X


def sphere(n, d, rng):
    """Rows at equal distance from the centre: the hardest case, where every row is nearly a medoid."""
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def cdist_totals(X, rows):
    """Sum cdist in blocks that stay in cache, which is twice as quick as one large block."""
    step = max(1, 2**18 // len(X))
    return np.concatenate([cdist(X[rows[i : i + step]], X).sum(axis=1) for i in range(0, len(rows), step)])


def cdist_block(X):
    return cdist_totals(X, np.arange(CDIST_ROWS))


def cdist_medoid(X):
    return int(np.argmin(cdist_totals(X, np.arange(len(X)))))


def product_medoid(X):
    """Sum float32 distances from |a|^2 + |b|^2 - 2ab, then sum the rows that rounding leaves open in float64."""
    Y = (X - X.mean(axis=0)).astype(np.float32)
    squares = np.einsum("ij,ij->i", Y, Y)
    totals = np.empty(len(X))
    step = max(1, PRODUCT_NUMBERS // len(X))
    for start in range(0, len(X), step):
        block = Y[start : start + step] @ Y.T
        block *= -2.0
        block += squares
        block += squares[start : start + step, None]
        np.maximum(block, 0.0, out=block)
        np.sqrt(block, out=block)
        totals[start : start + step] = block.sum(axis=1)
    # What rounding moves a total by in practice; the worst case would leave nearly all rows open.
    open_rows = np.flatnonzero(totals <= totals.min() * (1 + 1e-5))
    exact = cdist_totals(X, open_rows)
    return int(open_rows[np.argmax(exact <= exact.min() * (1 + TIE_TOLERANCE))])


def banditpam_medoid(X):
    from banditpam import KMedoids

    model = KMedoids(n_medoids=1)
    model.fit(X, "L2")
    return int(np.ravel(model.medoids)[0])


def compare(data, n, d, rivals, repeats):
    X = data(n, d, np.random.default_rng(0))
    ours = core_seconds(lambda: medoid_index(X), max(5, repeats))
    rows = [row(data, n, d, "qmedoid", ours.core, ours.wall, 1.0, "yes", f"{max(5, repeats)} runs")]
    for name, rival in rivals.items():
        timing = core_seconds(lambda rival=rival: rival(X), repeats)
        scale = n / CDIST_ROWS if rival is cdist_block else 1.0
        note = f"scaled up from {CDIST_ROWS} rows" if scale > 1 else f"{repeats} runs"
        same = "" if scale > 1 else "yes" if timing.result == ours.result else "no"
        core, wall = timing.core * scale, timing.wall * scale
        rows.append(row(data, n, d, name, core, wall, core / ours.core, same, note))
    return rows


def row(data, n, d, method, core, wall, ratio, same, note):
    return {
        "data": data.__name__,
        "n": n,
        "d": d,
        "method": method,
        "core_s": core,
        "wall_s": wall,
        "times_ours": ratio,
        "same": same,
        "note": note,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each rival (median)")
    repeats = parser.parse_args().repeats
    if compiled("medoid") is None:
        print("The compiled kernel was not built: these are the times of the NumPy twin.")
    everyone = {"scipy cdist": cdist_medoid, "banditpam": banditpam_medoid, "float32 product": product_medoid}
    large = {**everyone, "scipy cdist": cdist_block}
    product = {"float32 product": product_medoid}
    rows = []
    for data in (gaussian, heavy_tails):
        rows += compare(data, 10_000, 30, everyone, repeats)
        rows += compare(data, 50_000, 30, large, repeats)
    for data in (two_clusters, sphere):
        rows += compare(data, 10_000, 30, product, repeats)
        rows += compare(data, 50_000, 30, product, repeats)
    write_table(
        RESULTS / "speed_medoid.csv", "python benchmarks/speed_medoid.py", rows, ("numpy", "scipy", "banditpam")
    )


if __name__ == "__main__":
    main()
