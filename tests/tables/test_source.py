"""One table in many files: whatever its format, packing or parts, the same rows come out."""

import bz2
import errno
import gzip
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.tables.arrow import CellTypeError
from qmedoid.tables.source import open_table

N = 1000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    numbers = rng.normal(size=N)
    return pa.table(
        {
            "number": pa.array(np.where(rng.random(N) < 0.1, np.nan, numbers), from_pandas=True),
            "whole": rng.integers(-(2**60), 2**60, size=N),
            "text.with dots": rng.choice(["a", "b,c", 'd "e"', "f\ng", "ü", None], size=N),
            "flag": rng.random(N) < 0.5,
            "day": pa.array(rng.integers(0, 20000, size=N).astype("datetime64[D]")),
        }
    )


def in_csv(table):
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


def in_parquet(table):
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, row_group_size=300)
    return out.getvalue()


def in_feather(table):
    out = io.BytesIO()
    pyarrow.feather.write_feather(table, out, chunksize=300)
    return out.getvalue()


def packed_by_arrow(codec):
    def pack(data):
        out = pa.BufferOutputStream()
        with pa.CompressedOutputStream(out, codec) as stream:
            stream.write(data)
        return out.getvalue().to_pybytes()

    return pack


FORMATS = {".csv": in_csv, ".parquet": in_parquet, ".feather": in_feather}
PACKINGS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": packed_by_arrow("zstd"),
    ".lz4": packed_by_arrow("lz4"),
}


def write(path, content):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(content)
    return path


def whole(where, **options):
    with open_table(where) as source:
        return source.read(**options)[0]


@pytest.mark.parametrize("named", [True, False], ids=["named", "nameless"])
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_and_packing_holds_the_same_table(tmp_path, table, suffix, packing, named):
    content = PACKINGS[packing](FORMATS[suffix](table))
    path = write(tmp_path / (f"t{suffix}{packing}" if named else "t"), content)
    if packing and suffix != ".csv":
        with pytest.raises(DataError, match="packed once more"):
            open_table(path)
        return
    with open_table(path) as source:
        assert source.names == tuple(table.column_names)
        assert source.schema == table.schema
        assert source.n_bytes == len(content)
        assert source.n_rows == (N if suffix in (".parquet", ".feather") else None)
        assert source.is_text == (suffix == ".csv")
        assert source.notes == []
        assert source.read()[0].equals(table)
        assert pa.Table.from_batches(source.batches()).equals(table)
        assert source.bytes_read == len(content)


def test_packed_in_several_parts(tmp_path, table):
    content = in_csv(table)
    path = write(tmp_path / "t.csv.gz", gzip.compress(content[:999]) + gzip.compress(content[999:]))
    assert whole(path).equals(table)


@pytest.mark.parametrize("suffix", FORMATS)
def test_columns_and_types(tmp_path, table, suffix):
    path = write(tmp_path / "t", FORMATS[suffix](table))
    wanted = {"whole": pa.float64(), "text.with dots": pa.string(), "day": pa.timestamp("ms")}
    with open_table(path) as source:
        names = ["day", "whole", "text.with dots"]
        result = pa.Table.from_batches(source.batches(names, wanted))
        assert result.column_names == names
        with pytest.raises(DataError, match="no column 'nothing'"):
            list(source.batches(["nothing"]))
    assert result["whole"].to_pylist() == [float(cell) for cell in table["whole"].to_pylist()]
    assert result["day"].equals(table["day"].cast(pa.timestamp("ms")))
    assert result["text.with dots"].equals(table["text.with dots"])


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("row", [0, 123, 999])
def test_cell_of_another_type_is_named(tmp_path, suffix, row):
    cells = ["1.5", " 2 ", "NA", "-", ""] * 200
    table = pa.table({"other": [1] * N, "x": cells})
    with open_table(write(tmp_path / "good", FORMATS[suffix](table))) as source:
        good = pa.Table.from_batches(source.batches(["x"], {"x": pa.float64()}))["x"]
        assert good.to_pylist() == [1.5, 2.0, None, None, None] * 200
    cells[row] = "abc"
    table = pa.table({"other": [1] * N, "x": cells})
    found = pytest.raises(CellTypeError, match=rf"column 'x', row {row + 1}: .*'abc'")
    with open_table(write(tmp_path / "bad", FORMATS[suffix](table))) as source, found:
        list(source.batches(["x"], {"x": pa.float64()}))


