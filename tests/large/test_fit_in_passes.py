"""A fit in passes gives one model, however the table is partitioned, and whatever the order of the partitions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from qmedoid import MedoidClassifier, SavedModel
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.estimators.sum import SumClassifier
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.large.fit import InPasses, PassFit
from qmedoid.large.passes import count_rows
from qmedoid.large.runner import SummaryFolder, file_runner, file_table
from qmedoid.model.model import Model
from qmedoid.model.storage.model_file import model_bytes
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.encode import encode_batch

N_ROWS = 12_000

RARE = RareEventClassifier(comparisons=False, n_rare=60, n_common=120, n_hard=40)

CLASS = DatasetSettings(target="class")


def made_table(n_rows: int = N_ROWS, *, seed: int = 0) -> pa.Table:
    """Numbers, a category, missing cells, and a class of 3 %."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows))
    shop = rng.choice(["north", "south", "west"], size=n_rows)
    is_fraud = rng.random(n_rows) < 1.0 / (1.0 + np.exp(5.5 - 2.0 * a - 1.5 * (shop == "west")))
    return pa.table({
        "a": a, "b": pa.array(b, mask=rng.random(n_rows) < 0.1), "shop": shop,
        "class": np.where(is_fraud, "fraud", "normal"),
    })  # fmt: skip


def in_files(table: pa.Table, folder: Path, n_files: int) -> str:
    """The table as several Parquet files."""
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(table)), n_files)):
        pq.write_table(table.slice(rows[0], len(rows)), folder / f"part-{number:03}.parquet")
    return str(folder)


def fitted(
    where: str,
    method: Any = RARE,
    *,
    runner: Any = None,
    missing: Any = None,
    groups: str | None = None,
    times: str | None = None,
    **asked: Any,
) -> InPasses:
    """Fit the table of some files in passes."""
    owner = MedoidClassifier(method=method, random_state=0)
    runner = runner or file_runner(file_table(where))

    def fit_sample(sampled: Dataset) -> tuple[Model, list[str]]:
        return owner.fit(sampled).model_, owner.notes_

    asked = {"test": 0.25, "sizes": (3_000, 20_000), **asked}
    table = DatasetSettings(target="class", missing=missing or {}, groups=groups, times=times)
    return PassFit(owner, runner, count_rows(runner, "class"), table, **asked).run(fit_sample)


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> InPasses:
    return fitted(in_files(made_table(), tmp_path_factory.mktemp("one") / "table", 1))


@pytest.mark.parametrize("n_files", [2, 8, 64])
def test_partitions_change_nothing(n_files: int, one_file: InPasses, tmp_path: Path) -> None:
    found = fitted(in_files(made_table(), tmp_path / "table", n_files))
    assert model_bytes(found.model) == model_bytes(one_file.model)
    assert found.report == one_file.report
    assert found.held_out.equals(one_file.held_out)


