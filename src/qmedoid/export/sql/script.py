"""A model as one SELECT over a table of records."""

import json

import numpy as np

from qmedoid._version import __version__
from qmedoid.arrays import Array
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.export.sql.cells import read_columns
from qmedoid.export.sql.dialects import RECORD, STAGE, SqlDialect, Stages, curve, dialect_of, times, total
from qmedoid.export.writing import check_exported, part_writer
from qmedoid.kernels.ties import TIE
from qmedoid.model.model import Model

_LOWEST = -1e300


def _weighted(model: Model, stages: Stages, outputs: list[list[str]], k: int) -> list[str]:
    weights = model.weights.tolist()
    return [
        times(stages.dialect, weight, names[k])
        for weight, names in zip(weights, outputs, strict=True)
        if weight and names
    ]


def _straightened(model: Model, stages: Stages, straight: list[str], shift: Array | None) -> list[str]:
    """Scores after the calibration curve and at the expected priors."""
    stages.next()
    number, knots, heights = stages.dialect.number, model.calibration.knots, model.calibration.heights
    if len(knots):
        rises = np.append(np.diff(heights) / np.diff(knots), 0.0)
        straight = [stages.add("f", f"{x}+{curve(stages.dialect, x, knots, heights, rises)}") for x in straight]
        stages.next()
    if shift is None:
        return straight
    moved = [stages.add("f", f"{x}+{number(one)}") for x, one in zip(straight, shift.tolist(), strict=True)]
    stages.next()
    return moved


def _of_two(model: Model, stages: Stages, outputs: list[list[str]]) -> dict[str, str]:
    """The decision about two classes by the log-odds of the second, by name."""
    dialect, decision, calibration = stages.dialect, model.decision, model.calibration
    number, slope = dialect.number, float(calibration.slope)
    bias = model.biases[1] - model.biases[0]
    terms = [number(bias), *_weighted(model, stages, outputs, 0)]
    constant = number(calibration.biases[1] - calibration.biases[0])
    straight = [stages.add("f", f"{constant}+{times(dialect, slope, total(terms, ''))}")]
    shift = None if decision.shift is None else np.array([decision.shift.of_log_odds])
    (log_odds,) = _straightened(model, stages, straight, shift)
    margin = stages.add("f", log_odds if decision.cut is None else f"{log_odds}-{number(decision.cut)}")
    found = dict[str, str]()
    if decision.probabilistic:
        # Of an exponent that is not positive, so that nothing overflows.
        power = dialect.exp(f"(-ABS({log_odds}))")
        name = stages.add("p", power)
        stages.next()
        one, zero = number(1.0), number(0.0)
        share = f"CASE WHEN {log_odds}<{zero} THEN {name} ELSE {one} END/({one}+{name})"
        found["probability"] = stages.add("p", share)
    even = number(TIE if decision.cut is None and decision.probabilistic else 0.0)
    first, second = (dialect.label(label) for label in decision.classes)
    return {"prediction": f"CASE WHEN {margin}>{even} THEN {second} ELSE {first} END", **found, "margin": margin}


def _of_more(model: Model, stages: Stages, outputs: list[list[str]], classes: list[str]) -> dict[str, str]:
    """The decision about more classes by their scores, by name."""
    dialect, decision, calibration = stages.dialect, model.decision, model.calibration
    number, slope = dialect.number, float(calibration.slope)
    straight = list[str]()
    for c, (bias, constant) in enumerate(zip(model.biases.tolist(), calibration.biases.tolist(), strict=True)):
        terms = [number(bias), *_weighted(model, stages, outputs, c)]
        straight.append(stages.add("f", f"{number(constant)}+{times(dialect, slope, total(terms, ''))}"))
    shift = None if decision.shift is None else decision.shift.log_ratios
    scores = biased = _straightened(model, stages, straight, shift)
    if decision.biases is not None:
        biased = [
            stages.add("f", f"{x}+{number(one)}") for x, one in zip(scores, decision.biases.tolist(), strict=True)
        ]
        stages.next()
    best = stages.add("l", dialect.greatest(*biased))
    highest = best if biased is scores else stages.add("l", dialect.greatest(*scores))
    stages.next()
    slack = number(TIE) if decision.probabilistic else f"{number(TIE)}*ABS({best})"
    code = _first_place(stages, biased, f"{best}-{slack}")
    place = _first_place(stages, biased, best)
    powers = [stages.add("p", dialect.exp(f"{x}-{highest}")) for x in scores] if decision.probabilistic else []
    stages.next()
    lowest = number(_LOWEST)
    rest = [f"CASE WHEN {place}={c} THEN {lowest} ELSE {x} END" for c, x in enumerate(biased)]
    margin = stages.add("f", f"{best}-{dialect.greatest(*rest)}")
    sum_of_powers = stages.add("p", total(powers, number(0.0)))
    stages.next()
    chances = [stages.add("p", f"{power}/{sum_of_powers}") for power in powers]
    cases = " ".join(f"WHEN {c} THEN {dialect.label(label)}" for c, label in enumerate(decision.classes))
    return {
        "prediction": f"CASE {code} {cases} END",
        **{f"probability_{one}": text for one, text in zip(classes, chances, strict=False)},
        **{f"score_{one}": text for one, text in zip(classes, scores, strict=True)},
        "margin": margin,
    }


