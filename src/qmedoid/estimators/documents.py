"""JSON documents of fits that are repeated or changed: stability, recalibration."""

from typing import Annotated, NotRequired, TypedDict

from qmedoid.metrics.classification import CalibrationErrorDict
from qmedoid.metrics.intervals import IntervalDict
from qmedoid.model.documents import Label, Notes, OperatingDict
from qmedoid.tables.documents import NoveltyDict


class GroupStabilityDict(TypedDict):
    groups: Annotated[int, "Groups of columns of the fit of all rows."]
    kept: Annotated[float, "Mean share of the refits that have one of them."]
    agreement: Annotated[float, "Agreement of a refit with the fit of all rows; 1 is the same groups."]


class MedoidStabilityDict(TypedDict):
    medoids: Annotated[int, "Medoids of the fit of all rows."]
    kept: Annotated[float | None, "Share chosen again where the sample has them."]


class DecisionStabilityDict(TypedDict):
    flip_rate: Annotated[float | None, "Share of decisions about unseen rows that differ from the fit of all rows."]
    flip_error: Annotated[float | None, "Its standard error."]
    never_flipped: Annotated[float | None, "Share of the rows that no refit decides otherwise."]
    rows_without_votes: Annotated[int, "Rows that every sample held."]


class StabilityDict(TypedDict):
    """How much groups, medoids and decisions change when the rows change."""

    rows: Annotated[int, "Rows of the table."]
    bootstraps: Annotated[int, "Samples that were fitted again."]
    classes: Annotated[list[Label], "The classes."]
    groups: Annotated[GroupStabilityDict | None, "Groups of columns; null if there are none."]
    medoids: Annotated[MedoidStabilityDict | None, "Medoids; null if there are none."]
    decisions: Annotated[DecisionStabilityDict, "Decisions about rows that a refit did not have."]
    notes: Notes


class RecalibrationLeftOutDict(TypedDict):
    missing: Annotated[int, "Rows without a class."]
    unknown: Annotated[int, "Rows of a class that the model does not know."]
    known: Annotated[int, "Rows that the model was fitted on."]
    sampled: Annotated[int, "Rows beyond the largest sample."]


class RecalibrationFiguresDict(TypedDict):
    """Figures of a model on the labeled rows."""

    log_loss: Annotated[float, "Mean negative logarithm of the probability of the true class."]
    calibration: Annotated[CalibrationErrorDict, "Calibration error, and what it is by chance alone."]
    accuracy: Annotated[float, "Share of the rows that are called their class."]
    macro_f1: Annotated[float, "Mean F1 over the classes."]
    alert_rate: NotRequired[Annotated[float, "Share that is called positive; of two classes, as are the next two."]]
    precision: NotRequired[Annotated[float | None, "Share of the alerts that are positive; null without an alert."]]
    recall: NotRequired[Annotated[float | None, "Share of the positive rows that are alerts."]]


class RecalibrationDict(TypedDict):
    parent: Annotated[str | None, "Hash of the model that it was made from."]
    rows: Annotated[int, "Labeled rows that it was calibrated on."]
    left_out: Annotated[RecalibrationLeftOutDict, "Rows that were not used."]
    priors: Annotated[list[float] | None, "Class shares of the labeled rows."]
    operating: Annotated[OperatingDict | None, "The new operating point; null for more than two classes."]
    before: Annotated[RecalibrationFiguresDict, "Figures of the model as it was."]
    after: Annotated[RecalibrationFiguresDict, "Figures of models calibrated in folds without the row."]
    gain: Annotated[IntervalDict, "By how much the mean log-loss falls."]
    helps: Annotated[bool, "Whether the gain is beyond chance."]
    notes: Notes


class RecalibrateDict(RecalibrationDict):
    """A model whose probabilities and operating point were fitted to new labels."""

    model: Annotated[str, "File of the new model."]
    novelty: Annotated[NoveltyDict, "Whether the labeled rows are unlike the training rows."]


class LossDifferenceDict(TypedDict):
    mean: Annotated[float, "Mean over rows."]
    error: Annotated[float, "Standard error of the mean."]
    low: Annotated[float, "Lower end of the 95 % interval."]
    high: Annotated[float, "Upper end of the 95 % interval."]


class ComparedMethodDict(TypedDict):
    name: Annotated[str, "Name of the method."]
    log_loss: Annotated[float | None, "Log-loss, the mean over folds."]
    roc_auc: Annotated[float | None, "ROC-AUC, the mean over folds."]
    pr_auc: Annotated[float | None, "PR-AUC of two classes, the mean over folds."]
    macro_f1: Annotated[float | None, "Macro-F1, the mean over folds."]
    fit_seconds: Annotated[float | None, "Seconds of a fit, the mean over folds."]
    errors: Annotated[dict[str, float | None], "Standard errors of these means; null with one fold."]
    log_loss_difference: Annotated[LossDifferenceDict | None, "Log-loss minus ours, paired by rows; null for ours."]


class ComparisonDict(TypedDict):
    """Methods that were judged by the same rows, ours first."""

    rows: Annotated[int, "Rows that judge."]
    folds: Annotated[int, "Folds that they are in."]
    methods: Annotated[list[ComparedMethodDict], "The methods with their figures."]
    verdict: Annotated[str, "Whether a plain baseline wins, in one sentence."]
