"""Arrow batches to batches of results: how rows are cut makes no difference, and workers have the model that was meant.

Another file under its path is refused.
"""

import json
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fitted_tables import fitted, raw_table, with_column
from qmedoid import arrow_scorer, load
from qmedoid.exceptions import ContractError, DataError, ModelError, ParameterError, QMedoidWarning
from qmedoid.large import arrow_scorer as module
from qmedoid.large import shared
from qmedoid.tables.arrow import BATCH_ROWS
from qmedoid.tables.results import ScoreSettings

ADDED = ("probabilities", "row", "reasons", "novelty", "source")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return fitted()[1].save(tmp_path_factory.mktemp("models") / "small.qmedoid")


@pytest.fixture(scope="module")
def rows():
    return raw_table(n=200, seed=1)


@pytest.fixture
def fresh(monkeypatch):
    """A process that has loaded no model yet; the paths of its loads."""
    loads, load_file = [], shared.load_file
    monkeypatch.setattr(shared, "_models", {})
    monkeypatch.setattr(shared, "load_file", lambda path: (loads.append(str(path)), load_file(path))[1])
    return loads


def cut(table, sizes):
    """Batches of these sizes, and one of the rest."""
    batches, start = [], 0
    for size in [*sizes, len(table)]:
        part = table.slice(start, size).combine_chunks()
        batches += part.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        start += len(part)
    return batches


def scored(scorer, batches):
    """Results as a table, and whether any batch was larger than a block."""
    made = list(scorer(iter(batches)))
    assert all(len(one) <= module.BATCH_ROWS for one in made)
    return pa.Table.from_batches(made)


