"""Scoring into a folder: a file of results for every input file, named by all that it depends on."""

import hashlib
import json
import os
import pickle
import sys
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.kills_score import kill_resumed, run
from small_tables import replaced, small_table, write

from qmedoid.exceptions import DataError, ModelError
from qmedoid.large import score_files, shared
from qmedoid.large.score_files import PartTotals, ScoreTask, score_part
from qmedoid.model.storage.model_file import load_file
from qmedoid.tables.results import Cut, ScoreSettings

N_FILES = 7


def numbered(seed):
    """Rows whose id says which file they are of."""
    table = small_table(n=12 + seed, seed=seed)
    return replaced(table, "id", pa.array([f"{seed}-{row}" for row in range(len(table))]))


@pytest.fixture
def inputs(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for seed in range(N_FILES):
        write(numbered(seed), folder / f"part-{seed}.parquet")
    return folder


def bytes_of(folder):
    """The hash of every file of results, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.parquet")}


def by_input(folder):
    """The file of results of each input, by the manifest."""
    return {one["input"]: one["output"] for one in json.loads((folder / "_manifest.json").read_text())["results"]}


def score(cli, model, table, out, *options):
    """What is printed of a score into a folder."""
    return cli.ok("score", model, table, "-o", f"{out}/", *options, "--json").json


class TestFolder:
    def test_results_are_those_of_one_file(self, cli, two, inputs, tmp_path):
        table, out = inputs / "*.parquet", tmp_path / "out"
        options = ("--columns", "id,x1", "--add", "probabilities", "--alert-rate", "0.3", "--json")
        whole = cli.ok("score", two.model, table, "-o", tmp_path / "one.parquet", *options).json
        printed = cli.ok("score", two.model, table, "-o", f"{out}/", *options).json
        names = by_input(out)
        assert list(names) == [f"part-{seed}.parquet" for seed in range(N_FILES)]
        parts = pa.concat_tables([pq.read_table(out / name) for name in names.values()])
        assert parts.equals(pq.read_table(tmp_path / "one.parquet"))
        # All counts add up, and a folder of results is read as one table.
        for key in set(whole) - {"output"}:
            assert printed[key] == whole[key], key
        assert len(pq.read_table(out)) == whole["rows"]
        assert printed["files"] == {
            "shard": None, "inputs": 7, "scored": 7, "skipped": 0, "removed": 0, "missing": 0,
            "rows_scored": whole["rows"], "manifest": f"{out}/_manifest.json",
        }  # fmt: skip

    def test_shards_are_the_whole(self, cli, two, inputs, tmp_path):
        whole, out, seen = tmp_path / "all", tmp_path / "out", []
        score(cli, two.model, inputs, whole, "--columns", "id")
        for shard in ("2/3", "1/3", "3/3", "9/9"):
            found = score(cli, two.model, inputs, out, "--columns", "id", "--shard", shard)
            seen.append((found["files"]["scored"], found["files"]["missing"], found["rows"]))
        assert [one[:2] for one in seen[:3]] == [(2, 5), (3, 2), (2, 0)]
        assert bytes_of(out) == bytes_of(whole)
        assert sum(rows for *_, rows in seen) == len(pq.read_table(whole))
        assert (out / "_manifest.json").read_bytes() == (whole / "_manifest.json").read_bytes()
        assert (found["rows"], found["alert_rate"], found["drift"]) == (0, None, None)

    def test_resume_does_what_is_missing_or_changed(self, cli, two, inputs, tmp_path):
        out = tmp_path / "out"
        call = (cli, two.model, inputs / "*.parquet", out, "--columns", "id")
        first = score(*call)
        before, names = bytes_of(out), by_input(out)
        times = {name: (out / name).stat().st_mtime_ns for name in before}
        again = score(*call, "--resume")
        assert (again["files"]["scored"], again["files"]["skipped"], again["files"]["rows_scored"]) == (0, 7, 0)
        assert all(again[key] == first[key] for key in ("predicted", "rows", "alerts"))
        (out / names["part-4.parquet"]).unlink()
        missing = score(*call, "--resume")
        assert (missing["files"]["scored"], missing["files"]["rows_scored"]) == (1, 16)
        assert bytes_of(out) == before
        # With the time that it had: it is the content that counts.
        changed = inputs / "part-2.parquet"
        content, state = changed.read_bytes(), changed.stat()
        write(numbered(3), changed)
        os.utime(changed, ns=(state.st_atime_ns, state.st_mtime_ns))
        other = score(*call, "--resume")
        assert (other["files"]["scored"], other["files"]["removed"]) == (1, 1)
        assert names["part-2.parquet"] not in bytes_of(out)
        assert len(pq.read_table(out)) == first["rows"] + 1
        changed.write_bytes(content)
        score(*call, "--resume")
        assert bytes_of(out) == before
        untouched = set(before) - {names["part-2.parquet"], names["part-4.parquet"]}
        assert all((out / name).stat().st_mtime_ns == times[name] for name in untouched)

    def test_other_results_are_refused_or_removed(self, cli, two, inputs, tmp_path):
        out, model, few = tmp_path / "out", tmp_path / "other", inputs / "part-[1-4].parquet"
        score(cli, two.model, inputs, out)
        before = bytes_of(out)
        cli.ok("fit", two.file, "--target", "y", "-o", model, "--method", "evidence", "--refine", "never")
        for word, asked in {
            "--resume": (two.model, inputs),
            "made with another model, other options": (two.model, inputs, "--resume", "--threshold", "0.3"),
            "made with another model, other": (two.model, inputs, "--resume", "--prevalence", "0.3"),
            "made with another model,": (two.model, inputs, "--resume", "--columns", "id"),
            "made with another model": (model, inputs, "--resume"),
            "their input is not among": (two.model, few, "--resume"),
        }.items():
            outcome = cli("score", *asked[:2], "-o", f"{out}/", *asked[2:])
            assert (outcome.code, word in outcome.err, "--force" in outcome.err) == (2, True, True), word
            assert bytes_of(out) == before
        removed = score(cli, two.model, inputs, out, "--resume", "--force", "--threshold", "0.3")["files"]
        assert (removed["removed"], removed["scored"]) == (7, 7)
        assert len(set(bytes_of(out)) - set(before)) == len(bytes_of(out)) == 7
        assert score(cli, two.model, inputs, out, "--force")["files"]["removed"] == 7
        assert score(cli, two.model, inputs, out, "--force")["files"]["scored"] == 7
        assert bytes_of(out) == before
        found = score(cli, two.model, few, out, "--resume", "--force")["files"]
        assert (found["removed"], found["skipped"]) == (3, 4)

    def test_damaged_and_foreign_tables_are_refused(self, cli, two, inputs, tmp_path):
        out = tmp_path / "out"
        call = ("score", two.model, inputs, "-o", f"{out}/", "--resume")
        cli.ok(*call)
        before = bytes_of(out)
        name = min(before)
        (out / name).write_bytes((out / name).read_bytes()[:-5])
        assert "cannot be read" in cli(*call).err
        cli.ok(*call, "--force")
        assert bytes_of(out) == before
        renamed = (out / name).rename(out / ("renamed-" + name))
        assert "cannot be read" in cli(*call).err
        renamed.unlink()
        write(small_table(), out / "mine.parquet")
        for more in ((), ("--force",)):
            outcome = cli(*call, *more)
            assert (outcome.code, "mine.parquet" in outcome.err) == (2, True)
        assert (out / "mine.parquet").exists()

    def test_names_that_are_alike_stay_apart(self, cli, two, tmp_path):
        for path in ("a/x.parquet", "b/x.parquet", "a-x.parquet", "x.parquet", "x.csv", "Größe 1/é*.parquet"):
            (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
            write(small_table(), tmp_path / "in" / path)
        out = tmp_path / "out"
        printed = score(cli, two.model, tmp_path / "in", out, "--columns", "id")
        assert (printed["files"]["scored"], printed["rows"]) == (6, 540)
        assert len(by_input(out)) == len(bytes_of(out)) == 6
        # An id that one file writes as text and another as a number is text in all results.
        assert pq.read_table(out).schema.field("id").type == pa.string()

    def test_carried_columns_have_one_type(self, cli, two, tmp_path):
        (tmp_path / "in").mkdir()
        for name, values in {"a": [1, 2], "b": [1.5, 2.5], "c": [None, None], "d": []}.items():
            table = small_table(n=2).slice(0, len(values))
            write(
                replaced(table, "id", pa.array(values, None if values else pa.string())),
                tmp_path / "in" / f"{name}.parquet",
            )
        outcome = cli.ok("score", two.model, tmp_path / "in", "-o", f"{tmp_path}/out/", "--columns", "id,x1")
        schemas = [pq.read_schema(path).remove_metadata() for path in (tmp_path / "out").glob("*.parquet")]
        assert len(schemas) == 4
        assert all(schema.equals(schemas[0]) for schema in schemas), outcome.err
        absent = cli("score", two.model, tmp_path / "in", "-o", f"{tmp_path}/out2/", "--columns", "idd")
        assert (absent.code, (tmp_path / "out2").exists()) == (3, False)
        assert "a.parquet: there is no column 'idd'" in absent.err

    def test_bad_rows_and_refused_files(self, cli, two, tmp_path):
        folder = tmp_path / "in"
        folder.mkdir()
        write(small_table(n=30), folder / "a.csv")
        odd = write(small_table(n=30, seed=1), folder / "b.csv")
        lines = odd.read_text().splitlines()
        lines[3] += ",7"
        odd.write_text("\n".join(lines) + "\n")
        write(small_table(n=30, seed=2), folder / "c.csv")
        call = ("score", two.model, folder, "-o", f"{tmp_path}/out/", "--json")
        refused = cli(*call).json
        assert refused["exit_code"] == 3
        assert refused["error"].startswith("b.csv: ")
        assert any("1 of 3 files are done" in one for one in refused["notes"])
        assert len(bytes_of(tmp_path / "out")) == 1
        skipping = (*call, "--on-bad-row", "skip")
        assert cli(*skipping, "--resume").code == 2
        skipped = cli.ok(*skipping, "--resume", "--force").json
        aside = tmp_path / "out" / "_bad_rows"
        assert (skipped["rows"], skipped["bad_rows"], skipped["bad_rows_file"]) == (89, 1, str(aside))
        assert sorted(path.read_text().count("\n") for path in aside.iterdir()) == [1, 1, 2]
        # Results without the file of their bad rows are not complete.
        next(path for path in aside.iterdir() if path.name.startswith("b")).unlink()
        again = cli.ok(*skipping, "--resume").json
        assert (again["files"]["scored"], again["bad_rows"], len(list(aside.iterdir()))) == (1, 1, 3)

    def test_wrong_calls(self, cli, two, inputs, tmp_path):
        out, before = f"{tmp_path}/out/", sorted(tmp_path.rglob("*"))
        for word, asked in {
            "must end in": (inputs, "-o", ""),
            "slash": (inputs, "-o", tmp_path / "out", "--resume"),
            "K/N": (inputs, "-o", out, "--shard", "0/3"),
            "from 1 to N": (inputs, "-o", out, "--shard", "4/3"),
            "pipe": ("-", "-o", out),
            "among the inputs": (inputs, "-o", f"{inputs}/out/"),
            "outside": (inputs / "*.parquet", "-o", f"{inputs}/"),
            "--dask is for a folder as output": (inputs, "-o", tmp_path / "one.csv", "--dask", "local"),
        }.items():
            outcome = cli("score", two.model, *asked)
            assert (outcome.code, word in outcome.err) == (2, True), (word, outcome.err)
        assert sorted(tmp_path.rglob("*")) == before


class TestTask:
    @pytest.fixture
    def task(self, two, inputs, tmp_path):
        (tmp_path / "out").mkdir()
        path = inputs / "part-3.parquet"
        return ScoreTask(
            str(two.model), load_file(two.model).sha256, Cut(), ScoreSettings(("id",)), {"id": pa.string()},
            str(path), path.name, str(tmp_path / "out"),
        )  # fmt: skip

    def test_tasks_and_results_can_be_sent(self, task, two):
        sent = pickle.loads(pickle.dumps(task))
        part = score_part(sent)
        message = pickle.dumps(part)
        # The model, and what it says of columns, stay where they are.
        assert len(message) < 8000 < two.model.stat().st_size
        back = pickle.loads(message)
        totals = PartTotals.none(load_file(two.model).model)
        totals.add(back)
        totals.add(pickle.loads(message))
        assert totals.now.log_odds[1].sum() == totals.now.novelty.rows == totals.rows == 2 * back[0].rows == 30
        again = score_part(task)
        assert again == (part[0], None, 0)

    def test_a_file_that_changes_meanwhile_leaves_nothing(self, task, tmp_path, monkeypatch):
        score_file = score_files.score_file

        def touching(*arguments, **how):
            os.utime(task.input, ns=(0, 0))
            return score_file(*arguments, **how)

        monkeypatch.setattr(score_files, "score_file", touching)
        with pytest.raises(DataError, match=r"part-3\.parquet: the file changed while it was scored"):
            score_part(task)
        assert list((tmp_path / "out").iterdir()) == []

    def test_a_model_that_changed_is_refused(self, task, cli, two, tmp_path, monkeypatch):
        path = tmp_path / "model"
        path.write_bytes(two.model.read_bytes())
        stale = replace(task, model=str(path), settings=ScoreSettings())
        cli.ok("fit", two.file, "--target", "y", "-o", path, "--method", "evidence", "--refine", "never")
        monkeypatch.setattr(shared, "_models", {})
        with pytest.raises(ModelError, match="not the one that was meant"):
            score_part(stale)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_runs_leave_whole_files_and_go_on(two, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for seed in range(40):
        write(numbered(seed), folder / f"part-{seed}.parquet")
    out = tmp_path / "out"
    command = ["score", str(two.model), str(folder), "-o", f"{out}/", "--columns", "id", "--resume"]
    run(command)
    assert kill_resumed([command], out, 4, 0.05).kills == 4
    ids = pq.read_table(out).column("id").to_pylist()
    assert len(ids) == len(set(ids)) == sum(12 + seed for seed in range(40))


def test_dask_writes_the_same_bytes(cli, two, inputs, tmp_path):
    pytest.importorskip("distributed", reason="pip install 'qmedoid[dask]'")
    plain = score(cli, two.model, inputs, tmp_path / "here", "--columns", "id")
    found = score(cli, two.model, inputs, tmp_path / "there", "--columns", "id", "--dask", "local")
    assert bytes_of(tmp_path / "there") == bytes_of(tmp_path / "here")
    assert {**found, "output": "", "files": ""} == {**plain, "output": "", "files": ""}
