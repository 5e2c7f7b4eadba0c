"""Rows that cannot be decided about are flagged or set aside, and no other row moves."""

import csv
import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fitted_tables import fitted, raw_table, score, with_column
from qmedoid import EvidenceClassifier, MedoidClassifier
from qmedoid.exceptions import ContractError, DataError
from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.saved import SavedModel
from qmedoid.tables import text_files
from qmedoid.tables.difference import Issues
from qmedoid.tables.evaluating import estimate_in_file
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.source import open_table
from qmedoid.tables.writing import NAMES, find_bad_rows


@pytest.fixture(scope="module")
def model():
    return fitted()[1].model_


def broken_lines(n=60, seed=0, newline="\n"):
    """A text of good and bad lines, the lines of its records, and for bad ones a part of the reason."""
    rng = np.random.default_rng(seed)
    rows = raw_table(n=n, seed=5).to_pylist()
    records, reasons = [], {}
    for number, row in enumerate(rows):
        cells = [f"id {number}", *map(str, row.values())]
        match int(rng.integers(0, 9)):
            case 0:
                cells[1], reasons[number] = "abc", "x1: 'abc' is no number"
            case 1:
                cells[2], reasons[number] = "-inf", "x2: '-inf' is beyond 1e+150"
            case 2:
                cells.append("more"), reasons.update({number: "the line has 7 cells, the header has 6"})
            case 3:
                cells, reasons[number] = cells[:1], "the line has 1 cell, the header has 6"
            case 4:
                cells[4], reasons[number] = "perhaps", "member: 'perhaps' is no truth value"
            case 5:
                cells[0] = f'"id\n{number}"'
        records.append(",".join(cells))
    lines, text = [], newline.join(["id,x1,x2,color,member,y", ""])
    for number, record in enumerate(records):
        text += newline * (number % 11 == 3)  # blank lines are no records
        lines.append(text.count("\n") + 1)
        text += record + newline
    return text, records, reasons, lines


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [300, 1 << 20])
def test_no_row_is_lost_and_none_moves(model, tmp_path, monkeypatch, block, newline):
    monkeypatch.setattr(text_files, "_BLOCK", block)
    monkeypatch.setattr(text_files, "_SAMPLE", min(block, 1 << 18))
    text, records, reasons, lines = broken_lines(newline=newline)
    (tmp_path / "t.csv").write_bytes(text.encode())
    file, out, aside = (str(tmp_path / name) for name in ("t.csv", "o.parquet", "bad.csv"))
    ids = [next(csv.reader(io.StringIO(record, newline="")))[0] for record in records]
    good = [row for row in range(len(records)) if row not in reasons]

    flagged = score(model, file, out, columns=["id"], add=["row"], on_bad_row="flag")
    found = pyarrow.parquet.read_table(out).to_pydict()
    assert (flagged.rows, flagged.bad_rows) == (len(good), len(reasons))
    assert found["row"] == list(range(len(records)))
    assert {row: why for row, why in enumerate(found["flag"]) if why is not None} == reasons
    assert [row for row, label in enumerate(found["prediction"]) if label is None] == sorted(reasons)
    assert all((found[name][row] is None) == (row in reasons) for name in ("score", "margin") for row in found["row"])
    # What stands in which column of a line of another length is not known; all others keep their cells.
    assert all(got in (None if "header" in reasons.get(row, "") else ids[row],) for row, got in enumerate(found["id"]))

    skipped = score(model, file, out, columns=["id"], add=["row"], on_bad_row="skip", bad_rows=aside)
    kept = pyarrow.parquet.read_table(out).to_pydict()
    assert skipped.rows + skipped.bad_rows == len(records)
    assert kept["row"] == good
    assert kept["id"] == [ids[row] for row in good]
    assert kept["score"] == [found["score"][row] for row in good]
    with open(aside, newline="") as opened:  # noqa: PTH123
        set_aside = list(csv.DictReader(opened))
    assert [int(one["row"]) for one in set_aside] == sorted(reasons)
    assert [one["record"] for one in set_aside] == [records[row] for row in sorted(reasons)]
    assert [int(one["line"]) for one in set_aside] == [lines[row] for row in sorted(reasons)]
    assert [one["reason"] for one in set_aside] == [reasons[row] for row in sorted(reasons)]
    assert {one["file"] for one in set_aside} == {file}


