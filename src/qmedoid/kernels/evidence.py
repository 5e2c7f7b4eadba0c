r"""Raw columns to the outputs of an evidence model and to nearest medoids, in one pass over the rows.

.. math::

   t_k(x) = b_k + \sum_j w_{jk}\,\bigl(\varphi_j(D_j(x)) - c_j\bigr), \qquad
   D_j^2(x) = \sum_{f\in g_j} u_f\,(v_f(x) - v_f(m_j))^2

with v a column scaled by rank (interpolated between knots) or standardised and clipped, and φ the square, the distance
or the nearness exp(−D/ℓ). A plan gathers what can be: squares are a polynomial of degree two of each scaled column;
terms of one column and of equal values are one term; a distance that several terms look at is measured once.

The table is read where it lies, as by :mod:`qmedoid.kernels.scoring`, and a row's result depends on that row alone,
bit for bit. A row is left *undecided* (medoid −1, numbers NaN) when a column that is read holds NaN, an infinity or a
number beyond the largest that is allowed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.exceptions import DataError
from qmedoid.kernels._backend import compiled
from qmedoid.kernels._evidence_plan import ColumnGroup, EvidencePlan, make_plan
from qmedoid.kernels._threads import thread_count
from qmedoid.kernels.scoring import NearestMedoids, Table, _chunks, _converted, _is_readable, _part, row_part

__all__ = ["ColumnGroup", "EvidencePlan", "make_plan", "measure", "outputs", "outputs_and_medoids"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

# Rows per call of a kernel: small enough to share between threads and to convert other types a piece at a time.
_CHUNK_ROWS = 4096
# Numbers per chunk of a table that has to be converted, or that the twin works on.
_CHUNK_NUMBERS = 2**19
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
            _part(self.outputs, rows), _part(self.distance, rows), _part(self.angle, rows), _part(self.nearest, rows)
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
    out = np.empty((_n_rows(table, plan), len(plan.intercepts)))
    _run(table, plan, Results(out), threads)
    return out


def outputs_and_medoids(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> tuple[Array, Codes]:
    """Outputs, shape (n, K), and the index of the nearest medoid of each class, shape (n, C); NaN and −1 undecided."""
    n = _n_rows(table, plan)
    out, nearest = np.empty((n, len(plan.intercepts))), np.empty((n, len(plan.class_offsets) - 1), dtype=np.intp)
    _run(table, plan, Results(out, nearest=nearest), threads)
    return out, nearest


def measure(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> tuple[Array, NearestMedoids]:
    """Outputs, and distance and angle to the nearest medoid of each class with its index; NaN and −1 undecided."""
    n = _n_rows(table, plan)
    out, shape = np.empty((n, len(plan.intercepts))), (n, len(plan.class_offsets) - 1)
    found = NearestMedoids(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.intp))
    _run(table, plan, Results(out, found.distance, found.angle, found.medoid), threads)
    return out, found


def _n_rows(table: Table, plan: EvidencePlan) -> int:
    """Number of rows of a table, which is checked against the plan."""
    is_array = isinstance(table, np.ndarray)
    if isinstance(table, np.ndarray) and table.ndim != 2:
        raise DataError(f"The table has shape {table.shape}: pass rows as a 2-D array, shape (n, {plan.n_columns}).")
    found = table.shape[1] if isinstance(table, np.ndarray) else len(table)
    lengths = {len(table)} if is_array else {len(column) for column in table}
    if found != plan.n_columns:
        raise DataError(
            f"The table has {found} columns; the model was fitted on {plan.n_columns}. "
            "Pass the same columns in the same order (an array of rows, or a sequence of columns)."
        )
    if len(lengths) > 1:
        raise DataError(f"The columns have between {min(lengths)} and {max(lengths)} rows: all need the same number.")
    return lengths.pop()


def _run(table: Table, plan: EvidencePlan, out: Results, threads: int | None) -> None:
    """Judge a table chunk by chunk, on several threads where that pays."""
    n = len(table) if isinstance(table, np.ndarray) else len(table[0])
    kernel = compiled("evidence")
    readable = kernel is not None and _is_readable(table)

    def judge_chunk(rows: slice) -> None:
        part = row_part(table, rows)
        if kernel is None:
            from qmedoid.kernels import _evidence_numpy

            _evidence_numpy.judge(part, plan, out.part(rows))
        else:
            kernel.judge(part if readable else _converted(part), plan, *out.part(rows))

    chunk = _CHUNK_ROWS if readable else max(64, min(_CHUNK_ROWS, _CHUNK_NUMBERS // plan.n_columns))
    workers = 1 if n < _ROWS_WORTH_A_THREAD else min(thread_count(threads), -(-n // chunk))
    if workers == 1:
        for rows in _chunks(n, chunk):
            judge_chunk(rows)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(judge_chunk, _chunks(n, chunk)):
            pass
