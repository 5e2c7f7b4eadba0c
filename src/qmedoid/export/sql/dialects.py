"""What databases write in different ways, expressions of moderate depth, and the chain of subqueries."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from qmedoid.arrays import Array
from qmedoid.exceptions import ModelError, ParameterError

DialectName = Literal["duckdb", "sqlite", "postgres"]
DIALECTS: tuple[DialectName, ...] = get_args(DialectName)

# What a text is stripped of: the blanks of Unicode.
_BLANKS = (9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)
# Bytes of a name beyond which PostgreSQL cuts it off.
_MOST_NAME_BYTES = 63
# The smallest exponent whose power PostgreSQL can multiply without an underflow, which it takes for an error.
_SMALLEST_EXPONENT = -600.0


@dataclass(frozen=True)
class SqlDialect:
    """One way to write SQL."""

    name: DialectName
    double: str  # name of the type
    text: str
    most_columns: int  # that a subquery may have
    binary: str  # collation that compares texts byte by byte

    def number(self, value: float) -> str:
        """A double, exactly; a negative one in parentheses, since two minus signs begin a comment."""
        digits = repr(float(value) + 0.0).removesuffix(".0")
        digits = digits if "e" in digits else digits + "e0"
        if self.name == "postgres":  # a plain literal would be a decimal number there
            return f"float8'{digits}'"
        return f"({digits})" if digits.startswith("-") else digits

    def string(self, value: str) -> str:
        """A text."""
        if "\0" in value:
            raise ModelError(f"The text {value[:40]!r} holds a NUL character, which no text in SQL can.")
        return "'" + value.replace("'", "''") + "'"

    def identifier(self, name: str) -> str:
        """The name of a column or a table."""
        if "\0" in name or not name:
            raise ModelError(f"A column is called {name!r}, which no name in SQL can be.")
        return '"' + name.replace('"', '""') + '"'

    def folded(self, name: str) -> str:
        """A name such that two with the same are one to the database."""
        if self.name == "postgres":
            return name.encode()[:_MOST_NAME_BYTES].decode(errors="ignore")
        return re.sub("[A-Z]", lambda letter: letter[0].lower(), name)

    def label(self, value: object) -> str:
        """A class as it stands in the target column."""
        if isinstance(value, bool):
            return str(int(value)) if self.name == "sqlite" else str(value).upper()
        if isinstance(value, int):
            return f"({value})" if value < 0 else str(value)
        return self.number(value) if isinstance(value, float) else self.string(str(value))

    def trimmed(self, text: str) -> str:
        """A text without blanks around it."""
        if self.name == "sqlite":
            return f"TRIM({text},CHAR({','.join(map(str, _BLANKS))}))"
        blanks = "||".join(f"CHR({code})" for code in _BLANKS)
        return f"{'TRIM' if self.name == 'duckdb' else 'BTRIM'}({text},{blanks})"

    def exactly(self, text: str) -> str:
        """A text that is compared byte by byte, whatever the collation of its column."""
        return f"({text} COLLATE {self.binary})"

    def matches(self, text: str, pattern: str) -> str:
        """Whether a text has a part that matches a regular expression, which SQLite does not know."""
        quoted = self.string(pattern)
        return f"REGEXP_MATCHES({text},{quoted})" if self.name == "duckdb" else f"{text} ~ {quoted}"

    def is_one_of(self, text: str, words: Iterable[str]) -> str:
        """Whether a text is one of some words; in DuckDB a long list of texts takes long to plan."""
        words = list(dict.fromkeys(words))
        if self.name == "sqlite":
            return f"{self.exactly(text)} IN ({','.join(map(self.string, words))})"
        return self.matches(text, f"^({'|'.join(map(re.escape, words))})$")

    def has_digits(self, text: str) -> str:
        """Whether a text has digits in it, in DuckDB those of any script."""
        if self.name == "sqlite":
            return f"{text} GLOB '*[0-9]*'"
        return self.matches(text, r"\p{Nd}" if self.name == "duckdb" else "[0-9]")

    def if_text(self, cell: str, value: str, other: str) -> str:
        """A value for a cell that is a text, and another one else; DuckDB decides it once for a column."""
        name, is_text = {
            "duckdb": (f"TYPEOF({cell})", "='VARCHAR'"),
            "sqlite": (f"TYPEOF({cell})", " IN ('text','blob')"),
            "postgres": (f"CAST(PG_TYPEOF({cell}) AS text)", " IN ('text','character varying','character')"),
        }[self.name]
        return f"CASE WHEN {name}{is_text} THEN {value} ELSE {other} END"

    def exp(self, exponent: str) -> str:
        """The exponential of an expression that is at most moderate."""
        if self.name == "postgres":
            exponent = f"GREATEST({exponent},{self.number(_SMALLEST_EXPONENT)})"
        return f"EXP({exponent})"

    def least(self, *values: str) -> str:
        """The smallest of values."""
        word = "MIN" if self.name == "sqlite" else "LEAST"
        return in_parts(values, lambda some: some[0] if len(some) == 1 else f"{word}({','.join(some)})")

    def greatest(self, *values: str) -> str:
        """The largest of values."""
        word = "MAX" if self.name == "sqlite" else "GREATEST"
        return in_parts(values, lambda some: some[0] if len(some) == 1 else f"{word}({','.join(some)})")


_DIALECTS = {
    "duckdb": SqlDialect("duckdb", "DOUBLE", "VARCHAR", 10_000, '"C"'),
    "sqlite": SqlDialect("sqlite", "REAL", "TEXT", 2000, "BINARY"),
    "postgres": SqlDialect("postgres", "double precision", "text", 1664, '"C"'),
}


def dialect_of(name: str) -> SqlDialect:
    """The dialect of a name."""
    if name not in _DIALECTS:
        raise ParameterError(f"The 'dialect' parameter must be one of {list(DIALECTS)}. Got {name!r} instead.")
    return _DIALECTS[name]


# Terms side by side: SQLite nests a sum of n terms n deep, and allows 1,000 levels; its functions take 127 arguments.
_SIDE_BY_SIDE = 64


def in_parts(terms: Sequence[str], join: Callable[[Sequence[str]], str]) -> str:
    """Terms joined in parts, and these in turn."""
    while len(terms) > _SIDE_BY_SIDE:
        terms = [join(terms[start : start + _SIDE_BY_SIDE]) for start in range(0, len(terms), _SIDE_BY_SIDE)]
    return join(terms)


def total(terms: Sequence[str], zero: str) -> str:
    """The sum of terms; `zero` where there are none."""
    return in_parts(terms, lambda some: f"({'+'.join(some)})" if len(some) > 1 else some[0]) if terms else zero


def joined(texts: Sequence[str]) -> str:
    """Texts end to end."""
    return in_parts(texts, lambda some: f"({'||'.join(some)})")


def choice(x: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """The result of the interval that x lies in, by bisection: one more than there are cuts, in rising order."""
    if not cuts:
        return results[0]
    middle = len(cuts) // 2
    below = choice(x, cuts[:middle], results[: middle + 1])
    above = choice(x, cuts[middle + 1 :], results[middle + 1 :])
    return f"CASE WHEN {x}<{cuts[middle]} THEN {below} ELSE {above} END"


def curve(dialect: SqlDialect, x: str, knots: Array, heights: Array, rises: Array) -> str:
    """A function that is linear from each knot on, with its rise, and constant outside of them."""
    last = len(knots) - 1
    # Of knots in one place the last one counts.
    kept = [place for place in range(last + 1) if place == last or knots[place] < knots[place + 1]]
    results = [dialect.number(heights[0])]
    for place in kept:
        height = dialect.number(heights[place])
        if place == last or rises[place] == 0:
            results.append(height)
        else:
            results.append(f"{dialect.number(rises[place])}*({x}-{dialect.number(knots[place])})+{height}")
    return choice(x, [dialect.number(knots[place]) for place in kept], results)


def times(dialect: SqlDialect, factor: float, value: str) -> str:
    """A value times a number; the value alone where this is 1."""
    return value if factor == 1.0 else f"{dialect.number(factor)}*{value}"


_NAME = re.compile(r"\b[a-z]+[0-9]+\b")
RECORD = "qmedoid_record"
"""What a record of the user's table is called."""
STAGE = "qmedoid_stage"
"""What subqueries are called, with a number behind it."""