def test_good_rows_are_decided_as_without_the_bad_ones(model, tmp_path):
    text, records, reasons, _ = broken_lines()
    clean = "\n".join([text.split("\n")[0], *(one for row, one in enumerate(records) if row not in reasons)]) + "\n"
    (tmp_path / "all.csv").write_text(text)
    (tmp_path / "clean.csv").write_text(clean)
    outs = [tmp_path / "one.parquet", tmp_path / "other.parquet"]
    score(model, str(tmp_path / "clean.csv"), str(outs[0]), add=["reasons", "novelty"])
    aside = str(tmp_path / "bad.csv")
    file = str(tmp_path / "all.csv")
    score(model, file, str(outs[1]), add=["reasons", "novelty"], on_bad_row="skip", bad_rows=aside)
    one, other = map(pyarrow.parquet.read_table, outs)
    assert one.equals(other)
    estimates = [
        estimate_in_file(model, str(tmp_path / name), ScoreSettings(on_bad_row="skip"))
        for name in ("clean.csv", "all.csv")
    ]
    assert estimates[0].prevalence == estimates[1].prevalence


def test_table_is_refused_by_default(model, tmp_path):
    text, *_ = broken_lines()
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match="cells, the header has 6"):
        score(model, str(tmp_path / "t.csv"), str(tmp_path / "o.csv"))
    assert not (tmp_path / "o.csv").exists()


def test_rows_of_other_formats_are_set_aside_with_all_their_cells(model, tmp_path):
    table = with_column(raw_table(n=6), "x1", pa.array([1.0, np.inf, 2.0, 1e200, -1.0, 0.5]))
    table = table.append_column("note", pa.array(["a", "b", "c", "d", "e", "f"]))
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    aside = tmp_path / "bad.parquet"
    scored = score(model, str(tmp_path / "t.parquet"), str(tmp_path / "o.csv"), on_bad_row="skip", bad_rows=str(aside))
    found = pyarrow.parquet.read_table(aside)
    assert (scored.rows, scored.bad_rows, found.column_names) == (4, 2, list(NAMES))
    assert found["row"].to_pylist() == [1, 3]
    assert found["line"].null_count == 2
    assert [json.loads(one)["note"] for one in found["record"].to_pylist()] == ["b", "d"]


def test_in_memory_as_in_a_file(model):
    table, saved = raw_table(n=5), SavedModel(model)
    odd = with_column(table, "x1", pa.array(["1", "abc", " ", "nan", "inf"]))
    with pytest.warns(UserWarning, match="missing cells"):
        found = saved.score_table(odd, columns=["color"], add=["row"], on_bad_row="flag").to_pydict()
    assert [why is None for why in found["flag"]] == [True, False, True, True, False]
    assert [label is None for label in found["prediction"]] == [False, True, False, False, True]
    assert found["color"] == table["color"].to_pylist()
    with pytest.warns(UserWarning, match="missing cells"):
        assert saved.score_table(odd, add=["row"], on_bad_row="skip")["row"].to_pylist() == [0, 2, 3]
    with pytest.raises(ContractError):
        saved.score_table(odd)


def test_unseen_levels_and_missing_cells_are_no_bad_rows(model):
    table = with_column(raw_table(n=3), "color", pa.array(["violet", None, "red"]))
    assert find_bad_rows(model, with_column(table, "x2", pa.nulls(3, pa.float64())), Issues()) is None


