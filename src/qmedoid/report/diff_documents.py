"""JSON documents of differences between two models, and of comparisons of methods."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from qmedoid.metrics.intervals import IntervalDict
from qmedoid.model.documents import Cell, TrainingRowDict


class ModelFileDict(TypedDict):
    """A file of a model."""

    path: Annotated[str, "File."]
    sha256: Annotated[str | None, "Its hash."]


class ChangedColumnDict(TypedDict):
    name: Annotated[str, "Column."]
    kind: NotRequired[Annotated[list[str], "Kind, old and new."]]
    missing: NotRequired[Annotated[list[bool], "Whether cells may be missing, old and new."]]
    open: NotRequired[Annotated[list[bool], "Whether further levels are no surprise, old and new."]]
    spelling: NotRequired[Annotated[list[str], "How cells are written, old and new."]]
    missing_values: NotRequired[Annotated[list[list[str]], "What is read as missing, old and new."]]
    levels_added: NotRequired[Annotated[list[str], "Levels of the new model alone."]]
    levels_removed: NotRequired[Annotated[list[str], "Levels of the old model alone."]]


class LeftOutColumnDict(TypedDict):
    name: Annotated[str, "Column."]
    old: Annotated[str | None, "Why the old model left it out; null if it did not."]
    new: Annotated[str | None, "Why the new model does; null if it does not."]


class DiffColumnsDict(TypedDict):
    added: Annotated[list[str], "Columns that the new model alone reads."]
    removed: Annotated[list[str], "Columns that the old model alone reads."]
    changed: Annotated[list[ChangedColumnDict], "Columns of both that differ, with what differs."]
    left_out: Annotated[list[LeftOutColumnDict], "Columns left out otherwise."]


class DiffClassesDict(TypedDict):
    added: Annotated[list[str], "Classes of the new model alone."]
    removed: Annotated[list[str], "Classes of the old model alone."]


class DiffMedoidDict(TrainingRowDict):
    """A medoid that one of two models has."""

    record: NotRequired[Annotated[dict[str, Cell], "Its cells, where both models hold them."]]


class DiffMedoidsDict(TypedDict):
    matched_by: Annotated[Literal["cells", "row numbers"], "How medoids are compared."]
    kept: Annotated[int, "Medoids of both."]
    added: Annotated[list[DiffMedoidDict], "Medoids of the new model alone."]
    removed: Annotated[list[DiffMedoidDict], "Medoids of the old model alone."]


class DiffGroupsDict(TypedDict):
    kept: Annotated[int, "Groups of both."]
    added: Annotated[list[list[str]], "Groups of the new model alone."]
    removed: Annotated[list[list[str]], "Groups of the old model alone."]


class DiffValueDict(TypedDict):
    name: Annotated[str, "What it is, such as calibration.slope; names within names have points between."]
    old: Annotated[Any, "Old value; null where there is none."]
    new: Annotated[Any, "New value; null where there is none."]


class FlowDict(TypedDict):
    old: Annotated[str, "Class of the old model."]
    new: Annotated[str, "Class of the new model."]
    rows: Annotated[int, "Records."]


class MovedPartDict(TypedDict):
    """What a column or term moved."""

    name: Annotated[str, "Column or term."]
    old: Annotated[float, "Contribution in the old model."]
    new: Annotated[float, "Contribution in the new model."]
    change: Annotated[float, "New minus old."]


_ForDict = TypedDict("_ForDict", {"for": Annotated[str | None, "Class that contributions are for."]})


class ChangedRecordDict(_ForDict):
    row: Annotated[int, "Row of the table, from 0."]
    old: Annotated[str, "Class of the old model."]
    new: Annotated[str, "Class of the new model."]
    change: Annotated[float | None, "Change of probability."]
    probabilities: Annotated[list[float] | None, "Probability of the new class, by the old and by the new model."]
    against: Annotated[str | None, "Class that they are against."]
    margins: Annotated[list[float] | None, "Margin between these, of the old and of the new model."]
    columns: Annotated[list[MovedPartDict] | None, "What each column moved; null where a model has no contributions."]
    terms: Annotated[list[MovedPartDict] | None, "What each other term moved."]


class DiffDecisionsDict(TypedDict):
    rows: Annotated[int, "Records."]
    changed: Annotated[int, "Records that are called otherwise."]
    changed_share: Annotated[IntervalDict, "Their share."]
    mean_change: Annotated[float | None, "Mean change of probability (total variation); null without probabilities."]
    flows: Annotated[list[FlowDict], "Records by both classes."]
    largest: Annotated[list[ChangedRecordDict], "The ten largest changes."]


class ModelDiffDict(TypedDict):
    derived: Annotated[bool, "Whether the new model was made from the old file."]
    columns: Annotated[DiffColumnsDict, "Columns."]
    classes: Annotated[DiffClassesDict, "Classes."]
    medoids: Annotated[DiffMedoidsDict, "Medoids."]
    groups: Annotated[DiffGroupsDict, "Groups of encoded columns."]
    values: Annotated[list[DiffValueDict], "Everything else that differs."]
    decisions: Annotated[DiffDecisionsDict | None, "Decisions about the records of the table; null without one."]
    differs: Annotated[bool, "Whether decisions differ; without a table, models."]


class DiffDict(ModelDiffDict):
    """What changed between two saved models, and in their decisions about a table."""

    old: Annotated[ModelFileDict, "The old model."]
    new: Annotated[ModelFileDict, "The new model."]
