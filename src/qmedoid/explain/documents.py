"""JSON documents of explanations: one decision, and the effect of a column."""

from typing import Annotated, Literal, NotRequired, TypedDict

from qmedoid.model.documents import Cell, Label, TrainingRowDict


class EffectBinDict(TypedDict):
    """Rows with similar values of a column."""

    value: Annotated[str, "The values in words."]
    low: Annotated[float | str | None, "Smallest value; null for levels."]
    high: Annotated[float | str | None, "Largest value; null for levels."]
    rows: Annotated[int, "Rows of the bin."]
    mean: Annotated[float, "Mean contribution."]
    p10: Annotated[float, "Contribution that a tenth of the rows stay below."]
    p90: Annotated[float, "Contribution that a tenth of the rows exceed."]


class ColumnEffectDict(TypedDict):
    column: Annotated[str, "The column."]
    kind: Annotated[Literal["number", "category", "boolean", "date"], "What it holds."]
    toward: Annotated[Label, "Class that contributions above 0 are for."]
    against: Annotated[Label | None, "The other of two classes; null for the mean of all others."]
    unit: Annotated[Literal["log-odds", "score"], "Unit of contributions."]
    rows: Annotated[int, "Rows of the table."]
    kept: Annotated[int, "Rows that the bins are made of."]
    bins: Annotated[list[EffectBinDict], "Bins of values in order, or levels, the most frequent first."]
    missing: Annotated[EffectBinDict | None, "Rows in which the column is missing; null if there are none."]


class EffectDict(ColumnEffectDict):
    """What the values of a column contribute to the decisions about a table."""

    plot: Annotated[str | None, "File of the picture; null if none was asked for."]


class RestDict(TypedDict):
    """Parts that are not listed."""

    count: Annotated[int, "How many they are."]
    contribution: Annotated[float, "What they contributed together."]


class ComparedCellsDict(TypedDict):
    """A column of the record and of a similar row."""

    name: Annotated[str, "Column of the table."]
    cell: Annotated[Cell, "Cell of the similar row."]
    own: Annotated[Cell, "Cell of the record."]


class ContributingRowDict(TrainingRowDict):
    """What one training row contributed."""

    distance: Annotated[float, "Distance to it."]
    contribution: Annotated[float, "Contribution to the margin; above 0 is for the class toward."]


class ContributionDict(TypedDict):
    name: Annotated[str, "Column of the table."]
    cell: Annotated[Cell, "Its cell."]
    contribution: Annotated[float, "Contribution to the margin; above 0 is for the class toward."]


class ReasonDict(TypedDict):
    name: Annotated[str, "Column of the table, or term."]
    cell: Annotated[Cell, "Its cell; null of a term."]
    contribution: Annotated[float, "Contribution to the margin; above 0 is for the class toward."]
    is_column: Annotated[bool, "Whether it is a column, or a term."]
    text: Annotated[str, "It in words, with what it does to the odds."]


class NearestMedoidDict(TrainingRowDict):
    distance: Annotated[float, "Distance to it."]
    angle: Annotated[float, "Angle to it."]
    record: Annotated[dict[str, Cell] | None, "Its cells; null if the model holds none."]
    differs: Annotated[list[str] | None, "Columns in which it differs from the record."]


class GroupContributionDict(TypedDict):
    columns: Annotated[list[str], "Encoded columns."]
    contribution: Annotated[float, "Contribution to the margin; above 0 is for the class toward."]
    name: NotRequired[Annotated[str, "What is looked at, where columns have several groups."]]
    value: NotRequired[Annotated[float, "Feature of the group."]]
    medoid_values: NotRequired[Annotated[dict[str, float], "The same feature of the medoids."]]


class RowTotalDict(TrainingRowDict):
    contribution: Annotated[float, "Contribution to the margin."]


class ExplainRestDict(TypedDict):
    columns: Annotated[RestDict, "Columns."]
    groups: Annotated[RestDict, "Groups."]
    rows: Annotated[RestDict | None, "Training rows."]


class FlipDict(TypedDict):
    column: Annotated[str, "Column of the table."]
    cell: Annotated[Cell, "Its cell."]
    to: Annotated[Cell, "The cell that turns the decision."]
    text: Annotated[str, "The change in words."]
    prediction: Annotated[Label, "Class that would win."]
    margin: Annotated[float, "By how much."]
    probability: Annotated[float | None, "Its probability."]
    size: Annotated[float, "Share of the training rows between the cells; one half for another level."]


