"""Numbers with units, magnitudes, durations, lengths and digits of other scripts: read, or said what is in the way."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fitted_tables import score
from qmedoid import MedoidClassifier, NearestMedoidClassifier, check_table
from qmedoid.exceptions import DataError, QMedoidError
from qmedoid.explain.flips import nearest_flips
from qmedoid.model.contract import COMPOUND, FACTORS, Column, is_spelling, split_spelling
from qmedoid.tables import cells
from qmedoid.tables.encode import encode_column
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.numbers import find_spelling, needs_unit, spell
from qmedoid.tables.source import open_table

FORMS = ["1234.5", "1,234.5", "1.234,5", "1 234,5", "1'234.5", "1234,5"]
UNITS = ["kg", "lb", "mmHg", "°C", "km/h", "L/100km", "min", "mg/dL", "m2", "years old", "%", "€", "$", '"']
SIZES = st.integers(0, 10**8).map(lambda one: one / 100)


def only(texts, name="a", **hints):
    """The one column, and what was said about it."""
    found = infer_columns(pa.table({name: texts}), **hints)
    return (found.columns[0] if found.columns else None), " ".join([*found.notes.values(), *found.left_out.values()])


def values_of(texts, column):
    return cells.read(pa.array(texts), column).values


@given(st.lists(SIZES, min_size=1, max_size=20), st.sampled_from(FORMS), st.sampled_from(["", *UNITS]), st.booleans())
def test_number_in_a_spelling_is_read_back(sizes, form, unit, is_negative):
    spelling = f"{form} {unit}".strip()
    assert is_spelling("number", spelling)
    numbers = np.array(sizes) * (-1 if is_negative else 1)
    read = cells.read(pa.array([spell(one, spelling) for one in numbers.tolist()]), "number", spelling)
    assert not len(read.wrong)
    np.testing.assert_allclose(read.values, numbers, rtol=1e-11, atol=1e-12)


@given(st.lists(SIZES, min_size=1, max_size=20), st.sampled_from(sorted(COMPOUND)), st.booleans())
def test_duration_or_length_in_a_spelling_is_read_back(sizes, spelling, is_negative):
    numbers = np.array(sizes) * (-1 if is_negative else 1)
    if spelling == "h:mm":
        numbers = np.trunc(numbers / 60) * 60
    read = cells.read(pa.array([spell(one, spelling) for one in numbers.tolist()]), "number", spelling)
    assert not len(read.wrong)
    np.testing.assert_allclose(read.values, numbers, rtol=1e-8, atol=1e-8)


@settings(max_examples=25)
@given(
    st.lists(st.integers(10, 10**6), min_size=3, max_size=30, unique=True),
    st.sampled_from([unit for unit in UNITS if unit not in "%€$"]),
    st.sampled_from(["", " ", "\u00a0", "\u2009"]),
    st.randoms(),
)
def test_column_of_one_unit_is_numbers_whatever_the_order_of_its_rows(counts, unit, blank, random):
    texts = [f"{count}.5{blank}{unit}" for count in counts]
    column, said = only(texts)
    assert (column.kind, column.spelling) == ("number", f"1234.5 {unit}")
    assert repr(unit) in said
    np.testing.assert_array_equal(values_of(texts, column), np.array(counts) + 0.5)
    random.shuffle(texts)
    assert only(texts)[0] == column


@settings(max_examples=30)
@given(st.lists(SIZES, min_size=1, max_size=20), st.sampled_from(["٠", "۰", "०", "০", "๐", "０"]), st.booleans())
def test_digits_of_every_script_are_those_of_ascii(sizes, zero, has_signs):
    texts = [f"{one:,.2f}" for one in sizes]
    turned = str.maketrans({str(digit): chr(ord(zero) + digit) for digit in range(10)})
    signs = str.maketrans({".": "٫", ",": "٬"} if has_signs else {})
    written = pa.array([text.translate(turned).translate(signs) for text in texts])
    np.testing.assert_array_equal(
        cells.read(written, "number", "1,234.5").values, [float(f"{one:.2f}") for one in sizes]
    )
    assert find_spelling(written) == find_spelling(pa.array(texts))


READ = [
    (["84 kg", "85kg", "90.5 Kg", "7 kgs."], "1234.5 kg", [84, 85, 90.5, 7]),
    (["kg 84", "kg 85.5"], "1234.5 kg", [84, 85.5]),
    (["1 day", "12 days"], "1234 day", [1, 12]),
    (["37.2 °C", "-3 ºC", "−3 °C"], "1234.5 °C", [37.2, -3, -3]),
    (["12 m²", "13 m2", "14 m^2"], "1234 m2", [12, 13, 14]),
    (["1.234,5 kg", "7,25 kg"], "1.234,5 kg", [1234.5, 7.25]),
    (["1.2k", "800", "3M", "2 bn"], "1234.5k", [1200, 800, 3e6, 2e9]),
    (["€110.5M", "€565K"], "1234.5k €", [110.5e6, 565e3]),
    (["1,5 Mio. €", "2 Mrd. €"], "1234,5k €", [1.5e6, 2e9]),
    (["300 K", "280.5 K"], "1234.5 K", [300, 280.5]),
    (["3 M", "5 M"], "1234 M", [3, 5]),
    (["1.5×10^3", "2×10^-2", "1.5·10³", "2·10⁻²"], "1234.5", [1500, 0.02, 1500, 0.02]),
    (["١٢", "٣٤٫٥"], "1234.5", [12, 34.5]),
    (["1,5E3", "2,25E1"], "1234,5", [1500, 22.5]),
    (["Rs.500", "Rs 600.5"], "1234.5 Rs", [500, 600.5]),
    (["5'11\"", "6'2\"", "6'", "5’10.5”"], "5'11\"", [71, 74, 72, 70.5]),
    (["5 ft 11 in", "6 ft"], "5'11\"", [71, 72]),
    (["1:28:00", "25:05:33"], "h:mm:ss", [5280, 90333]),
    (["1:28:00", "2:05:33.5"], "h:mm:ss", [5280, 7533.5]),
    (["01:02:03.5", "00:01:00.0"], "h:mm:ss", [3723.5, 60]),
    (["0 days 01:28:00", "2 days 00:00:01"], "h:mm:ss", [5280, 172801]),
    (["4:05", "1:04:05"], "[h:]mm:ss", [245, 3845]),
    (["75:30", "112:00"], "h:mm", [271800, 403200]),
    (["1:21.26", "0:59.90"], "m:ss", [81.26, 59.9]),
    (["90 min", "2 h", "1 h 5 min"], "1h 30m", [5400, 7200, 3900]),
    (["1h 30m", "45m", "1d 2h"], "1h 30m", [5400, 2700, 93600]),
    (["PT1H30M", "PT45M", "P1DT1S"], "PT1H30M", [5400, 2700, 86401]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "spelling", "values"), READ, ids=[one[0][0] for one in READ])
def test_numbers_are_read_where_the_whole_column_agrees(texts, spelling, values):
    column, said = only(texts * 3)
    assert (column.kind, column.spelling) == ("number", spelling)
    assert any(repr(text) in said for text in texts)
    np.testing.assert_allclose(values_of(texts, column), values, rtol=1e-12)
    assert only([*texts, *texts][::-1])[0].spelling == spelling
    assert is_spelling("number", spelling)


IN_THE_WAY = [
    (["84 kg", "185 lb"], "'84 kg' and '185 lb' have two units"),
    (["5 m", "7 km"], "two units"),
    (["81.5 MB", "900 KB"], "two units"),
    (["$5", "€7", "$8"], "'$5' and '€7' have two units"),
    (["5 kg", "5", "7", "8 kg"], "has the unit 'kg'"),
    (["5%", "0.5"], "percent sign"),
    (["007 kg", "012 kg"], "begins with a zero"),
    (["1st", "2nd", "3rd"], "is an ordinal"),
    (["10-20", "20-30"], "is a range"),
    (["18–25 years", "26–40 years"], "is a range"),
    (["<5", ">=100", "5+"], "is a bound"),
    (["~5", "ca. 12", "7"], "is an approximation"),
    (["1/2", "3 1/2", "4"], "is a fraction"),
    (["1,23,456.50", "-12,34,567", "12,345.00"], "is a number with thousands as in India"),
    (["5±1", "7 ± 0.5 kg", "8 +/- 1"], "is a number with its error"),
    (["'2024-02-23", "'31/12/2023", "'-7.5"], "is a number or a date behind a quote"),
    (["78.2\u200b", "\u00ad68.1", "2024-01-31\u200b"], "with an invisible letter"),
    (["0x1F", "0XA0", "0x07"], "is a hexadecimal number"),
    (["192.168.100.101", "192.168.100.102"], "is an address"),
    (["1:28:00", "2:05:33", "25:00:00", "27:00:01", "28:00:00", "29:00:00", "30:00:00", "31:00:00", "32:00:00",
      "33:00:00", "34:00:00", "90 min"], "not spelt alike"),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "said"), IN_THE_WAY, ids=[one[0][0] for one in IN_THE_WAY])
def test_what_is_in_the_way_of_numbers_is_said(texts, said):
    column, notes = only(texts * 3)
    assert column.kind == "category"
    assert said in notes
    assert said.replace("'84 kg' and '185 lb'", "").split("and")[-1].strip("' ") in only(texts[::-1] * 3)[1]


@pytest.mark.parametrize(
    "texts",
    [["A12", "B13"], ["12A", "13B", "14C"], ["12-A", "13-B"], ["1.2.10", "1.2.11", "1.10.2"], ["IV", "XII"],
     ["A+", "B-"], ["10.0.0.1", "192.168.0.1"], ["+41 44 668 18 00", "+41 44 668 18 01"], ["SW1A 1AA", "EC1 2BB"],
     ["2a3", "4b5"], ["12 Main St", "15 Oak Ave"], ["555-1234", "555-9876"], ["1-A", "2-A"], ["P1", "P2"]],
)  # fmt: skip
def test_codes_names_and_addresses_stay_texts(texts):
    assert only(texts * 3)[0].kind == "category"
    assert "names rows" not in only(texts * 3)[1]


def test_words_behind_a_few_numbers_are_missing_and_counted():
    column, said = only([str(age) for age in range(20, 60)] + ["6 months", "8 months"])
    assert (column.kind, column.spelling) == ("number", "")
    assert "2 of 42 cells are not numbers, such as '6 months'" in said
    column, said = only([f"{age} kg" for age in range(20, 60)] + ["unknown"])
    assert (column.kind, column.spelling, column.missing) == ("number", "1234 kg", True)
    assert "1 of 41 cells are not numbers, such as 'unknown'" in said


def test_a_few_numbers_without_the_unit_count_as_such_and_are_said():
    texts = [f"{one} kg" for one in range(60, 90)] + ["91", "92"]
    column, said = only(texts)
    assert column.spelling == "1234 kg?"
    assert "numbers without a unit count as such" in said
    np.testing.assert_array_equal(values_of(texts, column), [*range(60, 90), 91, 92])
    assert not needs_unit(column.spelling)
    assert needs_unit("1234 kg")


@pytest.mark.parametrize("texts", [[f"{'$€'[row % 2]}{row}.5" for row in range(40)],
                                   [f"{row} {['kg', 'lb'][row % 2]}" for row in range(10, 50)]])  # fmt: skip
def test_texts_of_two_units_are_left_out_for_their_units_and_not_as_names(texts):
    column, said = only(texts)
    assert column is None
    assert "have two units" in said
    assert "identifier" not in said


def test_times_of_day_stay_times_of_day():
    for texts in (["07:13", "23:59"], ["7:13", "23:59"], ["07:13:05", "12:00:00"], ["9:05:00", "17:45:00"]):
        assert only(texts * 3)[0].kind == "date", texts
    assert "--number" in only(["7:13", "23:59"] * 3)[1]
    assert "--date" in only(["1:28:00", "2:05:33"] * 3)[1]
    assert "--date" not in only(["1:28:00", "25:05:33"] * 3)[1]


@pytest.mark.parametrize(("texts", "spelling", "first"), [
    (["07:13", "23:59"], "h:mm", 25980), (["7:13", "23:59"], "h:mm", 25980),
    (["07:13:05", "12:00:00"], "h:mm:ss", 25985),
])  # fmt: skip
def test_role_of_a_number_reads_durations_and_that_of_a_date_times_of_day(texts, spelling, first):
    column, _ = only(texts * 3, roles={"a": "number"})
    assert (column.kind, column.spelling) == ("number", spelling)
    assert values_of(texts, column)[0] == first
    column, _ = only(["1:28:00", "2:05:33"] * 3, roles={"a": "date"})
    assert column.kind == "date"
    assert values_of(["1:28:00"], column)[0] == np.datetime64("1970-01-01T01:28:00")


def test_name_of_a_column_says_that_clocks_are_durations(tmp_path):
    texts = ["00:03:25", "00:04:10", "01:00:00"] * 4
    assert only(texts, name="duration")[0].spelling == "h:mm:ss"
    assert only(["3:45", "4:05"] * 4, name="lap_time")[0].spelling == "m:ss"
    path = tmp_path / "table.csv"
    pa.csv.write_csv(pa.table({"elapsed": texts, "at": texts}), path)
    with open_table(path) as source:
        table = source.read()[0]
    kinds = {column.name: (column.kind, column.spelling) for column in infer_columns(table).columns}
    assert kinds == {"elapsed": ("number", "h:mm:ss"), "at": ("date", "")}
    # Times that a file holds as such are durations for a user who insists.
    column = infer_columns(table, roles={"at": "number"}).columns[0 if table.column_names[0] == "at" else 1]
    assert (column.kind, column.spelling) == ("number", "h:mm[:ss]")
    assert cells.read(table["at"], column).values[0] == cells.read(pa.array(["00:03:25"]), column).values[0] == 205


DATES = [
    (["31.01.24", "01.02.99", "03.02.69", "04.02.68"], "d.m.yy",
     ["2024-01-31", "1999-02-01", "1969-02-03", "2068-02-04"]),
    (["1/31/24", "2/1/99"], "m/d/yy", ["2024-01-31", "1999-02-01"]),
    (["31-01-24 7:05", "01-02-24 18:00"], "d-m-yy", ["2024-01-31T07:05", "2024-02-01T18:00"]),
    (["2024-01-31 12:00 CET", "2024-06-30 12:00 CEST", "2024-06-30 12:00 UTC"], "",
     ["2024-01-31T11:00", "2024-06-30T10:00", "2024-06-30T12:00"]),
    (["31.01.2024 12:00:30 EST", "01.02.2024 00:00:00 EST"], "d.m.y", ["2024-01-31T17:00:30", "2024-02-01T05:00"]),
    (["2024-01-31 12:00 +01:00", "2024-01-31 12:00 -0530"], "", ["2024-01-31T11:00", "2024-01-31T17:30"]),
    (["٣١.٠١.٢٠٢٤", "٠١.٠٢.٢٠٢٤"], "d.m.y", ["2024-01-31", "2024-02-01"]),
    (["２０２４-０１-３１", "２０２４-０２-０１"], "", ["2024-01-31", "2024-02-01"]),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "spelling", "values"), DATES, ids=[one[0][0] for one in DATES])
def test_dates_with_short_years_zones_and_other_digits(texts, spelling, values):
    column, said = only(texts * 3)
    assert (column.kind, column.spelling) == ("date", spelling)
    assert repr(texts[0]) in said
    np.testing.assert_array_equal(values_of(texts, column), np.array(values, "M8[us]"))
    assert ("69 to 99" in said) == spelling.endswith("yy")
    assert not any(zone in texts[0] for zone in ("CET", "EST", "+01")) or "universal time" in said


@pytest.mark.parametrize(("texts", "said"), [
    (["2024-01-31 12:00 IST", "2024-02-01 12:00 IST"], "'2024-01-31 12:00 IST' ends in a name"),
    (["2024-01-31 12:00 CET", "2024-02-01 12:00"], "has a time zone and '2024-02-01 12:00' has none"),
    (["24-01-31", "24-01-30", "24-02-02"], "may begin or end with the year"),
    (["31.01.24", "01.02.2024"], "are not alike"),
    (["01.02.24", "03.04.24", "05.05.25"], "--date-order"),
])  # fmt: skip
def test_dates_that_can_be_read_in_two_ways_are_texts_with_a_reason(texts, said):
    column, notes = only(texts * 3)
    assert column.kind == "category"
    assert said in notes


def test_order_of_short_dates_is_that_which_is_said():
    texts = ["01.02.24", "03.04.24", "05.05.25"] * 3
    column, _ = only(texts, date_order="month-first")
    assert column.spelling == "m.d.yy"
    assert values_of(texts, column)[0] == np.datetime64("2024-01-02")


# ---- from a fit to a score ----------------------------------------------------------------------------------------

WRITTEN = {
    "kilograms": lambda v: f"{v:.1f} kg",
    "thousands": lambda v: f"{100 * v:,.1f} kg",
    "euros": lambda v: f"€{v:.1f}K",
    "inches": lambda v: f"{v // 12:.0f}'{v % 12:.0f}\"".replace("'12\"", "'11\""),
    "clock": lambda v: f"{v // 2:.0f}:{int(v) % 60:02d}:00",
    "words": lambda v: f"{v // 60:.0f}h {v % 60:.0f}m",
    "digits": lambda v: f"{v:.0f}".translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
}


def table_of(write, n=60):
    rng = np.random.default_rng(0)
    values = rng.uniform(50, 120, n).round(1)
    y = np.where(values + rng.normal(size=n) > 85, "high", "low")
    return values, pa.table({"size": [write(one) for one in values.tolist()], "x": rng.normal(size=n), "y": y})


def fitted(table):
    classifier = MedoidClassifier(method=NearestMedoidClassifier(random_state=0), random_state=0)
    return classifier.fit(table.drop_columns(["y"]), table["y"].to_pylist())


def margins(model, table, folder):
    path, out = folder / "table.csv", folder / "out.csv"
    pa.csv.write_csv(table, path)
    score(model, str(path), str(out))
    with open_table(out) as source:
        return source.read()[0]["margin"].to_numpy()


@pytest.mark.parametrize("name", WRITTEN)
def test_file_is_scored_by_the_reading_of_the_fit(name, tmp_path):
    _, table = table_of(WRITTEN[name])
    classifier = fitted(table)
    model = classifier.model_
    column = model.contract.columns[0]
    assert column.kind == "number"
    assert column.spelling
    in_memory = classifier.to_saved().decide(table).margins
    np.testing.assert_allclose(margins(model, table, tmp_path), in_memory, rtol=1e-9)
    plain = table.set_column(0, "size", pa.array(cells.read(table["size"], column).values))
    same = fitted(plain).model_
    np.testing.assert_array_equal(
        same.decide(_encoded(same, plain)).margins, model.decide(_encoded(model, table)).margins
    )


def _encoded(model, table):
    from qmedoid.tables.encode import encode_batch

    return encode_batch(table.drop_columns(["y"]), model.contract, model.encodings)


@settings(max_examples=10)
@given(st.sampled_from(["lb", "g", "", "%", "$"]), st.integers(1, 60))
def test_another_unit_than_that_of_the_fit_is_never_a_number_in_silence(unit, count):
    values, table = table_of(WRITTEN["kilograms"])
    model = _kilograms()
    texts = [f"{one:.1f} {unit if row < count else 'kg'}".strip() for row, one in enumerate(values.tolist())]
    read = cells.read(pa.array(texts), model.contract.columns[0])
    assert len(read.wrong) == count
    assert np.isnan(read.values[:count]).all()
    import tempfile
    from pathlib import Path

    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.raises(QMedoidError, match=r"'size' was written like 1234\.5 kg"),
    ):
        margins(model, table.set_column(0, "size", pa.array(texts)), Path(folder))


_MODELS = {}


def _kilograms():
    if "kg" not in _MODELS:
        _MODELS["kg"] = fitted(table_of(WRITTEN["kilograms"])[1]).model_
    return _MODELS["kg"]


@pytest.mark.parametrize("cells_", [[84.5, 70.0], [84, 70]])
def test_plain_numbers_are_refused_where_the_unit_must_be_there(cells_):
    saved = fitted(table_of(WRITTEN["kilograms"])[1]).to_saved()
    with pytest.raises(QMedoidError, match="size"):
        saved.predict(pa.table({"size": cells_, "x": [0.0, 1.0]}))


def test_numbers_in_another_currency_than_that_of_the_fit_are_refused(tmp_path):
    values, table = table_of(lambda v: f"€{v:.1f}")
    model = fitted(table).model_
    other = table.set_column(0, "size", pa.array([f"${v:.1f}" for v in values.tolist()]))
    with pytest.raises(QMedoidError, match="written like"):
        margins(model, other, tmp_path)


def test_flips_of_a_decision_are_written_as_the_column_is():
    _, table = table_of(WRITTEN["words"])
    model = fitted(table).model_
    assert spell(5400, "1h 30m") == "1h 30m 0s"
    flips = nearest_flips(model, table.drop_columns(["y"]).slice(0, 1))
    assert flips is not None


@pytest.mark.parametrize("spelling", ["1234 k g,", "1234kg", "h:mm:ss ", "1234 ", "1234 ?", "5'11"])
def test_texts_that_are_no_spelling_are_refused(spelling):
    assert not is_spelling("number", spelling)
    if spelling not in COMPOUND:
        with pytest.raises(ValueError, match="no spelling of numbers"):
            split_spelling(spelling)


def test_parts_of_every_compound_have_a_factor():
    import re

    names = {name for pattern in COMPOUND.values() for name in re.compile(pattern).groupindex}
    assert names == set(FACTORS)


def test_check_says_how_columns_are_read_and_what_is_in_the_way():
    rows = 40
    table = {
        "weight": [f"{60 + row} kg" for row in range(rows)],
        "mixed": [f"{60 + row} {('kg', 'lb')[row % 2]}" for row in range(rows)],
        "y": ["a", "b"] * (rows // 2),
    }
    found = {column["name"]: column for column in check_table(table, "y")["columns"]}
    assert found["weight"]["kind"] == "number"
    assert "unit 'kg'" in found["weight"]["note"]
    assert found["mixed"]["kind"] is None
    assert "two units" in found["mixed"]["why"]


def test_thousands_of_numbers_with_a_unit_are_asked_for():
    with pytest.raises(DataError, match="--decimal"):
        only(["1,234 kg", "5,678 kg"] * 3)
    assert only(["1,234 kg", "5,678 kg"] * 3, decimal=".")[0].spelling == "1,234 kg"


def test_encoding_of_one_cell_is_that_of_many():
    column = Column("size", "number", spelling="5'11\"")
    from qmedoid.model.contract import Numbers

    texts = ["5'11\"", "6 ft", None, "6'1"]
    many = encode_column(pa.array(texts), column, Numbers(0.0))[0]
    np.testing.assert_array_equal(
        many, [encode_column(pa.array([one], pa.string()), column, Numbers(0.0))[0][0] for one in texts]
    )
