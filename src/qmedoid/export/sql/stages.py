"""A chain of subqueries, each of which adds columns to those of the one before it."""

import re
from collections.abc import Iterable

from qmedoid.exceptions import ModelError
from qmedoid.export.sql.dialects import SqlDialect

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
