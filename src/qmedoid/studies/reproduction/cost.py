"""What the cells took: seconds and memory, method by method."""

from collections.abc import Mapping

from qmedoid.reporting.document import Column, Table, Value
from qmedoid.studies.reproduction.results import Results


def cost_table(results: Results, titles: Mapping[str, str]) -> Table:
    """Cells, seconds and peak memory of every method on every data set."""
    rows: list[list[Value]] = []
    for data, title in titles.items():
        for method in results.methods(data):
            own = [result for cell, result in results.by_cell.items() if (cell.data, cell.method) == (data, method)]
            seconds = [float(result["seconds"]) for result in own]
            peaks = [float(result["peak_mb"]) for result in own if result.get("peak_mb") is not None]
            mean = sum(seconds) / len(seconds)
            rows.append([title, method, len(own), mean, max(seconds), sum(seconds), max(peaks, default=None)])
    columns = [Column("data"), Column("method"), Column("cells")]
    columns += [Column(name, "seconds of a cell", digits=2) for name in ("mean", "most")]
    columns += [Column("seconds in all", digits=1), Column("peak of its process, MB", digits=0)]
    return Table(
        "cost",
        "What it took",
        columns,
        rows,
        "Wall time of fitting, scoring and judging, one thread each, with as many cells side by side as there were "
        "processes. A process runs many cells: its peak is that of the largest so far.",
    )
