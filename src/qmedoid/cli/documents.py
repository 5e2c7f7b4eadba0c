"""JSON documents that commands put together, and ``qmedoid schema``: JSON Schemas (2020-12) made from all of them."""

import re
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from qmedoid.cli.options import Json, Names, argument, command
from qmedoid.cli.output import grid, print_json, show
from qmedoid.estimators.documents import ComparisonDict, RecalibrateDict, StabilityDict
from qmedoid.exceptions import ParameterError, some_of
from qmedoid.explain.documents import EffectDict, ExplainDict
from qmedoid.export.documents import EngineCheckDict
from qmedoid.model.documents import BudgetDict, Cell, Label, Notes, OperatingDict, PageDict, TrainingRowDict
from qmedoid.quantum.documents import CircuitPlace, CircuitPlanDict, CircuitRunDict, PairCircuitDict, TrainedCircuitDict
from qmedoid.report.documents import DiffDict, ReportDict
from qmedoid.spelling import printable
from qmedoid.tables.documents import CheckDict, DifferenceDict, EvaluationDict, NoveltyDict, ResultFilesDict


class ErrorDict(TypedDict):
    """Any command that fails."""

    error: Annotated[str, "What was given, what is allowed, what to do next."]
    exit_code: Annotated[int, "Exit code of the command."]
    difference: NotRequired[Annotated[DifferenceDict, "How the table differs, if it breaks the model's contract."]]


class PassDict(TypedDict):
    name: Annotated[str, "What it is for."]
    seconds: Annotated[float, "How long it took."]
    read: Annotated[int, "Partitions that had to be read."]


class FitPassesDict(TypedDict):
    rows: Annotated[int, "Rows with a class."]
    sampled: Annotated[int, "Training rows that the model was fitted on."]
    passes: Annotated[list[PassDict], "The passes in their order."]


class TimeLimitDict(TypedDict):
    seconds: Annotated[float, "The limit."]
    left_out: Annotated[list[str], "Parts left out."]
    exceeded: Annotated[bool, "Whether the limit was exceeded all the same."]


class HeldTogetherFiguresDict(TypedDict):
    """Figures of held-out rows."""

    rows: Annotated[int, "Rows that were held out."]
    accuracy: Annotated[float, "Share of the rows that are called their class."]
    log_loss: Annotated[float, "Mean negative log-likelihood."]


class HeldTogetherDict(TypedDict):
    """Rows that seem to belong together, and what it changes to hold them out together."""

    kind: Annotated[Literal["shared_class", "near_rows", "runs"], "What says so: a column, equality, or the order."]
    column: Annotated[str | None, "The column that says so; null if none does."]
    groups: Annotated[int, "Groups of rows."]
    used: Annotated[bool, "Whether the fit holds them out together."]
    together: Annotated[HeldTogetherFiguresDict | None, "Figures of rows held out together; null without time for it."]
    one_by_one: Annotated[HeldTogetherFiguresDict | None, "Figures of rows held out one by one; null likewise."]
    beyond_errors: Annotated[bool | None, "Whether the log-loss is higher together, beyond its errors; null likewise."]


class FitDict(TypedDict):
    """A fitted and saved model, and its figures on held-out rows."""

    notes: Notes
    verdict: Annotated[list[str], "How good the model is, in sentences."]
    passes: Annotated[FitPassesDict | None, "What a fit in passes did; null where the table was fitted as a whole."]
    time_limit: Annotated[TimeLimitDict | None, "What --time-limit did; null without it."]
    comparison: Annotated[ComparisonDict | None, "Plain baselines on the same held-out rows; null without --compare."]
    cross_validation: Annotated[ComparisonDict | None, "Figures of the folds of --cv; null without it."]
    report: Annotated[PageDict | None, "The page of --report; null without it."]
    held_together: NotRequired[Annotated[HeldTogetherDict, "Rows that seem to belong together; absent if none do."]]
    model: Annotated[str, "File of the model."]
    method: Annotated[str, "Method that decides."]
    refinement: Annotated[str, "Whether a circuit corrects it: none, or how."]
    classes: Annotated[list[Label], "Classes of the model."]
    positive: Annotated[Label | None, "Class to look for; null if there is none."]
    columns: Annotated[int, "Columns that the model reads."]
    left_out: Annotated[dict[str, str], "Columns that no model reads, each with the reason."]
    operating: Annotated[OperatingDict | None, "The operating point; null for more than two classes."]
    parameters: Annotated[dict[str, Any], "Options of the command and parameters of the estimator."]
    seconds: Annotated[float, "Seconds that it took."]
    training_rows: Annotated[int, "Rows that were fitted."]
    held_out: NotRequired[Annotated[EvaluationDict, "Figures on held-out rows; absent with --test 0."]]
    novelty: Annotated[NoveltyDict | None, "Whether held-out rows of another file or time are unlike."]


