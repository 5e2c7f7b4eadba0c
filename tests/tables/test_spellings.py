"""The same table in many spellings is the same model, or is refused, or a note says which column is not what it was."""

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from spellings import GERMAN, TEXTS, base, spellings, typed

from fitted_tables import score
from qmedoid import MedoidClassifier, NearestMedoidClassifier
from qmedoid.estimators.encoding import fit_encodings
from qmedoid.exceptions import DataError, QMedoidError
from qmedoid.model.contract import Contract
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.source import open_table

ALL = {one.name: one for one in spellings()}


def encoded(table, **hints):
    """What was inferred about the columns, and the table as numbers."""
    table = table.drop_columns(["y"])
    inferred = infer_columns(table, **hints)
    codes = np.array([label == "yes" for label in base()["y"]]).astype(np.intp)
    rng = np.random.default_rng(0)
    return inferred, fit_encodings(table, inferred.columns, codes, ["no", "yes"], rng)


@cache
def reference():
    return encoded(typed())[1]


def read(path, **options):
    with open_table(path, **options) as source:
        return source.read(max_rows=1000)[0]


def changed_columns(found):
    """Columns that are not what they are in the table as it is meant, by their kinds and their numbers."""
    meant = reference()

    def numbers(encoded, name):
        places, start = [], 0
        for column, encoding in zip(encoded.columns, encoded.encodings, strict=True):
            places += [start + place for place in range(len(encoding.outputs))] if column.name == name else []
            start += len(encoding.outputs)
        return encoded.matrix[:, places]

    kinds = {column.name: column.kind for column in found.columns}
    return [
        column.name
        for column in meant.columns
        if kinds.get(column.name) != column.kind
        or numbers(found, column.name).shape != numbers(meant, column.name).shape
        or not np.allclose(numbers(found, column.name), numbers(meant, column.name), rtol=1e-9, atol=1e-12)
    ]


def check(spelling, folder):
    path = folder / f"table{spelling.suffix}"
    spelling.write(path)
    if spelling.must == "refuse":
        with pytest.raises(DataError) as refused:
            encoded(read(path, **spelling.options))
        assert "\n" not in str(refused.value)
        return
    table = read(path, **spelling.options)
    inferred, found = encoded(table)
    changed = changed_columns(found)
    if spelling.must == "read":
        assert not changed
        return
    said = " ".join(inferred.notes.values()) + " ".join(
        f"{name!r}: {reason}" for name, reason in inferred.left_out.items()
    )
    assert changed
    for name in set(changed) & set(table.column_names) - {"place"}:
        assert repr(name) in said


def test_there_are_sixty_spellings_that_are_read():
    assert sum(one.must == "read" for one in ALL.values()) >= 60


@pytest.mark.parametrize("name", ALL)
def test_spelling_is_read_to_the_same_table_or_said_to_be_another(name, tmp_path):
    check(ALL[name], tmp_path)


def test_data_frame_of_texts_is_the_same_table():
    columns = zip(*replace(GERMAN, percent=" %").cells(), strict=True)
    table = pa.table({name: [cell or None for cell in cells] for name, cells in zip(base(), columns, strict=True)})
    assert not changed_columns(encoded(table, decimal=",")[1])


CROSSED = {
    name: TEXTS[name]
    for name in ("plain", "comma decimals", "german", "english", "french, no-break", "accounting", "percent",
                 "date 31.01.2023", "date 01/31/2023", "german export")
}  # fmt: skip


@cache
def fitted():
    """A model of the table; with another contract it is the same model of the same table in another spelling."""
    classifier = MedoidClassifier(method=NearestMedoidClassifier(random_state=0), random_state=0)
    return classifier.fit(typed().drop_columns(["y"]), base()["y"]).model_


def decided(model, table, out, **options):
    score(model, str(table), str(out), **options)
    return read(out).column("margin").to_numpy()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crossed")
    for name, text in CROSSED.items():
        text.write(folder / f"{name.replace('/', ':')}.csv")
    return folder


def test_file_in_another_spelling_is_scored_the_same_or_refused(written):
    """Percent against fraction, point against comma, day against month: a model keeps to what it was fitted on."""
    meant = decided(fitted(), written / "plain.csv", written / "out.csv")
    outcomes = {}
    for trained in CROSSED:
        found = encoded(read(written / f"{trained.replace('/', ':')}.csv"))[1]
        model = replace(fitted(), contract=Contract(found.columns, "y"), encodings=found.encodings)
        for scored in CROSSED:
            try:
                margins = decided(model, written / f"{scored.replace('/', ':')}.csv", written / "out.csv")
            except QMedoidError:
                outcomes[trained, scored] = "refused"
                continue
            np.testing.assert_allclose(margins, meant, rtol=1e-9, atol=1e-9, err_msg=f"{trained} on {scored}")
            outcomes[trained, scored] = "same"
    assert all(outcomes[name, name] == "same" for name in CROSSED)


@pytest.mark.parametrize("trained", ["plain", "german", "english"])
@pytest.mark.parametrize("sign", [".", ","])
def test_thousands_in_a_scored_file_are_never_decimals_in_silence(trained, sign, tmp_path):
    """Where one column alone is spelt otherwise, no other shows it."""
    text, path, out = TEXTS[trained], tmp_path / "table.csv", tmp_path / "out.csv"
    text.write(path)
    found = encoded(read(path))[1]
    model = replace(fitted(), contract=Contract(found.columns, "y"), encodings=found.encodings)
    meant = decided(model, path, out)
    rows = text.cells()
    for row, count in zip(rows, base()["count"], strict=True):
        row[1] = f"{count:,}".replace(",", sign)
    path.write_text("\n".join("\t".join(row) for row in [list(base()), *rows]))
    try:
        margins = decided(model, path, out)
    except QMedoidError:
        assert (trained, sign) not in {("german", "."), ("english", ",")}
        return
    np.testing.assert_allclose(margins, meant, rtol=1e-9)


def test_small_file_of_thousands_in_a_column_of_whole_numbers_is_refused(tmp_path):
    """Nothing but the column itself shows that 1.275 beside 935 is no fraction."""
    table = pa.table({"count": [100 + 7 * row % 40 for row in range(60)], "x": np.arange(60.0) % 7, "y": base()["y"]})
    classifier = MedoidClassifier(method=NearestMedoidClassifier(random_state=0), random_state=0)
    model = classifier.fit(table.drop_columns(["y"]), base()["y"]).model_
    path, out = tmp_path / "table.csv", str(tmp_path / "out.csv")
    path.write_text("count,x\n935,1\n1.275,2\n12.001,3\n")
    with pytest.raises(QMedoidError, match=r"'count'.*1\.275"):
        score(model, str(path), out)
    assert score(model, str(path), out, decimal=".").rows == 3
    path.write_text("count,x\n935,1\n1.275,2\n12.5,3\n")
    assert score(model, str(path), out).rows == 3
