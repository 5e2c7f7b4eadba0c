"""The configuration objective, incremental: one column changes, nothing else is computed again."""

from qmedoid.fitting.rebuild import RebuildObjective


class IncrementalObjective(RebuildObjective):
    """Macro-F1 of the pooled validation predictions of all folds."""