class ScorePrevalenceDict(TypedDict):
    trained: Annotated[float, "Share of the positive class in training."]
    used: Annotated[float, "Share that probabilities are for."]
    estimate: Annotated[float | None, "Share that the scores suggest."]
    low: Annotated[float | None, "Lower end of its 95 % interval."]
    high: Annotated[float | None, "Upper end of its 95 % interval."]


class ScoreFilesDict(ResultFilesDict):
    shard: Annotated[str | None, "Part K/N of the inputs; null for all."]


class ScoreDict(TypedDict):
    """A scored table: how many records were called what, and whether that was to be expected."""

    rows: Annotated[int, "Rows with results; in a folder also those that were scored before."]
    operating: Annotated[OperatingDict | None, "The operating point; null for more than two classes."]
    bad_rows: Annotated[int, "Rows that could not be read."]
    bad_rows_file: Annotated[str | None, "File, or folder, of rows that were set aside; null if none were."]
    top: NotRequired[Annotated[BudgetDict | None, "With --top: what held-out rows show at the rate of these alerts."]]
    top_tied: NotRequired[Annotated[int, "With --top: records that tie for its last places, none of which is called."]]
    predicted: Annotated[dict[str, int], "Rows by the class that they were called."]
    alerts: NotRequired[Annotated[int, "Rows called positive; of two classes alone, as are the next six."]]
    alert_rate: NotRequired[Annotated[float | None, "Their share; null without rows."]]
    expected_alert_rate: NotRequired[Annotated[float | None, "Share that held-out rows say to expect."]]
    expected_low: NotRequired[Annotated[float | None, "Smallest share that is no surprise."]]
    expected_high: NotRequired[Annotated[float | None, "Largest share that is no surprise."]]
    standard_errors: NotRequired[Annotated[float | None, "By how many standard errors it is above the expected one."]]
    drift: NotRequired[Annotated[Literal["none", "up", "down"] | None, "Whether it is beyond them; null if not known."]]
    prevalence: Annotated[ScorePrevalenceDict | None, "How frequent the positive class is; null if not known."]
    novelty: Annotated[NoveltyDict, "Whether records are unlike the training rows."]
    output: Annotated[str, "File or folder that was written."]
    files: NotRequired[Annotated[ScoreFilesDict, "With a folder as output: what was done."]]
    difference: Annotated[DifferenceDict, "How the table differs from the contract."]


class EvaluateDict(EvaluationDict):
    """A model's decisions compared with the classes in a table."""

    source: Annotated[Literal["table", "held-out"], "Rows that figures are of."]
    bad_rows: Annotated[int, "Rows that could not be read, and were left out."]
    operating: Annotated[OperatingDict | None, "The operating point; null for more than two classes."]
    budgets: NotRequired[Annotated[list[BudgetDict], "With --budgets: each on the labeled rows."]]
    novelty: Annotated[NoveltyDict, "Whether records are unlike the training rows."]


class ContractColumnDict(TypedDict):
    name: Annotated[str, "Name."]
    kind: Annotated[Literal["number", "boolean", "category", "date"], "Kind."]
    missing: Annotated[bool, "Whether cells may be missing."]
    levels: Annotated[list[str], "Levels of a category."]
    open: Annotated[bool, "Whether further levels are no surprise."]
    spelling: Annotated[str, "How cells were written."]
    missing_values: Annotated[list[str], "Cells that are read as missing besides empty ones."]


class InspectDict(TypedDict):
    """What a saved model is, which columns it needs and what it showed on held-out rows."""

    importances: Annotated[dict[str, float] | None, "Mean absolute contributions, the largest first."]
    budgets: NotRequired[Annotated[list[BudgetDict], "With --budgets: each by the held-out curve."]]
    sha256: Annotated[str, "Hash of the model."]
    parent: Annotated[str | None, "Hash of the model that it was made from."]
    versions: Annotated[dict[str, str | None], "Versions that wrote it."]
    method: Annotated[str, "Method that decides."]
    refinement: Annotated[str, "Whether a circuit corrects it: none, or how."]
    classes: Annotated[list[Label], "Classes, in the order of scores."]
    cut: Annotated[float | None, "Cut in log-odds; null for the likeliest class."]
    operating: Annotated[OperatingDict | None, "The operating point; null for more than two classes."]
    priors: Annotated[list[float] | None, "Class shares of the training rows."]
    expected_priors: Annotated[list[float] | None, "Class shares that probabilities are for."]
    target: Annotated[str | None, "Column of the classes."]
    columns: Annotated[list[ContractColumnDict], "Columns that the model reads."]
    left_out: Annotated[dict[str, str], "Columns that no model reads, each with the reason."]
    encoded_columns: Annotated[list[str], "Numbers that columns are encoded by."]
    groups: Annotated[list[list[str]], "Groups of encoded columns."]
    alpha: Annotated[float | None, "Weight of distance against angle, in the nearest-medoid method."]
    medoids: Annotated[list[TrainingRowDict], "Medoids."]
    known_records: Annotated[int, "Training rows kept as neighbors."]
    raw_rows: Annotated[bool, "Whether medoids are kept as rows of the table."]
    row_hashes: Annotated[int, "Hashes of training rows that are kept."]
    parameters: Annotated[dict[str, Any], "Options of the command and parameters of the estimator."]
    metrics: Annotated[dict[str, Any], "Figures that the fit printed."]
    training_rows: Annotated[int | None, "Rows that the model was fitted on; null if not known."]


