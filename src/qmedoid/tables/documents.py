"""JSON documents of tables: how they are read, how they differ, and what a model shows on them."""

from typing import Annotated, Literal, NotRequired, TypedDict

from qmedoid.metrics.classification import CalibrationErrorDict
from qmedoid.model.documents import Label, Notes, OfClassDict


class CheckedClassDict(OfClassDict):
    rows: Annotated[int, "Its rows."]


class SentinelDict(TypedDict):
    value: Annotated[str, "The value, as --missing takes it."]
    rows: Annotated[int, "Rows that hold it."]
    nearest: Annotated[str | None, "The nearest other value; null for a level, and for a value within the range."]


class CheckedColumnDict(TypedDict):
    name: Annotated[str, "Name."]
    type: Annotated[str, "Type as it was read."]
    kind: Annotated[Literal["number", "boolean", "category", "date"] | None, "What it is read as; null if left out."]
    used: Annotated[bool, "Whether a fit uses it."]
    role: Annotated[str | None, "Role that was given."]
    why: Annotated[str, "Why it is read so, or left out."]
    note: Annotated[str | None, "What was odd in reading it."]
    levels: Annotated[int | None, "Different cells."]
    missing: Annotated[int, "Missing cells."]
    sentinels: Annotated[list[SentinelDict], "Values that may stand for missing cells."]
    examples: Annotated[list[str], "Its first cells."]
    alone: Annotated[float | None, "How well it separates the classes alone, out of fold."]


class CheckDuplicatesDict(TypedDict):
    rows: Annotated[int, "Rows equal to an earlier one."]
    contrary_rows: Annotated[int, "Rows equal to one of another class."]


class CheckFindingDict(TypedDict):
    code: Annotated[str, "Code that does not change."]
    severity: Annotated[Literal["problem", "note"], "Whether a model would probably be wrong."]
    columns: Annotated[list[str], "Columns it is about."]
    message: Annotated[str, "The finding in words."]


class WithoutDict(TypedDict):
    """A quick model with and without columns that are too good to be true."""

    columns: Annotated[list[str], "Columns that say the class or separate it well alone, the best first."]
    figure: Annotated[Literal["ROC-AUC", "mean recall"], "What is measured, on rows that the model has not seen."]
    all_columns: Annotated[float, "The figure of a quick model of all columns."]
    others: Annotated[float | None, "The figure without these columns; null if no column is left."]
    rows: Annotated[int, "Rows that it was fitted on."]


class CheckedTableDict(TypedDict):
    rows: Annotated[int, "Rows that were read."]
    target: Annotated[str | None, "Column of the classes."]
    classes: Annotated[list[CheckedClassDict], "The classes, the most frequent first."]
    columns: Annotated[list[CheckedColumnDict], "The columns but for the target."]
    judged_rows: Annotated[int, "Rows on which columns were judged alone; 0 if they were not."]
    duplicates: Annotated[CheckDuplicatesDict, "Equal rows."]
    findings: Annotated[list[CheckFindingDict], "What is odd, problems first."]
    problems: Annotated[int, "How many findings are problems."]
    without: Annotated[WithoutDict | None, "A quick model without what is too good; null if nothing is."]


class CheckDict(CheckedTableDict):
    """How every column of a table would be read and why, and what is odd about it."""

    table: Annotated[str, "Name of the table."]
    notes: Notes


class OutsideDict(TypedDict):
    column: Annotated[str, "Encoded column."]
    rows: Annotated[int, "Rows beyond its limits."]
    row: Annotated[int, "Row of the farthest value, from 0."]
    value: Annotated[float, "The farthest value."]
    lowest: Annotated[float, "Smallest training value."]
    highest: Annotated[float, "Largest training value."]
    is_date: Annotated[bool, "Whether values are days since 1970."]
    file: NotRequired[Annotated[str, "File of the row, if files were scored one by one."]]


class ShiftedDict(TypedDict):
    column: Annotated[str, "Encoded column."]
    low: Annotated[float | None, "Lower end of the bin that changed most; null if open."]
    high: Annotated[float | None, "Upper end; null if open."]
    share: Annotated[float, "Share of the rows in this bin."]
    expected: Annotated[float, "Share of the training rows in it."]
    moved: Annotated[float, "Share of the rows in other bins than expected."]
    kind: Annotated[Literal["number", "flag", "level"], "What the column holds."]


class NoveltyDict(TypedDict):
    """How unlike the training rows the records are."""

    status: Annotated[Literal["none", "unlike", "too few", "unknown"], "Whether records are like training rows."]
    compared_rows: Annotated[int, "Rows whose bins and distances were counted."]
    outside_rows: Annotated[int, "Rows with a value beyond the limits of its column."]
    outside: Annotated[list[OutsideDict], "Columns with values far beyond those of the training rows."]
    shifted: Annotated[list[ShiftedDict], "Columns whose values are distributed otherwise, the most changed first."]
    far_share: Annotated[float | None, "Share of the rows farther from every medoid than 99 % of the training rows."]
    far_expected: Annotated[float | None, "The share that was expected."]
    far_low: Annotated[float | None, "Smallest share that a table of this size may show."]
    far_high: Annotated[float | None, "Largest share that a table of this size may show."]
    far_standard_errors: Annotated[float | None, "By how many standard errors it is above the expected one."]
    is_far: Annotated[bool, "Whether too many rows are far from every medoid."]