def in_csv(table: pa.Table, folder: Path) -> str:
    """The table as two CSV files."""
    folder.mkdir()
    for number in range(2):
        pyarrow.csv.write_csv(table.slice(number * N_ROWS // 2, N_ROWS // 2), folder / f"part-{number}.csv")
    return str(folder)


@pytest.mark.parametrize("write", [lambda table, folder: in_files(table, folder, 3), in_csv], ids=["parquet", "csv"])
def test_values_that_are_missing_are_read_as_empty_cells(write: Any, tmp_path: Path) -> None:
    table = made_table()
    shop = pa.array(table["shop"].to_pylist(), mask=np.random.default_rng(3).random(N_ROWS) < 0.1)
    table = table.set_column(2, "shop", shop)
    values = table.set_column(1, "b", table["b"].fill_null(-99)).set_column(2, "shop", shop.fill_null("nowhere"))
    empty = fitted(write(table, tmp_path / "empty"))
    found = fitted(write(values, tmp_path / "values"), missing={"b": (-99,), "shop": ("nowhere",)})
    columns = tuple(replace(column, missing_values=()) for column in found.model.contract.columns)
    assert [column.missing_values for column in found.model.contract.columns] == [(), ("-99",), ("nowhere",)]
    bare = replace(found.model, contract=replace(found.model.contract, columns=columns))
    assert model_bytes(bare) == model_bytes(empty.model)
    assert found.report == empty.report
    assert any("sampled rows hold -99, read as missing" in note for note in found.notes)


def test_figures_are_of_all_held_out_rows(one_file: InPasses) -> None:
    assert one_file.report is not None
    assert one_file.model.training is not None
    judged = one_file.report["rows"]
    assert abs(judged - 0.25 * N_ROWS) < 4 * np.sqrt(N_ROWS * 0.25 * 0.75)
    assert judged + one_file.training_rows == N_ROWS == one_file.model.training.n_rows + judged
    assert one_file.sampled < one_file.training_rows
    assert one_file.report["roc_auc"] > 0.85
    assert one_file.report["seen"]["rows"] == 0
    # Probabilities are those of the whole table, of which the sample holds every fraud.
    assert one_file.report["calibration"]["ratio"] < 2.5
    priors, classes = one_file.model.decision.priors, one_file.model.decision.classes
    whole = np.array(made_table()["class"].to_pylist())
    assert priors is not None
    assert abs(priors[classes.index("fraud")] - (whole == "fraud").mean()) < 0.02


def test_new_rows_of_the_table_are_not_called_novel(one_file: InPasses) -> None:
    fresh = made_table(20_000, seed=5)
    report = SavedModel(one_file.model).novelty_report(fresh)
    assert report.found["status"] == "none", report
    other = fresh.set_column(0, "a", pa.array(np.array(fresh["a"]) + 0.5))
    assert SavedModel(one_file.model).novelty_report(other).found["status"] != "none"


def test_weights_make_the_sample_stand_for_the_table(tmp_path: Path) -> None:
    n_rows = 60_000
    table = made_table(n_rows)
    owner, runner = (
        MedoidClassifier(method=RARE, random_state=0),
        file_runner(file_table(in_files(table, tmp_path / "table", 2))),
    )
    seen: list[Dataset] = []

    def look(sampled: Dataset) -> tuple[Model, list[str]]:
        seen.append(sampled)
        raise InterruptedError

    counted = count_rows(runner, "class")
    with pytest.raises(InterruptedError):
        PassFit(owner, runner, counted, CLASS, sizes=(6_000, 6_000)).run(look)
    sampled, whole = seen[0], made_table(n_rows).to_pandas()
    assert sampled.weights is not None
    training = whole.iloc[sampled.rows]
    labels = sampled.target.classes[sampled.target.codes]
    assert training["class"].tolist() == labels.tolist()
    n_train = 0.9 * n_rows  # a tenth calibrates
    for kind in ("fraud", "normal"):
        own = labels == kind
        wanted = n_train * (whole["class"] == kind).mean()
        assert abs(sampled.weights[own].sum() / wanted - 1) < 0.1
        mean = np.average(training["a"][own], weights=sampled.weights[own])
        assert abs(mean - whole["a"][whole["class"] == kind].mean()) < 0.1
    # Normal rows that look like frauds are more than their share.
    is_normal = labels == "normal"
    assert (
        training["a"][is_normal].mean()
        > 2 * np.average(training["a"][is_normal], weights=sampled.weights[is_normal]) + 0.1
    )


def test_more_classes_and_text(tmp_path: Path) -> None:
    table = made_table()
    kinds = np.where(np.array(table["a"]) > 0.5, "high", np.where(np.array(table["a"]) < -0.5, "low", "middle"))
    table = table.set_column(3, "class", pa.array(kinds))
    (tmp_path / "csv").mkdir()
    for number in range(3):
        pa.csv.write_csv(table.slice(number * 4000, 4000), tmp_path / "csv" / f"{number}.csv")
    method = SumClassifier(n_neighbors=0)
    from_text = fitted(str(tmp_path / "csv"), method)
    from_parquet = fitted(in_files(table, tmp_path / "parquet", 2), method)
    assert from_text.report is not None
    assert from_parquet.report is not None
    assert from_text.report["confusion"] == from_parquet.report["confusion"]
    assert from_text.report["accuracy"] > 0.95
    assert from_text.model.decision.classes == ("high", "low", "middle")


def test_finished_partitions_are_not_read_again(one_file: InPasses, tmp_path: Path) -> None:
    table = file_table(in_files(made_table(), tmp_path / "table", 4))
    first = file_runner(table, folder=SummaryFolder(tmp_path / "parts"))
    found = fitted("", runner=first)
    assert [read for _, _, read in found.times] == [4, 4, 4, 4]
    again = file_runner(table, folder=SummaryFolder(tmp_path / "parts"))
    repeated = fitted("", runner=again)
    assert [read for _, _, read in repeated.times] == [0, 0, 0, 0]
    assert model_bytes(repeated.model) == model_bytes(one_file.model)
    # A torn file is none, and a changed partition is another one.
    torn = next((tmp_path / "parts").glob("judge-*"))
    torn.write_bytes(torn.read_bytes()[:-1])
    assert [read for _, _, read in fitted("", runner=replace(again, times=[])).times] == [0, 0, 0, 1]
    pq.write_table(made_table(3_000, seed=1), tmp_path / "table" / "part-000.parquet")
    changed = file_runner(file_table(tmp_path / "table"), folder=SummaryFolder(tmp_path / "parts"))
    assert fitted("", runner=changed).times[0][2] == 1


def test_cells_that_the_sample_does_not_hold_are_noted(tmp_path: Path) -> None:
    table = made_table()
    shops, a = table["shop"].to_pylist(), table["a"].to_pylist()
    sampled: list[int] = []

    def look(sampled_rows: Dataset) -> tuple[Model, list[str]]:
        sampled.extend(sampled_rows.rows.tolist())
        raise InterruptedError

    runner = file_runner(file_table(in_files(table, tmp_path / "first", 1)))
    owner = MedoidClassifier(method=RARE, random_state=0)
    counted = count_rows(runner, "class")
    with pytest.raises(InterruptedError):
        PassFit(owner, runner, counted, CLASS, sizes=(3_000, 20_000)).run(look)
    others = sorted(set(range(N_ROWS)) - set(sampled))
    shops[others[0]], a[others[1]] = "a shop of its own", None
    table = table.set_column(2, "shop", pa.array(shops)).set_column(0, "a", pa.array(a))
    found = fitted(in_files(table, tmp_path / "second", 1), test=0.0)
    assert any("1 cells have a level that the sample does not have ('a shop of its own')" in one for one in found.notes)
    assert any("column 'a': 1 cells are missing, none of them in the sample" in one for one in found.notes)
    a_column, _, shop_column = found.model.contract.columns
    assert a_column.missing
    assert "a shop of its own" in shop_column.levels


def test_time_and_groups(tmp_path: Path) -> None:
    table = made_table().append_column("when", pa.array(np.arange(N_ROWS) % 1000))
    table = table.append_column("who", pa.array([f"customer {row % 700}" for row in range(N_ROWS)]))
    where = in_files(table, tmp_path / "table", 3)
    by_time = fitted(where, times="when", groups="who").held_out
    assert by_time["when"].to_numpy().min() > 700
    by_group = fitted(where, groups="who").held_out
    assert 100 < len(by_group["who"].unique()) < 260


def test_bad_targets_and_weights_are_refused(tmp_path: Path) -> None:
    table = made_table(500)
    one_class = table.set_column(3, "class", pa.array(["normal"] * 500))
    with pytest.raises(DataError, match="one class only, 'normal'"):
        fitted(in_files(one_class, tmp_path / "one", 1))
    nothing = table.set_column(3, "class", pa.nulls(500, pa.string()))
    with pytest.raises(DataError, match="No row of"):
        fitted(in_files(nothing, tmp_path / "none", 1))
    quantity = pa.table({"a": np.arange(20_000.0), "class": np.arange(20_000.0)})
    with pytest.raises(DataError, match="more than 10,000 different cells"):
        fitted(in_files(quantity, tmp_path / "quantity", 1))
    where = in_files(table, tmp_path / "table", 1)
    runner = file_runner(file_table(where))
    owner = MedoidClassifier(class_weight="balanced")
    with pytest.raises(ParameterError, match="Weights of classes are not for a fit in passes"):
        PassFit(owner, runner, count_rows(runner, "class"), CLASS)


@pytest.mark.parametrize("n_partitions", [1, 5])
def test_dask_collections_give_the_same_model(n_partitions: int, one_file: InPasses) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="pip install 'qmedoid[dask]'")
    from qmedoid.large.collections import collection_runner

    frame = dd.from_pandas(made_table().to_pandas(), npartitions=n_partitions)
    found = fitted("", runner=collection_runner(frame, "class"))
    assert found.report == one_file.report
    assert model_bytes(found.model) == model_bytes(one_file.model)


def test_people_who_come_back_are_named_by_the_sample(tmp_path):
    rng = np.random.default_rng(0)
    machine = rng.integers(0, 300, N_ROWS)
    mean, label = rng.normal(size=(300, 3)), rng.random(300) < 0.2
    cells = {f"x{place}": mean[machine, place] + 0.3 * rng.normal(size=N_ROWS) for place in range(3)}
    table = pa.table({**cells, "machine": machine, "class": np.where(label[machine], "fraud", "normal")})
    where = in_files(table, tmp_path / "table", 3)
    method = RareEventClassifier(comparisons=False, n_rare=40, n_common=80, n_hard=20)
    named = [note for note in fitted(where, method).notes if "share their class" in note]
    assert len(named) == 1
    assert "--group-column machine" in named[0]
    assert not [note for note in fitted(where, method, groups="machine").notes if "share their class" in note]


def test_numbers_with_a_unit_and_durations_are_read_in_every_pass(tmp_path: Path) -> None:
    table = made_table()
    sizes, seconds = np.round(60 + 10 * table["a"].to_numpy(), 1), np.arange(N_ROWS) % 5_000 * 7.5
    clock = [f"{one // 3600:.0f}:{one // 60 % 60:02.0f}:{one % 60:04.1f}" for one in seconds.tolist()]
    written = table.append_column("size", pa.array([f"{one} kg" for one in sizes.tolist()]))
    written = written.append_column("run", pa.array(clock))
    model = fitted(in_csv(written, tmp_path / "written")).model
    assert [column.spelling for column in model.contract.columns[-2:]] == ["1234.5 kg", "h:mm:ss"]
    for encoding, values in zip(model.encodings[-2:], (sizes, seconds), strict=True):
        assert encoding.fill == pytest.approx(np.median(values), rel=0.1)
    plain = table.append_column("size", pa.array(sizes)).append_column("run", pa.array(seconds))
    scores = [
        model.decide(encode_batch(rows.drop_columns(["class"]), model.contract, model.encodings)).scores
        for rows in (plain, written)
    ]
    np.testing.assert_array_equal(*scores)