def test_dictionaries_are_decoded_in_batches_and_stay_categories_to_fit_on(tmp_path):
    texts = pa.array(["a", "b", None, "a"])
    table = pa.table({"t": texts.dictionary_encode(), "l": texts.cast(pa.large_string())})
    declared = pa.dictionary(pa.int32(), pa.string())
    for suffix in (".parquet", ".feather"):
        with open_table(write(tmp_path / f"t{suffix}", FORMATS[suffix](table))) as source:
            assert source.schema.types == [pa.string(), pa.string()]
            assert pa.Table.from_batches(source.batches()) == pa.table({"t": texts, "l": texts})
            for rows, _ in (source.read(), source.read(max_rows=4)):
                assert rows.schema.types == [declared, pa.string()]
                assert rows.to_pydict() == {"t": texts.to_pylist(), "l": texts.to_pylist()}


def test_folder_and_pattern_are_the_files_in_order(tmp_path, table):
    parts = [table.slice(0, 300), table.slice(300, 300), table.slice(600)]
    for place, (suffix, part) in enumerate(zip([".csv", ".parquet", ".feather"], parts, strict=True)):
        reordered = part.select(part.column_names[::-1]) if place else part
        write(tmp_path / f"year={place}" / f"part{suffix}", FORMATS[suffix](reordered))
    write(tmp_path / ".hidden.csv", b"x\n1\n")
    write(tmp_path / ".folder" / "t.csv", b"x\n1\n")
    write(tmp_path / "_SUCCESS", b"")
    write(tmp_path / "README.md", b"x")
    for where in (tmp_path, str(tmp_path / "year=*" / "part*")):
        assert whole(where).equals(table)
        with open_table(where) as source:
            assert pa.Table.from_batches(source.batches()).equals(table)
            assert source.n_rows is None
            assert source.bytes_read == source.n_bytes


def test_files_that_differ_in_types_agree_on_one(tmp_path):
    write(tmp_path / "1.csv", b"a,b,c\n1,1,\n2,2,\n")
    write(tmp_path / "2.csv", b"c,b,a\n7,007,2.5\n")
    write(tmp_path / "3.csv", b"c,b,a\n8,x,3\n")
    expected = {"a": [1.0, 2.0, 2.5, 3.0], "b": ["1", "2", "007", "x"], "c": [None, None, 7, 8]}
    assert whole(tmp_path).to_pydict() == expected
    with open_table(tmp_path) as source:
        assert pa.Table.from_batches(source.batches()).to_pydict() == expected


def test_files_with_other_columns_are_refused(tmp_path):
    write(tmp_path / "1.csv", b"a,b\n1,1\n")
    write(tmp_path / "2.csv", b"a,c\n1,1\n")
    with pytest.raises(DataError, match=r"1\.csv and .*2\.csv .*'b' only in .*1\.csv; 'c' only in .*2\.csv"):
        open_table(tmp_path)


@pytest.mark.parametrize("packing", ["", ".gz"])
def test_standard_input(table, packing):
    program = (
        "import sys, pyarrow as pa\n"
        "from qmedoid.tables.source import open_table\n"
        "from qmedoid.exceptions import DataError\n"
        "with open_table('-') as source:\n"
        "    assert source.n_bytes is None\n"
        "    table = pa.Table.from_batches(source.batches())\n"
        "    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as out: out.write_table(table)\n"
        "    try: again = sum(len(batch) for batch in source.batches())\n"
        "    except DataError as error: again = str(error)\n"
        "print(again, file=sys.stderr)\n"
    )
    content = PACKINGS[packing](in_csv(table))
    done = subprocess.run([sys.executable, "-c", program], input=content, capture_output=True, check=True)
    assert pa.ipc.open_stream(done.stdout).read_all().equals(table)
    assert "can be read once" in done.stderr.decode()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_named_pipe(tmp_path, table):
    content = write(tmp_path / "content", in_csv(table))
    os.mkfifo(tmp_path / "pipe")
    with (
        subprocess.Popen(f"cat '{content}' > '{tmp_path / 'pipe'}'", shell=True),
        open_table(tmp_path / "pipe") as source,
    ):
        assert source.n_bytes is None
        assert source.read()[0].equals(table)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_damaged_files_are_refused_in_one_line(tmp_path, table, suffix, packing):
    content = PACKINGS[packing](FORMATS[suffix](table))
    if suffix == ".csv" and not packing:
        content += b"1,2\n" * 2  # a text that is cut is still a text
    else:
        content = content[: len(content) // 2]
    path = write(tmp_path / f"t{suffix}{packing}", content)
    with pytest.raises(DataError) as caught, open_table(path) as source:
        list(source.batches())
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def _not_allowed(folder):
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


def test_what_is_not_there_or_not_a_table(tmp_path, monkeypatch):
    for where in (tmp_path / "nothing.csv", tmp_path / "*.csv", tmp_path):
        with pytest.raises(DataError, match=r"no file|No file|holds no table"):
            open_table(where)
    for where in ("", "x" * 5000):
        with pytest.raises(DataError, match=r"is empty|cannot be opened"):
            open_table(where)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", _not_allowed)
        with pytest.raises(DataError, match=r"cannot be opened: Permission denied"):
            open_table(tmp_path)
    for name, content in {"t.parquet": b"a,b\n1,2\n", "t.xlsx": b"PK\x03\x04..."}.items():
        with pytest.raises(DataError, match=r"not what its name says|not read, such as a workbook"):
            open_table(write(tmp_path / name, content))
    repeated = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match=r"'a' \(columns 1, 2\)"):
        open_table(write(tmp_path / "twice", in_feather(repeated)))