class ImportanceDict(TypedDict):
    """Mean absolute contribution of every column to decisions."""

    rows: Annotated[int | None, "Rows of the table; null for training rows."]
    importances: Annotated[dict[str, float], "By column, the largest first."]


class ExportDict(TypedDict):
    """A model in another language."""

    output: Annotated[str, "File that was written."]
    format: Annotated[Literal["js", "sql", "onnx"], "The language."]
    dialect: Annotated[Literal["duckdb", "sqlite", "postgres"] | None, "The database that SQL is for, or null."]
    bytes: Annotated[int, "Size of the file."]
    model: Annotated[str | None, "SHA-256 of the model file, which the export names."]
    checks: NotRequired[Annotated[list[EngineCheckDict], "With --check: what each engine finds in the table."]]


class CircuitExportDict(TypedDict):
    """A model's circuit for other tools."""

    format: Annotated[Literal["qpy", "qasm", "qasm-plain", "text"], "How it is written."]
    description: Annotated[TrainedCircuitDict | PairCircuitDict, "From its outcomes to a probability or a distance."]
    content: NotRequired[Annotated[str, "The circuit, QPY in base 64; absent where a file was written."]]
    output: NotRequired[Annotated[str, "File that was written."]]


class CircuitPlanCommandDict(TypedDict):
    """What a measurement of a table on a quantum device takes."""

    where: Annotated[CircuitPlace, "What circuits would run on."]
    plan: Annotated[CircuitPlanDict, "Circuits, jobs, shots and expected errors."]
    service_seconds: NotRequired[
        Annotated[
            float | None, "With --dry-run: how long the device takes, by its service; null where it does not say."
        ]
    ]


class DataFetchDict(TypedDict):
    """A data set that was written to a file."""

    name: Annotated[str, "Data set."]
    path: Annotated[str, "File that was written."]
    rows: Annotated[int, "Rows."]
    target: Annotated[str, "Column of the classes."]


class DataSetDict(TypedDict):
    rows: Annotated[int, "Rows."]
    columns: Annotated[int, "Columns, with the target."]
    target: Annotated[str, "Column of the classes."]
    positive: Annotated[str, "Class to look for."]
    source: Annotated[str, "Where it comes from."]
    licence: Annotated[str, "License of its authors."]
    file: Annotated[str | None, "File in the package, if it ships."]
    here: Annotated[bool, "Whether it is on this machine."]
    status: Annotated[str, "The same in a word."]
    problem: Annotated[str, "What is wrong with it; empty if nothing is."]


class DataListDict(TypedDict):
    """The data sets by name."""

    notes: Annotated[list[str], "What is wrong with files of the sets."]
    sets: Annotated[dict[str, DataSetDict], "The sets by name."]


class DemoRowsDict(TypedDict):
    training: Annotated[int, "Rows that the model was fitted to."]
    test: Annotated[int, "Rows that it has not seen."]


class DemoExplainedDict(TypedDict):
    row: Annotated[int, "The row of the table, counted from 0."]
    sentences: Annotated[list[str], "Why it is so decided."]


class DemoFilesDict(TypedDict):
    table: Annotated[str, "The table, as CSV."]
    model: Annotated[str, "The saved model."]
    report: Annotated[str, "The report, a web page."]


class DemoDict(TypedDict):
    """A fit of a shipped table."""

    rows: Annotated[DemoRowsDict, "Rows of the table."]
    verdict: Annotated[list[str], "How good the model is, in sentences."]
    held_out: Annotated[EvaluationDict, "What the model shows on the test rows."]
    explained: Annotated[DemoExplainedDict, "One decision about a test row."]
    files: Annotated[DemoFilesDict, "Files that were written."]
    seconds: Annotated[float, "Seconds that all of it took."]


