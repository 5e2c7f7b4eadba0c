r"""Raw columns to the outputs of an evidence model and to nearest medoids, in one pass over the rows.

.. math::

   t_k(x) = b_k + \sum_j w_{jk}\,\bigl(\varphi_j(D_j(x)) - c_j\bigr), \qquad
   D_j^2(x) = \sum_{f\in g_j} u_f\,(v_f(x) - v_f(m_j))^2

with v a column scaled by rank (interpolated between knots) or standardized and clipped, and φ the square, the distance
or the nearness exp(−D/ℓ). A plan gathers what can be: squares are a polynomial of degree two of each scaled column;
terms of one column and of equal values are one term; a distance that several terms look at is measured once.

The table is read where it lies, as by :mod:`qmedoid.kernels.scoring`, and a row's result depends on that row alone,
bit for bit. A row is left *undecided* (medoid −1, numbers NaN) when a column that is read holds NaN, an infinity or a
number beyond the largest that is allowed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.kernels._backend import compiled
from qmedoid.kernels._evidence_plan import ColumnGroup, EvidencePlan, make_plan
from qmedoid.kernels._tables import NearestMedoids, Table, in_chunks, result_part, row_count

__all__ = ["ColumnGroup", "EvidencePlan", "make_plan", "measure", "outputs", "outputs_and_medoids"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# Rows per call of a kernel: small enough to share between threads and to convert other types a piece at a time.
_CHUNK_ROWS = 4096
# Below this many rows a second thread costs more than it brings.
_ROWS_WORTH_A_THREAD = 1000


class Results(NamedTuple):
    """Arrays to be filled, row by row; None where a result is not wanted."""

    outputs: Array | None = None
    distance: Array | None = None
    angle: Array | None = None
    nearest: Codes | None = None

    def part(self, rows: slice) -> "Results":
        """The same results for some of the rows."""
        return Results(
            result_part(self.outputs, rows),
            result_part(self.distance, rows),
            result_part(self.angle, rows),
            result_part(self.nearest, rows),
        )


def outputs(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> Array:
    """Outputs t of every row, shape (n, K); NaN for undecided rows.

    Parameters
    ----------
    table : ndarray of shape (n, M), or sequence of M arrays of shape (n,)
        Raw rows, or raw columns. float64 and float32 are read in place; other types are converted piece by piece.
        Arithmetic is in double precision for all of them.
    plan : EvidencePlan
    threads : int or None
        None uses ``QMEDOID_THREADS`` if set, else the cores this process may run on; short tables take one.
    """
    out = np.empty((row_count(table, plan.n_columns), len(plan.intercepts)))
    _run(table, plan, Results(out), threads)
    return out


def outputs_and_medoids(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> tuple[Array, Codes]:
    """Outputs, shape (n, K), and the index of the nearest medoid of each class, shape (n, C); NaN and −1 undecided."""
    n = row_count(table, plan.n_columns)
    out, nearest = np.empty((n, len(plan.intercepts))), np.empty((n, len(plan.class_offsets) - 1), dtype=np.intp)
    _run(table, plan, Results(out, nearest=nearest), threads)
    return out, nearest


def measure(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> tuple[Array, NearestMedoids]:
    """Outputs, and distance and angle to the nearest medoid of each class with its index; NaN and −1 undecided."""
    n = row_count(table, plan.n_columns)
    out, shape = np.empty((n, len(plan.intercepts))), (n, len(plan.class_offsets) - 1)
    found = NearestMedoids(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.intp))
    _run(table, plan, Results(out, found.distance, found.angle, found.medoid), threads)
    return out, found


def _run(table: Table, plan: EvidencePlan, out: Results, threads: int | None) -> None:
    """Judge a table chunk by chunk, on several threads where that pays."""
    kernel = compiled("evidence")

    def judge_chunk(part: Table, rows: slice) -> None:
        if kernel is None:
            from qmedoid.kernels import _evidence_numpy

            _evidence_numpy.judge(part, plan, out.part(rows))
        else:
            kernel.judge(part, plan, *out.part(rows))

    in_chunks(
        judge_chunk, table, compiled=kernel is not None, chunk_rows=_CHUNK_ROWS,
        rows_worth_a_thread=_ROWS_WORTH_A_THREAD, threads=threads,
    )  # fmt: skip
