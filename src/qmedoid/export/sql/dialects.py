"""What databases write in different ways: literals, names, casts, limits."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

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
class Dialect:
    """One way to write SQL.

    Attributes
    ----------
    name : {"duckdb", "sqlite", "postgres"}
    double, text : str
        Names of the types.
    most_columns : int
        Columns that a subquery may have.
    binary : str
        The collation that compares texts byte by byte.
    """

    name: DialectName
    double: str
    text: str
    most_columns: int
    binary: str

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

    def exp(self, exponent: str) -> str:
        """The exponential of an expression that is at most moderate."""
        if self.name == "postgres":
            exponent = f"GREATEST({exponent},{self.number(_SMALLEST_EXPONENT)})"
        return f"EXP({exponent})"

    def least(self, *values: str) -> str:
        """The smallest of a few values."""
        return values[0] if len(values) == 1 else f"{'MIN' if self.name == 'sqlite' else 'LEAST'}({','.join(values)})"

    def greatest(self, *values: str) -> str:
        """The largest of a few values."""
        word = "MAX" if self.name == "sqlite" else "GREATEST"
        return values[0] if len(values) == 1 else f"{word}({','.join(values)})"


_DIALECTS = {
    "duckdb": Dialect("duckdb", "DOUBLE", "VARCHAR", 10_000, '"C"'),
    "sqlite": Dialect("sqlite", "REAL", "TEXT", 2000, "BINARY"),
    "postgres": Dialect("postgres", "double precision", "text", 1664, '"C"'),
}


def dialect_of(name: str) -> Dialect:
    """The dialect of a name."""
    if name not in _DIALECTS:
        raise ParameterError(f"The 'dialect' parameter must be one of {list(DIALECTS)}. Got {name!r} instead.")
    return _DIALECTS[name]