class StudyTableDict(TypedDict):
    title: Annotated[str, "Title."]
    columns: Annotated[list[str], "Names of the columns."]
    rows: Annotated[list[list[Cell]], "Cells, row by row."]


class ReproduceDict(TypedDict):
    """The paper's experiments, run again."""

    provenance: Annotated[dict[str, str], "Command, versions and hashes."]
    findings: Annotated[list[str], "What the run shows, in sentences."]
    tables: Annotated[dict[str, StudyTableDict], "Tables by name."]
    folder: Annotated[str, "Folder that was written."]
    files: Annotated[list[str], "Files in it."]


DOCUMENTS: dict[str, Any] = {
    "check": CheckDict,
    "circuit export": CircuitExportDict,
    "circuit plan": CircuitPlanCommandDict,
    "circuit run": CircuitRunDict,
    "data fetch": DataFetchDict,
    "data list": DataListDict,
    "demo": DemoDict,
    "diff": DiffDict,
    "effect": EffectDict,
    "error": ErrorDict,
    "evaluate": EvaluateDict,
    "explain": ExplainDict,
    "export": ExportDict,
    "fit": FitDict,
    "importance": ImportanceDict,
    "inspect": InspectDict,
    "recalibrate": RecalibrateDict,
    "report": ReportDict,
    "reproduce": ReproduceDict,
    "schema": dict[str, Any],
    "score": ScoreDict,
    "stability": StabilityDict,
}
"""The document of each command, and that of an error."""
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def names() -> list[str]:
    """Commands that have a schema, such as ``"data list"``, and ``"error"``."""
    return sorted(DOCUMENTS)


@command("qmedoid schema score")
def run(
    command: Annotated[Names, argument("COMMAND", "Command, such as score or data list; or error.")] = None,
    *,
    json: Json = False,
) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Without a command, it lists the schemas.
    """
    if command:
        print_json(schema_of(" ".join(command)), with_notes=False)
    elif json:
        print_json({name: schema_of(name) for name in names()}, with_notes=False)
    else:
        rows = [(name, printable(_about(name))) for name in names()]
        show(grid(("schema", "what is printed"), rows, left=(0, 1)))


def schema_of(name: str) -> dict[str, Any]:
    """The schema of one command, complete in itself: documents within it are in ``$defs``."""
    if name not in DOCUMENTS:
        raise ParameterError(f"There is no schema of {name!r}: there are those of {some_of(names(), 99)}.")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": _about(name)}
    kind = DOCUMENTS[name]
    if not is_typeddict(kind):
        return {**head, **_schema(kind, {})}
    parts: dict[str, Any] = {}
    hints = {"notes": Notes, **get_type_hints(kind, include_extras=True)}
    document = {**head, **_object(hints, parts)}
    return document | ({"$defs": dict(sorted(parts.items()))} if parts else {})


def _about(name: str) -> str:
    kind = DOCUMENTS[name]
    return (
        str(kind.__doc__) if is_typeddict(kind) else "The JSON Schemas of all commands by name, or that of one command."
    )


def _object(hints: Mapping[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a typed dictionary by the types of its keys."""
    required = [key for key, hint in hints.items() if get_origin(hint) is not NotRequired]
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required,
        "properties": {key: _schema(hint, parts) for key, hint in hints.items()},
    }


def _schema(kind: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; typed dictionaries go into `parts`."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return _schema(inside[0], parts)
    if origin is Annotated:
        more = [one if isinstance(one, Mapping) else {"description": one} for one in inside[1:]]
        return {key: value for found in (_schema(inside[0], parts), *more) for key, value in found.items()}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin in (Union, UnionType):
        return _any_of([_schema(one, parts) for one in inside])
    if origin is list:
        return {"type": "array", **({} if inside[0] is Any else {"items": _schema(inside[0], parts)})}
    if origin is dict:
        return {"type": "object", **({} if inside[1] is Any else {"additionalProperties": _schema(inside[1], parts)})}
    if kind is Any:
        return {}
    if not is_typeddict(kind):
        return {"type": _PLAIN[kind]}
    # The name of a class in lower case, such as row_contribution.
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__.removesuffix("Dict")).lower()
    if name not in parts:
        about = {"description": kind.__doc__} if kind.__doc__ else {}
        parts[name] = {**about, **_object(get_type_hints(kind, include_extras=True), parts)}
    return {"$ref": f"#/$defs/{name}"}


def _any_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of several schemas; where they are no parts, as one with several types."""
    if any("$ref" in one for one in found):
        return {"anyOf": list(found)}
    merged = {key: value for one in found for key, value in one.items()}
    if "enum" in merged:
        return {"enum": [value for one in found for value in one.get("enum", [None])]}
    return {**merged, "type": [one["type"] for one in found]}