def test_sample_is_that_of_the_rows_whatever_the_format(tmp_path, table):
    samples = []
    for suffix, make in FORMATS.items():
        with open_table(write(tmp_path / f"t{suffix}", make(table))) as source:
            sample, rows = source.read(max_rows=50, rng=np.random.default_rng(8))
            samples.append(rows.tolist())
            assert sample.equals(table.take(rows))
            assert (np.diff(rows) > 0).all()
            full, all_rows = source.read(max_rows=N)
            assert full.equals(table)
            assert all_rows.tolist() == list(range(N))
            with pytest.raises(ParameterError, match="max_rows"):
                source.read(max_rows=0)
    assert all(rows == samples[0] for rows in samples)
    assert len(samples[0]) == 50


def test_sample_is_uniform(tmp_path):
    path = write(tmp_path / "t.csv", b"x\n" + b"".join(b"%d\n" % row for row in range(40)))
    rng, counts = np.random.default_rng(0), np.zeros(40)
    with open_table(path) as source:
        for _ in range(400):
            sample, rows = source.read(max_rows=10, rng=rng)
            assert sample["x"].to_pylist() == rows.tolist()
            counts[rows] += 1
    # Each row is drawn 100 times on average; without replacement, the sum of squares below has mean 39.
    assert ((counts - 100) ** 2 / (400 * 0.25 * 0.75)).sum() * 39 / 40 < 75


def test_sampled_texts_have_the_types_of_the_whole(tmp_path):
    write(tmp_path / "t.csv", b"a;b\n" + b"1,5;x\n;\n2,5;NA\n" * 5)
    sample = open_table(tmp_path / "t.csv").read(max_rows=7)[0]
    assert sample.schema.types == [pa.float64(), pa.string()]
    single = open_table(write(tmp_path / "u.csv", b"a\n" + b"1\nNA\n" * 5)).read(max_rows=10)[0]
    assert single.to_pydict() == {"a": [1, None] * 5}


WRITERS = {
    ".csv": pyarrow.csv.write_csv,
    ".parquet": pyarrow.parquet.write_table,
    ".feather": pyarrow.feather.write_feather,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_memory_does_not_grow_with_the_table(tmp_path, suffix):
    rng = np.random.default_rng(0)
    part = pa.table({f"x{column}": rng.integers(0, 10**8, size=150_000) for column in range(12)})
    path, peaks = tmp_path / f"t{suffix}", []
    for times in (1, 4):
        WRITERS[suffix](pa.concat_tables([part] * times).combine_chunks(), path)
        before, peak, total = pa.total_allocated_bytes(), 0, 0
        with open_table(path) as source:
            for batch in source.batches():
                peak = max(peak, pa.total_allocated_bytes() - before)
                total += batch["x0"].to_numpy().sum()
                assert batch.num_rows <= 1 << 16
        assert total == times * part["x0"].to_numpy().sum()
        peaks.append(peak)
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 4 * part.nbytes


def test_scoring_does_not_import_what_it_does_not_need(tmp_path):
    path = write(tmp_path / "t.csv", b"a,b\n1,2\n")
    program = (
        "import sys; from qmedoid.tables.source import open_table\n"
        f"list(open_table({str(path)!r}).batches())\n"
        "print([m for m in ('pandas', 'sklearn', 'scipy', 'pyarrow.dataset', 'pyarrow.parquet') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
