"""A model as one SELECT over a table of records."""

import json

import numpy as np

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.export.flat import FlatModel
from qmedoid.export.sql.cells import NumberReading, Reading
from qmedoid.export.sql.dates import DateReading
from qmedoid.export.sql.dialects import Dialect, dialect_of
from qmedoid.export.sql.evidence import Evidence
from qmedoid.export.sql.expressions import joined
from qmedoid.export.sql.levels import LevelReading
from qmedoid.export.sql.nearest_medoid import NearestMedoid
from qmedoid.export.sql.outcome import Outcome, outcome
from qmedoid.export.sql.stages import RECORD, STAGE, Stages
from qmedoid.export.sql.trees import trees
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import EvidencePart
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.part import Part
from qmedoid.model.contract import Column, Dates, Encoding, Levels

TABLE = "records"
"""Name of the table where none is given."""
# Characters of a class that the name of a column repeats at most.
_LONGEST_CLASS = 40

_REFUSALS = {
    "rare": "SQL cannot express a rare-event model, which looks for the nearest of thousands of rows",
    "neighbors": "SQL cannot express the neighbors of this model, which are the nearest of many training rows",
}


def sql_file(flat: FlatModel, *, dialect: str = "duckdb", table: str = TABLE) -> bytes:
    """`as_sql` as bytes of a file."""
    return as_sql(flat, dialect=dialect, table=table).encode()


def as_sql(flat: FlatModel, *, dialect: str = "duckdb", table: str = TABLE) -> str:
    """A model as one SELECT: all columns of a table, then what the model says of each record.

    Parameters
    ----------
    flat : FlatModel
    dialect : {"duckdb", "sqlite", "postgres"}
    table : str
        Name of the table; a schema may stand before it, with a point between the two.

    Raises
    ------
    ModelError
        The model keeps rows that SQL would have to search, or has names that the database cannot tell apart.
    """
    language = dialect_of(dialect)
    _check_names(flat, language)
    stages = Stages(language)
    readings = _readings(flat, stages)
    encoded, fragile, issues = _encoded(flat, stages, readings)
    outputs = [_part(part, weight, stages, encoded) for part, weight in zip(flat.parts, flat.weights[1:], strict=True)]
    base = _base(flat.base, bool(flat.weights[0]), stages, encoded)
    decided = outcome(flat, stages, [base.outputs, *outputs])
    named = _named(flat, language, decided, base.nearest)
    if fragile:
        missing = " OR ".join(f"{name} IS NULL" for name in fragile)
        named = {name: f"CASE WHEN {missing} THEN NULL ELSE {text} END" for name, text in named.items()}
    named[_free("issues", flat, language)] = f"NULLIF(SUBSTR({issues},3),'')"
    query = stages.query(_table(table, language), {language.identifier(name): text for name, text in named.items()})
    return _header(flat, language, table, list(named)) + query


def _readings(flat: FlatModel, stages: Stages) -> list[tuple[Column, Encoding, int, Reading]]:
    """How every column that is read is read, with the number of its first encoded column."""
    table = flat.table
    first = np.cumsum([0, *(len(encoding.outputs) for encoding in table.encodings)]).tolist()
    found = list[tuple[Column, Encoding, int, Reading]]()
    for place in table.layout.used:
        column, encoding = table.contract.columns[place], table.encodings[place]
        found.append((column, encoding, first[place], _reading(stages, column, encoding)))
    return found


def _reading(stages: Stages, column: Column, encoding: Encoding) -> Reading:
    if isinstance(encoding, Levels):
        return LevelReading(stages, column, encoding)
    return (
        DateReading(stages, column, encoding)
        if isinstance(encoding, Dates)
        else NumberReading(stages, column, encoding)
    )


def _encoded(
    flat: FlatModel, stages: Stages, readings: list[tuple[Column, Encoding, int, Reading]]
) -> tuple[dict[int, str], list[str], str]:
    """Names of the encoded columns, those that are NULL where a cell is refused, and the name of the issues."""
    for step in (Reading.cell, Reading.parts, Reading.value):
        for *_, reading in readings:
            getattr(reading, step.__name__)()
        stages.next()
    method = flat.table.method
    wanted = set(method.columns.tolist()) if method is not None else set()
    encoded, fragile, problems = dict[int, str](), list[str](), list[str]()
    for column, _, first, reading in readings:
        problem = stages.add("i", reading.problem())
        name = stages.dialect.string(f"; {column.name}: ")
        problems.append(f"CASE {problem} WHEN '' THEN '' ELSE {name}||{problem} END")
        for place, (expression, may_lack) in enumerate(reading.outputs(), start=first):
            if place in wanted:
                encoded[place] = stages.add("e", expression)
                fragile += [encoded[place]] if may_lack else []
    stages.next()
    return encoded, fragile, stages.add("i", joined(problems))