class MadeByDict(TypedDict):
    sha256: Annotated[str | None, "SHA-256 of the model file."]
    qmedoid: Annotated[str, "Version of qmedoid."]


OfAnyClassDict = TypedDict("OfAnyClassDict", {"class": Annotated[Label | None, "Its class; null if not known."]})


class SimilarRowDict(OfAnyClassDict):
    training_row: NotRequired[Annotated[int, "Row of the training table, from 0."]]
    row: NotRequired[Annotated[int, "Row of the known table, from 0."]]
    difference: Annotated[float | None, "Mean difference, 0 to 1; null if the model holds no cells."]
    same: Annotated[list[ComparedCellsDict], "Columns with the same cell, of those that contribute most."]
    close: Annotated[list[ComparedCellsDict], "Columns with a number or date close by."]
    differs: Annotated[list[ComparedCellsDict], "Columns with another cell."]
    sentence: Annotated[str, "The comparison in words."]


class KnownNearestDict(OfAnyClassDict):
    difference: Annotated[float, "Mean difference in the columns that decide, 0 to 1."]
    row: Annotated[int, "Row of that table, from 0."]
    record: Annotated[dict[str, Cell], "Its cells."]


class KnownRowsDict(TypedDict):
    rows: Annotated[int, "Rows of the other table."]
    nearest: Annotated[list[KnownNearestDict], "The most similar rows, the most similar first."]


class ExplainDict(TypedDict):
    """One decision: what each column contributed, and the nearest medoid of each class."""

    row: Annotated[int | None, "Row of the table, from 0; null for a record in memory."]
    sentences: Annotated[list[str], "The decision in sentences, the reason first."]
    prediction: Annotated[Label, "Class that won."]
    against: Annotated[Label, "Class that it is compared with."]
    toward: Annotated[Label, "Class that contributions above 0 are for: the positive one of two."]
    target: Annotated[str | None, "Column of the classes, if known."]
    margin: Annotated[float, "By how much the class toward is ahead: the sum of all contributions."]
    start: Annotated[float, "Part of the terms that is the same for every record, in log-odds."]
    start_probability: Annotated[float | None, "The same as a probability; null without probabilities."]
    threshold: Annotated[float | None, "Probability (else score) of the cut; null for more than two classes."]
    is_alert: Annotated[bool | None, "Whether it is an alert; null without an operating point."]
    decided_by: Annotated[str, "The method, or circuit."]
    record: Annotated[dict[str, Cell], "Cells of the record."]
    columns: Annotated[list[ContributionDict], "What each column contributed, the largest first."]
    reasons: Annotated[list[ReasonDict], "What the sentences name: what raises it, then what lowers it."]
    medoids: Annotated[list[NearestMedoidDict], "The nearest medoid of each class, the winner's first."]
    groups: Annotated[list[GroupContributionDict], "What each group of columns contributed, the largest first."]
    rows: Annotated[list[RowTotalDict] | None, "What each training row contributed; null if not made of rows."]
    rest: Annotated[ExplainRestDict, "What is not listed with --top."]
    flips: Annotated[list[FlipDict], "The smallest changes that lead to another class, the smallest first."]
    fixed: Annotated[list[str], "Columns that cannot change."]
    difference: Annotated[list[str], "How the table differs from the one that the model was fitted on."]
    model: Annotated[MadeByDict, "What decided."]
    time: Annotated[str, "When, in UTC."]
    terms: Annotated[dict[str, float], "What is neither of a column nor of a group, by name."]
    varying: Annotated[dict[str, float], "Part of the terms that belongs to this record, by name."]
    similar: Annotated[list[SimilarRowDict], "Most similar row of either class by the columns that decide."]
    neighbors: NotRequired[Annotated[list[ContributingRowDict], "Neighbors, in models that have them."]]
    probability: NotRequired[Annotated[float, "Probability of the class that won; with probabilities alone."]]
    probabilities: NotRequired[Annotated[dict[str, float], "Probabilities by class; models with probabilities alone."]]
    known: NotRequired[Annotated[KnownRowsDict, "Most similar rows of the table that --known names."]]
