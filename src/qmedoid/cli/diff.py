"""``qmedoid diff``: what changed between two saved models, and in their decisions about a table."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

from qmedoid.cli.options import OUTPUT, Json, ReadingOptions, Text, argument, command, flag
from qmedoid.cli.output import DIFFERENT, OK, grid, print_json, reading_bar, show
from qmedoid.exceptions import ParameterError, some_of
from qmedoid.report.diff import DecisionTally, ModelDiff, aligned, compare_models, value_text
from qmedoid.report.documents import DiffDecisionsDict, DiffDict
from qmedoid.saved import SavedModel, load
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.difference import BrokenContractError
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading

# Values that are printed.
_VALUES = 20


@command("qmedoid diff patients.qmedoid patients-2.qmedoid new.csv", most_used=("exit_code", "json"))
def run(
    old: Annotated[Path, argument("OLD", "File of a saved model.")],
    new: Annotated[Path, argument("NEW", "File of the model that came after it.")],
    table: Annotated[Text, argument("TABLE", "Table about whose records both decide.")] = None,
    *,
    reading: ReadingOptions,
    json: Json = False,
    exit_code: Annotated[
        bool, flag(OUTPUT, "End with exit code 5 if decisions differ (without a table: if models do).", "--exit-code")
    ] = False,
) -> int:
    """Show what changed from one model to another.

    With a table, also how many of its records the two models decide otherwise, and where probabilities changed most.
    """
    if table == "-":
        raise ParameterError("The table is read by both models, and a pipe can be read once: give it as a file.")
    keep_pandas_away()
    before, after = load(old), load(new)
    decisions = None if table is None else _decisions(before, after, table, ScoreSettings(**vars(reading)))
    found = compare_models(before.model, after.model, decisions, sha256=before.sha256)
    if json:
        document: DiffDict = {
            "old": {"path": str(old), "sha256": before.sha256},
            "new": {"path": str(new), "sha256": after.sha256},
            **found.as_dict(),
        }
        print_json(document)
    else:
        show(*_lines(found, old.name, new.name, "" if table is None else Path(table).name))
    return DIFFERENT if exit_code and found.differs else OK


def _decisions(old: SavedModel, new: SavedModel, table: str, settings: ScoreSettings) -> DiffDecisionsDict:
    """The decisions of both models, batch by batch."""
    with ExitStack() as stack:
        readings = []
        for name, one in (("old", old), ("new", new)):
            with _named(name):
                readings.append(stack.enter_context(TableReading(one.model, table, settings)))

        def compare() -> DecisionTally:
            readings[1].lenient = readings[0].lenient
            tally = DecisionTally(old.model, new.model)
            first = (batch for batch, _ in readings[0].batches(on_progress=progress))
            second = (batch for batch, _ in readings[1].batches())
            for batches in aligned(first, second):
                tally.add(batches, [reading.issues for reading in readings])
            return tally

        progress = stack.enter_context(reading_bar("comparing"))
        tally: DecisionTally = readings[0].in_kind(compare)
        with _named("old"):
            readings[0].check()
        # Two models that read alike would say the same twice.
        if new.contract != old.contract or new.model.layout.used != old.model.layout.used:
            with _named("new"):
                readings[1].check()
    return tally.report()


@contextmanager
def _named(model: str) -> Iterator[None]:
    """Say which model a table is refused by."""
    try:
        yield
    except BrokenContractError as error:
        raise BrokenContractError(f"The {model} model cannot read the table. {error}", error.difference) from None


def _lines(found: ModelDiff, old: str, new: str, table: str) -> Iterator[Any]:
    """What there is to say; first what the models are made of, then what they decide."""
    if found.derived:
        yield f"{printable(new)} was made from {printable(old)}."
    for title, part in (("columns", found.columns), ("classes", found.classes)):
        changes = [f"{what} {_names(part[what])}" for what in ("added", "removed") if part[what]]
        yield f"{title}: {'; '.join(changes) if changes else 'the same'}"
    for column in found.columns["changed"]:
        said = []
        for what, change in column.items():
            if isinstance(change, list) and what.startswith("levels_"):
                said.append(f"levels {what.removeprefix('levels_')}: {_names(change)}")
            elif isinstance(change, list):
                said.append(f"{what} was {_text(change[0])}, is {_text(change[1])}")
        yield f"~ {printable(column['name'])}: {'; '.join(said)}"
    for one in found.columns["left_out"]:
        pair = one["old"], one["new"]
        was, now = ("used, or not there" if why is None else f"left out ({printable(why)})" for why in pair)
        yield f"~ {printable(one['name'])}: was {was}, is {now}"
    added, removed = (len(found.medoids[what]) for what in ("added", "removed"))
    kept = f"{found.medoids['kept']:,} kept, {added:,} added, {removed:,} removed"
    yield f"medoids (by their {found.medoids['matched_by']}): {kept}"
    # Figures of held-out rows come last: there are many.
    listed = sorted(found.values, key=lambda one: one["name"].startswith("metrics."))[:_VALUES]
    if listed:
        rows = [(printable(one["name"]), _text(one["old"]), _text(one["new"])) for one in listed]
        yield grid(("value", "old", "new"), rows, left=(0, 1, 2))
    if len(found.values) > len(listed):
        yield f"{len(found.values) - len(listed):,} more values differ: --json lists all."
    if found.decisions is not None:
        yield from _decision_lines(found.decisions, table)
    elif not found.differs:
        yield "The models decide alike."


def _decision_lines(found: Mapping[str, Any], table: str) -> Iterator[Any]:
    share = found["changed_share"]
    yield (
        f"{printable(table)}: {found['changed']:,} of {found['rows']:,} records get another class, "
        f"{100 * share['value']:.3g} % (95 %: {100 * share['low']:.3g} to {100 * share['high']:.3g} %)."
    )
    if found["mean_change"] is not None:
        yield f"mean change of the probability: {found['mean_change']:.4f}"
    flows = [(printable(one["old"]), printable(one["new"]), f"{one['rows']:,}") for one in found["flows"]]
    yield grid(("old", "new", "records"), flows, left=(0, 1))
    if found["largest"]:
        yield "The largest changes of probability; 'qmedoid explain' with either model says what they come from:"
        yield grid(("row", "old", "new", "probability"), map(_record, found["largest"]), left=(1, 2))


def _record(one: Mapping[str, Any]) -> tuple[str, ...]:
    chances = "" if one["probabilities"] is None else " → ".join(f"{value:.3f}" for value in one["probabilities"])
    return f"{one['row']}", printable(one["old"]), printable(one["new"]), chances


def _names(names: Any) -> str:
    return some_of([printable(repr(name)) for name in names], 10)


def _text(value: Any) -> str:
    text = value_text(value)
    return printable(text if len(text) <= 60 else f"{text[:59]}…")