def _first_place(stages: Stages, values: list[str], least: str) -> str:
    """The number of the first value that is no smaller than another."""
    cases = " ".join(f"WHEN {x}>={least} THEN {c}" for c, x in enumerate(values))
    return stages.add("j", f"CASE {cases} END")


TABLE = "records"
"""Name of the table where none is given."""
# Characters of a class that the name of a column repeats at most.
_LONGEST_CLASS = 40


def sql_file(model: Model, sha256: str | None = None, *, dialect: str = "duckdb", table: str = TABLE) -> bytes:
    """A model as one SELECT: all columns of a table, then what the model says of each record.

    Parameters
    ----------
    model : Model
    sha256 : str or None
        Of the model file.
    dialect : {"duckdb", "sqlite", "postgres"}
    table : str
        Name of the table; a schema may stand before it, with a point between the two.

    Raises
    ------
    ModelError
        The model keeps rows that SQL would have to search, or has names that the database cannot tell apart.
    """
    check_exported(model)
    language = dialect_of(dialect)
    _check_names(model, language)
    stages = Stages(language)
    first = np.cumsum([0, *(len(encoding.outputs) for encoding in model.encodings)]).tolist()
    read = [(model.contract.columns[place], model.encodings[place], first[place]) for place in model.layout.used]
    encoded, refused, issues = read_columns(stages, read, set(model.columns.tolist()))
    outputs, nearest = list[list[str]](), list[str]()
    for part, weight in reversed(list(zip(model.parts, model.weights.tolist(), strict=True))):
        names, rows = part_writer("sql", part)(part, stages, encoded, weight > 0)
        outputs.insert(0, names)
        nearest = rows if part is model.medoid_part else nearest
    # Classes are parts of names by their texts where these are short and plain and all different, else by their codes.
    classes = [str(label) for label in model.decision.classes]
    are_plain = all(0 < len(one.encode()) <= _LONGEST_CLASS and one.isprintable() for one in classes)
    if not are_plain or len({language.folded(one) for one in classes}) < len(classes):
        classes = [str(code) for code in range(len(classes))]
    named = _of_two(model, stages, outputs) if len(classes) == 2 else _of_more(model, stages, outputs, classes)
    named |= {f"nearest_{one}": text for one, text in zip(classes, nearest, strict=True)}
    named = {_free(name, model, language): text for name, text in named.items()}
    named = {name: f"CASE {refused} WHEN 0 THEN {text} END" for name, text in named.items()}
    named[_free("issues", model, language)] = f"NULLIF(SUBSTR({issues},3),'')"
    query = stages.query(_table(table, language), {language.identifier(name): text for name, text in named.items()})
    return (_header(model, sha256, language, table, list(named)) + query).encode()


def _free(name: str, model: Model, dialect: SqlDialect) -> str:
    """A name for an output that no column of the training table has."""
    contract = model.contract
    taken = {dialect.folded(one) for one in (*contract.names, *contract.left_out, contract.target or "")}
    while dialect.folded(name) in taken:
        name = f"qmedoid_{name}"
    return name


def _check_names(model: Model, dialect: SqlDialect) -> None:
    """Refuse columns that the database cannot tell apart."""
    seen: dict[str, str] = {}
    for place in model.layout.used:
        name = model.contract.columns[place].name
        other = seen.setdefault(dialect.folded(name), name)
        if other != name:
            raise ModelError(f"The columns {other!r} and {name!r} are one to {dialect.name}: rename one and fit again.")
        if dialect.folded(name) in ("_rowid_", RECORD):
            raise ModelError(f"The column {name!r} has a name that the statement needs: rename it and fit again.")


def _table(name: str, dialect: SqlDialect) -> str:
    parts = name.split(".")
    if not all(parts) or "\0" in name or dialect.folded(parts[-1]).startswith(STAGE):
        raise ParameterError(f"The 'table' parameter must be the name of a table. Got {name!r} instead.")
    return ".".join(dialect.identifier(part) for part in parts)


def _header(model: Model, sha256: str | None, dialect: SqlDialect, table: str, outputs: list[str]) -> str:
    """Comments that say what the statement is; names are written in ASCII, so that none ends its comment."""
    classes = ", ".join(json.dumps(label) for label in model.decision.classes)
    lines = [
        f"A model of qmedoid {__version__}, SHA-256 {sha256 or 'not known'}, for {dialect.name}.",
        f"Selects all columns of the table {json.dumps(table)}, and of every record {json.dumps(outputs)[1:-1]}.",
        f"Classes: {classes}. A nearest medoid is given by its row of the training table, counted from 0.",
        "The issues of a record are NULL where its cells are as in the training table.",
        "Where a column has a type that cannot hold what it held in training, or a number is written otherwise, the "
        "results are NULL too, and the issues say why.",
    ]
    if any(column.kind == "category" for column in model.contract.columns):
        lines.append("Levels are compared letter by letter: one that only looks the same is a new level.")
    if dialect.name == "duckdb":
        lines.append("Read CSV files by read_csv(..., all_varchar=true): DuckDB may else take yes for a truth value.")
    if dialect.name == "sqlite":
        lines.append("The table must be one with rowids, not a view; EXP and SQRT need the math functions of SQLite.")
    return "".join(f"-- {line}\n" for line in lines)