def test_cells_that_a_model_cannot_fill_in_are_bad():
    table, _ = fitted()
    numbers = table.select(["x1", "x2"])
    labels = table["y"].to_pylist()
    front = MedoidClassifier(method=EvidenceClassifier(n_medoids=6), random_state=0).fit(numbers.to_pandas(), labels)
    plain = SavedModel(replace(front.model_, encodings=(Numbers(np.nan),) * 2))
    odd = with_column(numbers.slice(0, 3), "x1", pa.array([1.0, None, float("nan")]))
    found = plain.score_table(odd, on_bad_row="flag")["flag"].to_pylist()
    assert found == [None, *["x1 is missing, and the model cannot fill it in"] * 2]


def reader_of(column):
    """What a model with one column reads."""
    layout = SimpleNamespace(used=(0,))
    return SimpleNamespace(contract=Contract((column,)), encodings=(Numbers(0.0),), layout=layout)


@pytest.mark.parametrize(
    ("column", "cells", "bad"),
    [
        (Column("n", "number"), pa.array(["1", " 2.5 ", "", None, "NaN", "-nan", "1e3", "x", "1 2"]), {7, 8}),
        (Column("n", "number"), pa.array([1, 2, None]), set()),
        (Column("n", "number"), pa.array([1.0, np.nan, np.inf, -1e151, None]), {2, 3}),
        (Column("n", "number"), pa.array(["x", "y"]).dictionary_encode(), {0, 1}),
        (Column("n", "number", is_open=True), pa.array(["x", "inf", "1"]), {1}),
        (Column("n", "number", spelling="1.234,5"), pa.array(["1.234,5", "x", " "]), {1}),
        (Column("b", "boolean"), pa.array(["yes", "No", "", None, "2"]), {4}),
        (Column("b", "boolean"), pa.array([0.0, 1.0, 2.0, np.nan]), {2}),
        (Column("d", "date"), pa.array(["2024-01-31", "2024-02-30", "", None, "soon"]), {1, 4}),
        (Column("d", "date", spelling="d.m.y"), pa.array(["31.1.2024", "x", None]), {1}),
    ],
)
def test_bad_cells_are_those_that_are_counted_as_wrong_or_huge(column, cells, bad):
    found = find_bad_rows(reader_of(column), pa.table({column.name: cells}), Issues(trusts_points=True))
    assert bad == (set() if found is None else {row for row, why in enumerate(found.to_pylist()) if why is not None})


@pytest.mark.parametrize(
    ("column", "cells", "n_in_doubt"),
    [
        (Column("d", "date", spelling="d/m/y"), ["01/02/2024", "01/31/2024"], 1),
        (Column("d", "number", spelling="1.234,5"), ["1.234,5", "1,234.5"], 1),
        (Column("d", "number"), ["1.275", "935", "2.500"], 2),
        (Column("d", "number"), ["12.5", "1,234", "x"], 0),
    ],
)
def test_spelling_in_doubt_still_refuses_the_table(column, cells, n_in_doubt):
    issues = Issues()
    find_bad_rows(reader_of(column), pa.table({"d": cells}), issues)
    assert (issues.columns["d"]["respelt"] if "d" in issues.columns else 0) == n_in_doubt


def test_records_of_a_text_are_found_as_they_are_written(tmp_path):
    lines = ["a,b", "1,2", "", '"x\ny",3', "4", "", "5,6,7", '"8","9"']
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with open_table(tmp_path / "t.csv", tolerant=True) as source:
        (batch,) = source.batches(types={"a": pa.string(), "b": pa.string()})
        assert batch.to_pydict() == {"a": ["1", "x\ny", None, None, "8"], "b": ["2", "3", None, None, "9"]}
        assert sorted(source.malformed(len(batch))) == [2, 3]
        written = source.written(range(5))
        assert [text for _, text in written] == ["1,2", '"x\ny",3', "4", "5,6,7", '"8","9"']
        assert [line for line, _ in written] == [2, 4, 6, 8, 9]
