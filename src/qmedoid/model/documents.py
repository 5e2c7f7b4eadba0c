"""JSON documents of models, and the parts that documents of all folders have in common."""

from typing import Annotated, TypedDict

from qmedoid.metrics.intervals import IntervalDict

Label = str | int | float | bool
"""A class as the table spells it."""
Cell = str | int | float | bool | None
"""A cell of a table; None where it is missing."""
Notes = Annotated[list[str], "Notes and warnings, as they go to standard error without --json."]
OfClassDict = TypedDict("OfClassDict", {"class": Annotated[Label, "The class."]})


class TrainingRowDict(OfClassDict):
    """A row of the training table."""

    training_row: Annotated[int, "Row of the training table, from 0."]


class PageDict(TypedDict):
    """A page that was written."""

    path: Annotated[str, "Its file."]
    bytes: Annotated[int, "Its size."]


class CountsDict(TypedDict):
    tp: Annotated[int, "Positive rows among the alerts."]
    fp: Annotated[int, "Other rows among the alerts."]
    fn: Annotated[int, "Positive rows without an alert."]
    tn: Annotated[int, "The rest."]


class OperatingDict(TypedDict):
    """The operating point of two classes: where it cuts, and what held-out rows say to expect."""

    rule: Annotated[str, "How the cut was chosen: likeliest, a rule with a number, or a metric."]
    asked: Annotated[float | None, "The number that was asked for, where the rule has one."]
    threshold: Annotated[float, "The cut as a probability of the positive class: records above it are alerts."]
    log_odds: Annotated[float, "The same cut in log-odds."]
    held_out_rows: Annotated[int, "Out-of-fold rows that the expected figures are from."]
    draws_per_row: Annotated[float, "Independent draws for each of these rows: rows of one group count as one."]
    counts: Annotated[CountsDict | None, "Out-of-fold counts at the cut; null where there are none."]
    prevalence: Annotated[float | None, "Prevalence that is expected, where it is not that of the held-out rows."]
    alert_rate: Annotated[IntervalDict | None, "Share of alerts, with the interval of the model's rate."]
    precision: Annotated[IntervalDict | None, "Precision, with the interval of the model's rate."]
    recall: Annotated[IntervalDict | None, "Recall, with the interval of the model's rate."]
    forecast_rows: Annotated[int | None, "Rows of the next table that the forecast is for; null where there is none."]
    forecast: Annotated[
        dict[str, IntervalDict],
        "What that table will show 19 times in 20: figures by name, those that are defined; costs are per row.",
    ]


class BudgetDict(TypedDict):
    """A budget of alerts: its threshold, and its figures with 95 % intervals."""

    budget: Annotated[str, "The budget: a number of alerts, or a share of the records."]
    threshold: Annotated[float, "Probability above which a record is an alert."]
    alerts: Annotated[int, "Alerts among the rows."]
    rows: Annotated[int, "Rows that the figures are from."]
    alert_rate: Annotated[float | None, "Share of alerts."]
    alert_rate_low: Annotated[float | None, "Lower end of its 95 % interval."]
    alert_rate_high: Annotated[float | None, "Upper end of its 95 % interval."]
    precision: Annotated[float | None, "Share of positive rows among the alerts."]
    precision_low: Annotated[float | None, "Lower end of its 95 % interval."]
    precision_high: Annotated[float | None, "Upper end of its 95 % interval."]
    recall: Annotated[float | None, "Share of the positive rows that are alerts."]
    recall_low: Annotated[float | None, "Lower end of its 95 % interval."]
    recall_high: Annotated[float | None, "Upper end of its 95 % interval."]