def _base(base: Part, counts: bool, stages: Stages, encoded: dict[int, str]) -> Evidence | NearestMedoid:
    if isinstance(base, NearestPart):
        return NearestMedoid(base, stages, encoded)
    if isinstance(base, EvidencePart):
        return Evidence(base, stages, encoded, counts)
    raise _refusal(base.name)


def _part(part: Part, weight: float, stages: Stages, encoded: dict[int, str]) -> list[str]:
    """Names of the outputs of a part; none where it counts nothing."""
    if not isinstance(part, ComparisonsPart):
        raise _refusal(part.name)
    return trees(part, stages, encoded) if weight else []


def _refusal(name: str) -> ModelError:
    said = _REFUSALS.get(name, f"SQL cannot express the method {name!r}")
    return ModelError(f"{said}: export the model as js or onnx.")


def _named(flat: FlatModel, dialect: Dialect, decided: Outcome, nearest: list[str]) -> dict[str, str]:
    """Expressions of the outputs by the names of their columns."""
    classes = _class_names(flat, dialect)
    found = {"prediction": decided.prediction}
    if len(classes) == 2:
        found |= dict(zip(["probability"], decided.probabilities, strict=False))
    else:
        found |= {f"probability_{one}": text for one, text in zip(classes, decided.probabilities, strict=False)}
        found |= {f"score_{one}": text for one, text in zip(classes, decided.scores, strict=True)}
    found["margin"] = decided.margin
    found |= {f"nearest_{one}": text for one, text in zip(classes, nearest, strict=True)}
    return {_free(name, flat, dialect): text for name, text in found.items()}


def _class_names(flat: FlatModel, dialect: Dialect) -> list[str]:
    """Classes as parts of names: their texts where these are short and plain and all different, else their codes."""
    texts = [str(label) for label in flat.table.decision.classes]
    are_plain = all(0 < len(text.encode()) <= _LONGEST_CLASS and text.isprintable() for text in texts)
    if are_plain and len({dialect.folded(text) for text in texts}) == len(texts):
        return texts
    return [str(code) for code in range(len(texts))]


def _free(name: str, flat: FlatModel, dialect: Dialect) -> str:
    """A name for an output that no column of the training table has."""
    contract = flat.table.contract
    taken = {dialect.folded(one) for one in (*contract.names, *contract.left_out, contract.target or "")}
    while dialect.folded(name) in taken:
        name = f"qmedoid_{name}"
    return name


def _check_names(flat: FlatModel, dialect: Dialect) -> None:
    """Refuse columns that the database cannot tell apart."""
    seen: dict[str, str] = {}
    for place in flat.table.layout.used:
        name = flat.table.contract.columns[place].name
        other = seen.setdefault(dialect.folded(name), name)
        if other != name:
            raise ModelError(f"The columns {other!r} and {name!r} are one to {dialect.name}: rename one and fit again.")
        if dialect.folded(name) in ("_rowid_", RECORD):
            raise ModelError(f"The column {name!r} has a name that the statement needs: rename it and fit again.")


def _table(name: str, dialect: Dialect) -> str:
    parts = name.split(".")
    if not all(parts) or "\0" in name or dialect.folded(parts[-1]).startswith(STAGE):
        raise ParameterError(f"The 'table' parameter must be the name of a table. Got {name!r} instead.")
    return ".".join(dialect.identifier(part) for part in parts)


def _header(flat: FlatModel, dialect: Dialect, table: str, outputs: list[str]) -> str:
    """Comments that say what the statement is; names are written in ASCII, so that none ends its comment."""
    classes = ", ".join(json.dumps(label) for label in flat.table.decision.classes)
    lines = [
        f"A model of qmedoid {__version__}, SHA-256 {flat.sha256 or 'not known'}, for {dialect.name}.",
        f"Selects all columns of the table {json.dumps(table)}, and of every record {json.dumps(outputs)[1:-1]}.",
        f"Classes: {classes}. A nearest medoid is given by its row of the training table, counted from 0.",
        "The issues of a record are NULL where its cells are as in the training table.",
    ]
    if dialect.name == "sqlite":
        lines.append("The table must be one with rowids, not a view; EXP and SQRT need the math functions of SQLite.")
    return "".join(f"-- {line}\n" for line in lines)
