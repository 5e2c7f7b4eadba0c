"""Trees of comparisons in SQL: nested cases."""

from collections.abc import Mapping

from qmedoid.export.sql.dialects import total
from qmedoid.export.sql.stages import Stages
from qmedoid.kernels.trees import N_NODES
from qmedoid.methods.comparisons.part import ComparisonsPart


def write(
    model: ComparisonsPart, stages: Stages, encoded: Mapping[int, str], counts: bool
) -> tuple[list[str], list[str]]:
    """Names of the K outputs, if they count; there are no medoids."""
    if not counts:
        return [], []
    number, names = stages.dialect.number, list[str]()
    columns, thresholds, values = model.node_columns.tolist(), model.trees.thresholds.tolist(), model.values.tolist()

    def branch(tree: int, node: int) -> str:
        if node >= N_NODES:
            return number(values[tree][node])
        below = branch(tree, 2 * node + 1)
        if columns[tree][node] < 0:
            return below
        above, x = branch(tree, 2 * node + 2), encoded[columns[tree][node]]
        return f"CASE WHEN {x}>{number(thresholds[tree][node])} THEN {above} ELSE {below} END"

    for k, intercept in enumerate(model.intercepts.tolist()):
        of_output = [branch(tree, 0) for tree in range(len(columns)) if model.outputs[tree] == k]
        names.append(stages.add("o", total([number(intercept), *of_output], "")))
    return names, []