@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.integers(0, 40), max_size=8), block=st.sampled_from([20, 64, BATCH_ROWS]))
@example(sizes=[1] * 99, block=20)
@example(sizes=[0, 1, 0, 0], block=100)
@example(sizes=[], block=50)
def test_results_are_those_of_the_table_whatever_the_batches(path, sizes, block):
    rows = raw_table(n=100, seed=1)
    expected = load(path).score_table(rows, columns=["y", "x1"], add=ADDED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_ROWS", block)
        scorer = arrow_scorer(path, columns=["y", "x1"], add=ADDED)
        out = scored(scorer, cut(rows, sizes))
    assert out.schema.equals(expected.schema, check_metadata=True)
    assert out.schema.equals(scorer.schema(rows.schema), check_metadata=True)
    assert out.equals(expected)


def test_streams_give_streams_with_their_schema(path, rows):
    scorer = arrow_scorer(path, columns=["color"])
    expected = load(path).score_table(rows, columns=["color"])
    for data in (rows, pa.RecordBatchReader.from_batches(rows.schema, cut(rows, [3, 0, 50]))):
        reader = scorer.reader(data)
        assert reader.schema == expected.schema
        assert reader.read_all().equals(expected)
    with pytest.raises(DataError, match=r"Arrow stream interface.*Got list instead"):
        scorer.reader(rows.to_pylist())


def test_no_rows_give_results_without_rows(path, rows):
    scorer, nothing = arrow_scorer(path, columns=["x1"], add=ADDED), rows.slice(0, 0)
    expected = load(path).score_table(nothing, columns=["x1"], add=ADDED)
    assert list(scorer(iter([]))) == []
    for batches in (cut(nothing, []), cut(nothing, [0, 0])):
        (one,) = scorer(iter(batches))
        assert pa.Table.from_batches([one]).equals(expected)
    assert scorer.reader(pa.RecordBatchReader.from_batches(rows.schema, [])).read_all().equals(expected)


@pytest.mark.parametrize("on_bad_row", ["flag", "skip"])
def test_bad_rows_are_flagged_or_left_out_as_in_the_table(path, rows, on_bad_row):
    texts = [str(one) for one in rows["x2"].to_pylist()]
    texts[5] = texts[150] = "about two"
    bad = with_column(rows, "x2", pa.array(texts))
    how = {"columns": ["y"], "add": ["row"], "on_bad_row": on_bad_row}
    expected = load(path).score_table(bad, **how)
    assert len(expected) == (200 if on_bad_row == "flag" else 198)
    assert scored(arrow_scorer(path, **how), cut(bad, [6, 100])).equals(expected)
    assert arrow_scorer(path, **how).schema(bad.schema) == expected.schema
    with pytest.raises(ContractError, match="'about two'"):
        scored(arrow_scorer(path), cut(bad, [6, 100]))


def test_a_broken_contract_is_refused_before_the_results_of_its_block(path, rows, monkeypatch):
    monkeypatch.setattr(module, "BATCH_ROWS", 50)
    colors = rows["color"].to_pylist()
    colors[120] = "octarine"
    results = arrow_scorer(path)(iter(cut(with_column(rows, "color", pa.array(colors)), [10] * 19)))
    assert [len(next(results)) for _ in range(2)] == [50, 50]
    with pytest.raises(ContractError, match="octarine"):
        next(results)
    with pytest.raises(ContractError, match="missing: 'x2'"):
        arrow_scorer(path).schema(rows.drop_columns(["x2"]).schema)
    with pytest.raises(ContractError, match="missing: 'x2'"):
        next(arrow_scorer(path)(iter(rows.drop_columns(["x2"]).to_batches())))


@pytest.mark.parametrize("taken", [1, 10])
def test_differences_that_are_gone_on_with_are_one_warning(path, rows, monkeypatch, taken):
    """At the end, or where no more results are asked for."""
    monkeypatch.setattr(module, "BATCH_ROWS", 50)
    other = rows.drop_columns(["x2"])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        results = arrow_scorer(path, on_mismatch="warn")(iter(cut(other, [60])))
        out = [one for one, _ in zip(results, range(taken), strict=False)]
        results.close()
    (one,) = heard
    assert one.category is QMedoidWarning
    assert "missing: 'x2'" in str(one.message)
    with pytest.warns(QMedoidWarning):
        expected = load(path).score_table(other, on_mismatch="warn")
    assert pa.Table.from_batches(out).equals(expected.slice(0, 50 * taken))


def test_batches_of_other_columns_or_types_are_refused(path, rows):
    (first,) = rows.slice(0, 100).combine_chunks().to_batches()
    rest = rows.slice(100)
    scorer = arrow_scorer(path, columns=["x1"])
    for other, words in (
        (rest.select(["x2", "x1", "color", "member", "y"]), r"same columns in the same order.*batch 1 \(from 0\)"),
        (
            with_column(rest, "x1", rest["x1"].cast(pa.float32())),
            r"The first has \(x1 double.*batch 1 \(from 0\) has \(x1 float",
        ),
    ):
        with pytest.raises(DataError, match=words):
            scored(scorer, [first, *other.to_batches()])
    nulls = with_column(rest, "member", pa.nulls(100))
    typed = with_column(rest, "member", pa.nulls(100, pa.bool_()))
    with pytest.warns(QMedoidWarning, match="missing cells: 'member' has 100"):
        out = scored(scorer, [first, *nulls.to_batches()])
    with pytest.warns(QMedoidWarning):
        assert out.equals(load(path).score_table(pa.concat_tables([rows.slice(0, 100), typed]), columns=["x1"]))


def test_categories_and_views_are_read_and_carried_as_in_the_table(path, rows):
    parts = [with_column(part, "color", part["color"].combine_chunks().dictionary_encode())
             for part in (rows.slice(0, 90), rows.slice(90))]  # fmt: skip
    parts = [with_column(part, "y", part["y"].cast(pa.string_view())) for part in parts]
    scorer = arrow_scorer(path, columns=["y", "color"])
    out = scored(scorer, [one for part in parts for one in part.to_batches()])
    assert out.equals(load(path).score_table(pa.concat_tables(parts).unify_dictionaries(), columns=["y", "color"]))


def test_options_that_are_not_there_are_refused_at_once(path):
    for how, words in (
        ({"on_mismatch": "go on"}, "must be 'error' or 'warn'. Got 'go on' instead"),
        ({"on_bad_row": "drop"}, "must be 'refuse' or 'flag' or 'skip'. Got 'drop'"),
        ({"add": ["luck"]}, "must be among"),
        ({"columns": "x1"}, "must be a list of names. Got the text 'x1'"),
        ({"columns": ["score"]}, "'score' cannot be carried through"),
    ):
        with pytest.raises(ParameterError, match=words):
            arrow_scorer(path, **how)
    with pytest.raises(ContractError, match="no column 'x9' to carry through"):
        arrow_scorer(path, columns=["x9"]).schema(raw_table().schema)
    with pytest.raises(ModelError, match="nothing is there"):
        arrow_scorer(path.with_name("none.qmedoid"))


def test_a_scorer_holds_no_model(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    scorer = arrow_scorer(path.name, columns=["y"], add=["row"], on_bad_row="flag")
    data = pickle.dumps(scorer)
    assert len(data) < 500
    assert pickle.loads(data) == scorer
    assert scorer.path == str(path)
    assert scorer.sha256 == load(path).sha256


WORKER = """
import json, pickle, sys
import pyarrow as pa
from qmedoid.large import shared
loads, load_file = [], shared.load_file
shared.load_file = lambda path: (loads.append(path), load_file(path))[1]
with open(sys.argv[1], "rb") as file:
    scorers, batches = pickle.load(file)
counts = [len(loads)]
for scorer in scorers:
    out = pa.Table.from_batches(scorer(iter(batches)))
    counts.append(len(loads))
with pa.OSFile(sys.argv[2], "wb") as file, pa.ipc.new_file(file, out.schema) as sink:
    sink.write_table(out)
print(json.dumps({"loads": counts, "sklearn": "sklearn" in sys.modules}))
"""


def test_another_process_loads_the_model_once_and_decides_the_same(path, rows, tmp_path):
    given, out = tmp_path / "given", tmp_path / "out.arrow"
    scorers = [arrow_scorer(path), arrow_scorer(path), arrow_scorer(path, columns=["y"], add=["reasons", "novelty"])]
    given.write_bytes(pickle.dumps((scorers, cut(rows, [1, 0, 99]))))
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(given), str(out)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"loads": [0, 1, 1, 1], "sklearn": False}
    with pa.ipc.open_file(out) as file:
        assert file.read_all().equals(load(path).score_table(rows, columns=["y"], add=["reasons", "novelty"]))


def test_another_file_under_the_path_is_refused(path, rows, tmp_path, monkeypatch):
    copy = tmp_path / "model.qmedoid"
    copy.write_bytes(path.read_bytes())
    scorer, expected = arrow_scorer(copy), load(path).score_table(rows)
    load(path).prior_shift(0.01).save(copy)
    # This process has the model that was meant, and another one loads the file.
    assert scored(scorer, rows.to_batches()).equals(expected)
    monkeypatch.setattr(shared, "_models", {})
    for use in (lambda: scored(scorer, rows.to_batches()), lambda: scorer.schema(rows.schema)):
        with pytest.raises(ModelError, match=f"is not the one that was meant.*{scorer.sha256} is expected"):
            use()
    copy.write_bytes(path.read_bytes())
    assert scored(scorer, rows.to_batches()).equals(expected)
    # A new scorer takes the file that is there.
    load(path).prior_shift(0.01).save(copy)
    assert arrow_scorer(copy).sha256 != scorer.sha256


def test_threads_decide_the_same(path, rows, fresh):
    sha256 = load(path).sha256
    scorer = module.ArrowScorer(str(path), sha256, ScoreSettings(("y",)))
    expected = load(path).score_table(rows, columns=["y"])
    barrier = threading.Barrier(8)

    def run(number):
        barrier.wait()
        return [scored(scorer, cut(rows, [number, 20 * number])) for _ in range(3)]

    with ThreadPoolExecutor(8) as pool:
        for made in pool.map(run, range(8)):
            assert all(one.equals(expected) for one in made)
    assert set(fresh) == {str(path)}
