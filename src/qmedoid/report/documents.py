"""JSON documents of reports, of differences between models and of comparisons."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from qmedoid.explain.documents import ColumnEffectDict
from qmedoid.metrics.intervals import IntervalDict
from qmedoid.model.documents import Cell, CountsDict, Label, OfClassDict, PageDict, TrainingRowDict

Points = list[Annotated[list[float], {"minItems": 2, "maxItems": 2}]]
"""Points of a curve."""


class ReportMadeDict(TypedDict):
    qmedoid: Annotated[str, "Version."]
    time: Annotated[str, "When, in UTC."]
    model: Annotated[str | None, "Name of the model file."]
    sha256: Annotated[str | None, "Of the model file."]
    table: Annotated[str | None, "Name of the table; null without one."]
    command: Annotated[str | None, "The command that makes the page again."]


class ReportModelDict(TypedDict):
    target: Annotated[str | None, "Column of the classes."]
    classes: Annotated[list[Label], "Classes in the order of their codes."]
    positive: Annotated[Label | None, "The second of two classes; null for more."]
    probabilistic: Annotated[bool, "Whether there are probabilities."]
    decided_by: Annotated[str, "What decides, in words."]
    parts: Annotated[dict[str, float], "Weights of the parts of the sum that decides, by name."]
    n_medoids: Annotated[int, "Medoids."]
    n_neighbors: Annotated[int, "Further training rows that are kept."]
    training_rows: Annotated[int | None, "Rows of the fit."]
    class_shares: Annotated[list[float] | None, "Class frequencies of the fit; null where they are not known."]
    threshold: Annotated[float | None, "Probability of the cut; null for more than two classes."]
    rule: Annotated[str | None, "How the cut was chosen; null for more than two classes."]
    parameters: Annotated[dict[str, Any], "Parameters of the fit, by name."]
    holds: Annotated[str, "Which rows of the training table the page holds."]


class ReportColumnDict(TypedDict):
    name: Annotated[str, "Its name."]
    kind: Annotated[Literal["number", "category", "boolean", "date"], "Its kind."]
    read: Annotated[bool, "Whether decisions depend on it."]
    encoding: Annotated[str, "What it becomes."]
    missing: Annotated[float | None, "Share of the training rows in which it is missing."]
    importance: Annotated[float | None, "Mean absolute contribution; null where decisions are no sums over columns."]


class ReportLeftOutDict(TypedDict):
    name: Annotated[str, "Its name."]
    reason: Annotated[str, "Why it was left out."]


class ReportFigureDict(TypedDict):
    key: Annotated[str, "Its key."]
    name: Annotated[str, "Its name."]
    value: Annotated[float | None, "Its value; null where it is not defined."]
    low: Annotated[float | None, "Lower bound of its interval; null where there is none."]
    high: Annotated[float | None, "Upper bound."]
    text: Annotated[str, "Value and interval as text."]


class ReportFiguresDict(TypedDict):
    source: Annotated[Literal["table", "held-out"], "The rows they are about."]
    on: Annotated[str, "Which rows these are, in few words."]
    is_new: Annotated[bool | None, "Whether the fit has seen none of them; null where that is not known."]
    about: Annotated[str, "Which rows these are, and which were left out."]
    rows: Annotated[int, "How many."]
    figures: Annotated[list[ReportFigureDict], "The figures."]


class ReportConfusionDict(TypedDict):
    labels: Annotated[list[str], "The classes."]
    counts: Annotated[list[list[int]], "True classes in rows, called ones in columns."]
    about: Annotated[str, "Which rows these are."]


class StopsDict(TypedDict):
    alerts: Annotated[list[int], "Alerts."]
    threshold: Annotated[list[float], "Probabilities above which a record is an alert."]
    threshold_text: Annotated[list[str], "The same, in as few digits as reproduce the counts."]
    tp: Annotated[list[int], "True alerts."]
    fp: Annotated[list[int], "False alerts."]
    fn: Annotated[list[int], "Missed positives."]
    tn: Annotated[list[int], "The rest."]
    texts: Annotated[dict[str, list[str]], "Figures as text, as 'qmedoid evaluate --threshold' prints them."]
    command: Annotated[list[str], "Option that cuts there."]


class CurvesDict(TypedDict):
    roc: Annotated[Points, "False and true positive rate."]
    pr: Annotated[Points, "Recall and precision."]
    recall_by_alert_rate: Annotated[Points, "Alert rate and recall."]


class CutsDict(TypedDict):
    positive: Annotated[Label, "The class that is looked for."]
    negative: Annotated[Label, "The other class."]
    rows: Annotated[int, "Rows that are counted."]
    positives: Annotated[int, "Positive ones among them."]
    per_day: Annotated[float | None, "Rows per day, where that is known."]
    cost: Annotated[float | None, "What a missed positive costs, in false alerts, if given."]
    start: Annotated[int, "Place of the present cut among the stops."]
    stops: Annotated[StopsDict, "Cuts, from no alert to all rows; every list has one entry for each."]
    curves: Annotated[CurvesDict, "Points of curves, at most 200 each."]


class ReportOperatingDict(CutsDict):
    source: Annotated[Literal["table", "held-out"], "The rows they are about."]
    about: Annotated[str, "Which rows these are."]


class CalibrationBinDict(TypedDict):
    mean: Annotated[float, "Mean probability."]
    share: Annotated[float, "Share that happened."]
    low: Annotated[float, "Lower bound of its 95 % interval."]
    high: Annotated[float, "Upper bound."]
    count: Annotated[int, "Rows."]


class ReportCalibrationDict(TypedDict):
    of: Annotated[str | None, "The class, of two; null for the likeliest."]
    bins: Annotated[list[CalibrationBinDict], "Bins of about equally many rows."]
    error: Annotated[float, "Expected calibration error."]
    by_chance: Annotated[float, "What chance shows on average."]
    by_chance_high: Annotated[float, "What chance alone exceeds in 5 % of the cases."]


class BaselineDict(TypedDict):
    name: Annotated[str, "Its name."]
    values: Annotated[list[str], "Its figures."]
    best: Annotated[list[bool], "Whether each is the best."]


class ReportBaselinesDict(TypedDict):
    about: Annotated[str, "What was compared on which rows."]
    figures: Annotated[list[str], "Names of the figures."]
    rows: Annotated[list[BaselineDict], "A method in each."]
    verdict: Annotated[str, "In one sentence."]
    better: Annotated[bool | None, "Whether a baseline is better by more than luck; null where nothing is decided."]


class ReportMedoidDict(TrainingRowDict):
    cells: Annotated[list[str], "Its cells."]


class ReportMedoidsDict(TypedDict):
    columns: Annotated[list[str], "Columns."]
    rows: Annotated[list[ReportMedoidDict], "At most 64 medoids."]
    n_medoids: Annotated[int, "All medoids."]


class CalledDict(OfClassDict):
    rows: Annotated[int, "Rows that are called it."]


class ReportTableDict(TypedDict):
    rows: Annotated[int, "Its rows."]
    target: Annotated[str | None, "Column of the classes; null where it has none."]
    labeled: Annotated[int, "Rows with a class of the model."]
    called: Annotated[list[CalledDict], "How often each class is called, among the rows that are counted."]
    drift: Annotated[dict[str, Any] | None, "The alert rate compared with what was expected, for two classes."]
    novelty: Annotated[dict[str, Any], "Whether records are unlike the training rows, and that in words."]
    difference: Annotated[dict[str, Any], "How the table differs from the contract, and that in words."]


class ReportFindingDict(TypedDict):
    code: Annotated[str, "Its code."]
    status: Annotated[Literal["problem", "tip", "passed", "not applicable", "ignored"], "What it comes to."]
    title: Annotated[str, "What it is about."]
    why: Annotated[str, "Why."]
    do: Annotated[str, "What to do; empty where nothing is."]


class ErrorRowDict(TypedDict):
    row: Annotated[int, "Row of the table, from 0."]
    true: Annotated[str, "Its class."]
    called: Annotated[str, "The class it is called."]
    chance: Annotated[str, "Probability of the positive class, or of the called one."]
    why: Annotated[str | None, "What spoke for the class it is called."]


class ErrorsDict(TypedDict):
    total: Annotated[int, "How many there are."]
    rows: Annotated[list[ErrorRowDict], "Those with the widest margins, at most 20."]
    of_sample: Annotated[bool, "Whether a random sample was looked at."]


class LevelDict(TypedDict):
    level: Annotated[str, "Its name."]
    rows: Annotated[int, "Rows."]
    counts: Annotated[list[int], "As of squares."]
    right: Annotated[str, "Share that is called its class, as text."]
    interval: Annotated[str, "Its 95 % interval as text."]
    differs: Annotated[Literal["better", "worse"] | None, "Whether it differs from all other rows by more than error."]


class SliceDict(TypedDict):
    column: Annotated[str, "Its name."]
    levels: Annotated[list[LevelDict], "Its most frequent levels."]


class ReportExpectedDict(CountsDict):
    draws_per_row: Annotated[float, "Independent draws for each row."]


class EvaluatedDict(TypedDict):
    figures: Annotated[ReportFiguresDict | None, "Figures with 95 % intervals; null where nothing is known."]
    confusion: Annotated[ReportConfusionDict | None, "Rows of each true and called class."]
    operating: Annotated[ReportOperatingDict | None, "What cuts mean, for two classes with probabilities."]
    calibration: Annotated[ReportCalibrationDict | None, "Probabilities and what happened; null without classes."]
    table: Annotated[ReportTableDict | None, "The table; null without one."]


class EvaluatedRowsDict(TypedDict):
    squares: Annotated[
        dict[str, Any] | None,
        "Rows with a square on the page, by falling probability, at most 400; null without a table with classes.",
    ]
    errors: Annotated[ErrorsDict | None, "Rows that were decided wrongly; null without a table with classes."]
    slices: Annotated[list[SliceDict], "Figures by the levels of categories."]


class AboutModelDict(EvaluatedRowsDict):
    columns: Annotated[list[ReportColumnDict], "Columns of the contract, at most 200: the most important ones of more."]
    n_columns: Annotated[int, "All columns of the contract."]
    left_out: Annotated[list[ReportLeftOutDict], "Columns that no model reads, at most 200."]
    effects: Annotated[list[ColumnEffectDict], "What values of the most important columns contribute."]
    medoids: Annotated[ReportMedoidsDict | None, "Medoids as training rows; null where they are left out."]
    start_record: Annotated[dict[str, Any], "The record that the what-if panel begins with, by column."]


class SummaryDict(EvaluatedDict, AboutModelDict):
    format: Annotated[int, "Of this document; 2."]
    made: Annotated[ReportMadeDict, "How the page was made."]
    model: Annotated[ReportModelDict, "What was fitted."]
    baselines: Annotated[ReportBaselinesDict | None, "Plain baselines on the same rows, of fit --compare."]
    expected: Annotated[ReportExpectedDict | None, "Counts of held-out rows at the present cut, of two classes."]


class ReportDict(SummaryDict):
    """A model, and what it decides about a table: all that its page shows, without the live model."""

    findings: Annotated[list[ReportFindingDict], "Coded findings, problems first."]
    opening: Annotated[dict[str, Any], "What the page opens with: a headline, sentences, and figures as text."]
    live: Annotated[dict[str, str | None], "Under 'absent', why the model is not in the page; null where it is."]
    page: Annotated[PageDict | None, "The page that was written; null without --output."]


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


class DiffValueDict(TypedDict):
    name: Annotated[str, "What it is, such as calibration.slope; names within names have points between."]
    old: Annotated[Any, "Old value; null where there is none."]
    new: Annotated[Any, "New value; null where there is none."]


class FlowDict(TypedDict):
    old: Annotated[str, "Class of the old model."]
    new: Annotated[str, "Class of the new model."]
    rows: Annotated[int, "Records."]


class ChangedRecordDict(TypedDict):
    row: Annotated[int, "Row of the table, from 0."]
    old: Annotated[str, "Class of the old model."]
    new: Annotated[str, "Class of the new model."]
    change: Annotated[float | None, "Change of probability."]
    probabilities: Annotated[list[float] | None, "Probability of the new class, by the old and by the new model."]


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
    values: Annotated[list[DiffValueDict], "Everything else that differs."]
    decisions: Annotated[DiffDecisionsDict | None, "Decisions about the records of the table; null without one."]
    differs: Annotated[bool, "Whether decisions differ; without a table, models."]


class DiffDict(ModelDiffDict):
    """What changed between two saved models, and in their decisions about a table."""

    old: Annotated[ModelFileDict, "The old model."]
    new: Annotated[ModelFileDict, "The new model."]