class Stages:
    """Columns in the order in which they are computed; a column may use those of earlier stages only.

    Names are a letter or two and a number, so that none is a word of SQL. A column is carried on as long as a later
    stage names it.
    """

    def __init__(self, dialect: SqlDialect) -> None:
        self.dialect = dialect
        self._stages: list[dict[str, str]] = [{}]
        self._counts: dict[str, int] = {}

    def add(self, prefix: str, expression: str) -> str:
        """A column of this stage; its name."""
        number = self._counts.get(prefix, 0)
        self._counts[prefix] = number + 1
        self._stages[-1][f"{prefix}{number}"] = expression
        return f"{prefix}{number}"

    def next(self) -> None:
        """Begin another stage."""
        if self._stages[-1]:
            self._stages.append({})

    def query(self, table: str, outputs: dict[str, str]) -> str:
        """The statement: the columns of the table, then the outputs, which are expressions over the last stage."""
        # In a stage of their own: beside the table's columns, a name of theirs may be that of one.
        self.next()
        outputs = {name: self.add("y", expression) for name, expression in outputs.items()}
        stages = [stage for stage in self._stages if stage]
        needed: list[set[str]] = [set() for _ in stages]
        later = _names(outputs.values())
        for place in range(len(stages) - 1, -1, -1):
            needed[place] = set(later)
            later = (later - set(stages[place])) | _names(stages[place].values())
        lines, before, known = [], f"{table} AS {RECORD}", list[str]()
        is_sqlite = self.dialect.name == "sqlite"
        for place, stage in enumerate(stages):
            columns = [name for name in known if name in needed[place]]
            width = len(columns) + len(stage) + 1
            if width > self.dialect.most_columns:
                raise ModelError(
                    f"The model reads so many columns that a subquery would have {width:,}, and {self.dialect.name} "
                    f"allows {self.dialect.most_columns:,}: export it as js or onnx."
                )
            record = "r0" if place else f"{RECORD}{'._rowid_' if is_sqlite else ''} AS r0"
            added = [f"{expression} AS {name}" for name, expression in stage.items()]
            lines.append(self._subquery(place, [record, *columns, *added], before))
            known, before = columns + list(stage), f"{STAGE}{place}"
        chosen = ",\n".join(f"{before}.{column} AS {name}" for name, column in outputs.items())
        every, source = ("r0.*" if self.dialect.name == "duckdb" else "(r0).*"), before
        if is_sqlite:
            every, source = f"{RECORD}.*", f"{table} AS {RECORD} JOIN {before} ON {before}.r0={RECORD}._rowid_"
        return "WITH " + ",\n".join(lines) + f"\nSELECT {every},\n{chosen}\nFROM {source};\n"

    def _subquery(self, place: int, columns: list[str], source: str) -> str:
        # SQLite and PostgreSQL would else put the text of a column wherever it is named. An offset keeps PostgreSQL
        # from it, row by row, without storing a table; DuckDB computes a column once.
        name = f"{STAGE}{place} AS {'MATERIALIZED ' if self.dialect.name == 'sqlite' else ''}"
        fence = " OFFSET 0" if self.dialect.name == "postgres" else ""
        return f"{name}(SELECT {','.join(columns)} FROM {source}{fence})"


def _names(expressions: Iterable[str]) -> set[str]:
    return {name for expression in expressions for name in _NAME.findall(expression)}
