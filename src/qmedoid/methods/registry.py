"""Registry of the parts of models: a new one is a folder and a line here."""

from importlib import import_module

from qmedoid.methods.part import Part

PARTS = {
    "evidence": "qmedoid.methods.evidence.part:EvidencePart",
    "rare": "qmedoid.methods.rare.part:RarePart",
    "nearest": "qmedoid.methods.nearest.part:NearestPart",
    "comparisons": "qmedoid.methods.comparisons.part:ComparisonsPart",
    "neighbors": "qmedoid.methods.neighbors.part:NeighborsPart",
    "circuit": "qmedoid.methods.variational.model:VariationalModel",
}
"""Parts by name, each as ``"module:class"``."""


def part_class(name: str) -> type[Part]:
    """The class of a part."""
    module, _, kind = PARTS[name].partition(":")
    found: type[Part] = getattr(import_module(module), kind)
    return found