class OddCellsDict(TypedDict):
    missing: Annotated[int, "Missing cells of a column that had none."]
    refused: Annotated[int, "Cells that the model cannot fill in."]
    unseen: Annotated[int, "Cells with a level that no training row had."]
    unseen_levels: Annotated[list[str], "Some of these levels."]
    untrained: Annotated[int, "Cells with a level that only held-out rows had."]
    untrained_levels: Annotated[list[str], "Some of these levels."]
    wrong: Annotated[int, "Cells that are not of the column's kind."]
    wrong_examples: Annotated[list[str], "Some of these cells."]
    huge: Annotated[int, "Numbers that are infinite or too large."]
    respelt: Annotated[int, "Cells that are numbers or dates in another spelling."]
    respelt_examples: Annotated[list[str], "Some of these cells."]


class DifferenceDict(TypedDict):
    """How a table differs from the contract of a model."""

    breaks: Annotated[bool, "Whether the table breaks the model's contract."]
    missing: Annotated[list[str], "Columns of the contract that the table lacks."]
    extra: Annotated[list[str], "Columns that the model does not know; they are ignored."]
    suggestions: Annotated[dict[str, str], "Missing columns, and the column that may be meant."]
    kinds: Annotated[dict[str, str], "Columns of another kind, and what they are now."]
    rows: Annotated[int | None, "Rows whose cells were read; null if none were."]
    cells: Annotated[dict[str, OddCellsDict], "Columns with cells that the training rows did not have."]


class ClassFiguresDict(TypedDict):
    """Figures of one class."""

    rows: Annotated[int, "Rows of the class."]
    precision: Annotated[float | None, "Its precision; null if it is never called."]
    recall: Annotated[float | None, "Its recall; null without a row of it."]
    f1: Annotated[float | None, "Its F1; null if neither is defined."]


class LeftOutDict(TypedDict):
    """Rows that are not counted."""

    missing: Annotated[int, "Rows without a class."]
    unknown: Annotated[int, "Rows of a class that the model does not know."]
    seen: Annotated[int, "Rows that were seen in fitting; 0 with --all-rows."]


class SeenDict(TypedDict):
    """Rows that were seen in fitting."""

    rows: Annotated[int, "Rows with the cells of training rows, counted or left out."]
    checked: Annotated[int, "Rows that could be checked."]


class FiguresDict(TypedDict):
    rows: Annotated[int, "Rows that are counted: those with a class of the model that were not left out."]
    accuracy: Annotated[float, "Share of the rows that are called their class."]
    macro_f1: Annotated[float, "Mean F1 over the classes that occur."]
    weighted_f1: Annotated[float, "Mean F1 over the classes, weighted by their rows."]
    log_loss: NotRequired[Annotated[float, "Mean negative log-likelihood; models with probabilities alone."]]
    calibration: NotRequired[Annotated[CalibrationErrorDict, "Calibration error; models with probabilities alone."]]
    positive: NotRequired[Annotated[Label, "The class to look for: the second of two."]]
    prevalence: NotRequired[Annotated[float, "Share of the positive class; of two classes alone, as are the next six."]]
    alert_rate: NotRequired[Annotated[float, "Share of the rows that are called positive."]]
    precision: NotRequired[Annotated[float | None, "Share of the alerts that are positive; null without an alert."]]
    recall: NotRequired[Annotated[float | None, "Share of the positive rows that are alerts; null without one."]]
    f1: NotRequired[Annotated[float | None, "Harmonic mean of precision and recall."]]
    roc_auc: NotRequired[Annotated[float | None, "Area under the ROC curve; null with one class."]]
    pr_auc: NotRequired[Annotated[float | None, "Average precision; null with one class."]]
    by_circuit: Annotated[float, "Share of the rows that the circuit decided."]
    classes: Annotated[dict[str, ClassFiguresDict], "Figures by class."]
    absent: Annotated[list[str], "Classes without a row."]
    confusion: Annotated[list[list[int]], "Counts: true classes in rows, predicted ones in columns."]


class EvaluationDict(FiguresDict):
    """What a model shows on rows whose class is known."""

    left_out: Annotated[LeftOutDict, "Rows that are not counted."]
    seen: Annotated[SeenDict | None, "Rows that were seen in fitting; null if the model keeps no row hashes."]


class ResultFilesDict(TypedDict):
    inputs: Annotated[int, "Input files, those of other shards among them."]
    scored: Annotated[int, "Files that were scored now."]
    skipped: Annotated[int, "Files whose results were there already."]
    removed: Annotated[int, "Results of another content, model or option, now removed."]
    missing: Annotated[int, "Inputs without results so far: those of other shards."]
    rows_scored: Annotated[int, "Rows of the files that were scored now."]
    manifest: Annotated[str, "File that lists inputs and results."]
