"""What only a process of its own shows: start-up, imports, pipes, signals, kills and full disks."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pytest
from small_tables import small_table, write

import forked

QMEDOID = (sys.executable, "-m", "qmedoid")
HEAVY = {"sklearn", "scipy", "pandas", "polars", "qiskit", "matplotlib"}
posix_alone = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")


def run(*arguments, **options):
    return subprocess.run(
        [*QMEDOID, *map(str, arguments)], capture_output=True, timeout=120, check=False, **options
    )  # fmt: skip


@pytest.fixture(scope="module")
def long_table(two, tmp_path_factory):
    """A table that takes a while to score."""
    rows = pa.concat_tables([two.table] * 4000)
    return write(rows, tmp_path_factory.mktemp("long") / "long.csv")


class TestStart:
    @posix_alone
    def test_help_comes_at_once(self):
        """In seconds of a core, which other processes on the machine change little."""
        took = []
        for _ in range(3):
            began = os.times()
            assert run("--help").returncode == 0
            ended = os.times()
            took.append(ended.children_user + ended.children_system - began.children_user - began.children_system)
        assert 0 < min(took) < 0.5

    def imported(self, code, *arguments):
        """The heavy packages that a program imports."""
        listing = f"{code}\nimport sys, json\nprint(json.dumps(sorted(set(sys.modules) & set({sorted(HEAVY)}))))"
        command = [sys.executable, "-c", listing, *map(str, arguments)]
        return json.loads(subprocess.run(command, capture_output=True, timeout=60, check=True).stdout.splitlines()[-1])

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_scoring_imports_nothing_heavy(self, two, tmp_path, ending):
        table = write(two.table, tmp_path / f"t.{ending}")
        code = (
            "import sys\nfrom qmedoid.cli import main\n"
            "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code"
        )
        arguments = ("score", two.model, table, "-o", tmp_path / f"o.{ending}", "--columns", "id")
        assert self.imported(code, *arguments) == []
        assert (tmp_path / f"o.{ending}").exists()

    def test_loading_and_predicting_imports_nothing_heavy(self, two, tmp_path):
        table = write(two.table, tmp_path / "t.parquet")
        code = (
            "import sys, qmedoid\nimport pyarrow.parquet as pq\nmodel = qmedoid.load(sys.argv[1])\n"
            "assert len(model.predict_proba({name: column.to_pylist() for name, column in "
            "zip(*(lambda t: (t.column_names, t.columns))(pq.read_table(sys.argv[2])))})) == 90"
        )
        assert not set(self.imported(code, two.model, table)) & {"sklearn", "scipy", "polars", "qiskit"}
        assert self.imported("import sys, qmedoid\nqmedoid.load(sys.argv[1])", two.model) == []


@posix_alone
class TestPipes:
    def test_head_of_a_long_output(self, two, long_table):
        command = " ".join(["exec", *QMEDOID, "score", str(two.model), str(long_table), "-o", "-"])
        done = subprocess.run(f"({command}) | head -n 2", shell=True, capture_output=True, timeout=60, check=True)
        assert done.stdout.startswith(b'"prediction"')
        assert done.stdout.count(b"\n") == 2
        assert done.stderr == b""

    @pytest.mark.parametrize("command", ["score", "explain"])
    def test_closed_pipe_is_no_failure(self, two, long_table, command):
        more = ("-o", "-") if command == "score" else ("--row", "0")
        with subprocess.Popen(
            [*QMEDOID, command, two.model, long_table, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            child.stdout.readline()
            child.stdout.close()
            assert child.stderr.read() == b""
            assert child.wait(timeout=60) == 0

    @pytest.mark.parametrize("command", ["inspect", "evaluate"])
    def test_reader_that_reads_nothing(self, two, command):
        read, written = os.pipe()
        os.close(read)
        for more in ((), ("--json",)):
            table = () if command == "inspect" else (two.file,)
            done = subprocess.run(
                [*QMEDOID, command, two.model, *table, *more],
                stdout=written, stderr=subprocess.PIPE, timeout=60, check=False,
            )  # fmt: skip
            assert done.returncode == 0
            # That the model has seen rows of this table is told beside the output, and nothing else is.
            assert not [line for line in done.stderr.splitlines() if not line.startswith(b"note: ")]
        os.close(written)

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")  # noqa: PTH110
    def test_standard_output_on_a_full_disk(self, two):
        for arguments in (("inspect", two.model, "--json"), ("score", two.model, two.file, "-o", "-")):
            with open("/dev/full", "wb") as full:  # noqa: PTH123
                done = subprocess.run(
                    [*QMEDOID, *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
                )
            assert done.returncode == 1
            assert done.stderr.count(b"\n") == 1
            assert b"No space left on device" in done.stderr


class TestInterrupted:
    """Ctrl-C once something is in the hidden output file."""

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_long_file(self, two, long_table, tmp_path, ending):
        as_json = ["--json"][: ending == "parquet"]
        command = [*QMEDOID, "score", two.model, long_table, "-o", tmp_path / f"o.{ending}", *as_json]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not any(path.stat().st_size for path in tmp_path.iterdir()):
            assert child.poll() is None
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        out, said = child.communicate(timeout=60)
        assert child.returncode == 130
        if as_json:
            assert json.loads(out) == {
                "error": "Interrupted: nothing was written.", "exit_code": 130, "notes": [],
            }  # fmt: skip
        else:
            assert said == b"error: Interrupted: nothing was written.\n"
        assert list(tmp_path.iterdir()) == []

    def test_slow_pipe(self, two, tmp_path):
        header, rows = two.file.read_bytes().split(b"\n", 1)
        out, pipe = tmp_path / "o.csv", subprocess.PIPE
        out.write_bytes(b"old")
        command = [*QMEDOID, "score", two.model, "-", "-o", out, "--force"]
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        child.stdin.write(header + b"\n")
        while not any(path.name.startswith(".") and path.stat().st_size for path in tmp_path.iterdir()):
            assert child.poll() is None
            child.stdin.write(rows * 20)
        child.stdin.flush()
        time.sleep(0.3)  # until the reader has taken all there is and waits for more
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130
        assert b"Traceback" not in child.stderr.read()
        with contextlib.suppress(BrokenPipeError):
            child.communicate()
        assert [path.name for path in tmp_path.iterdir()] == ["o.csv"]
        assert out.read_bytes() == b"old"


@posix_alone
@pytest.mark.parametrize("command", ["score", "fit"])
def test_killed_commands_leave_the_old_or_the_new(two, tmp_path, command):
    """Killed at any moment, and while the hidden file is there, which is a small part of the time."""
    outputs, random = tmp_path / "outputs", np.random.default_rng(1)
    outputs.mkdir()
    out, many = outputs / "output.csv", write(pa.concat_tables([two.table] * 400), tmp_path / "many.csv")

    def start(number):
        if command == "score":
            return forked.start(("score", two.model, many, "-o", out, "--columns", ("id", "day")[number], "--force"))
        options = ("--target", "y", "--method", "evidence", "--refine", "never", "-o", out, "--seed", number)
        return forked.start(("fit", two.file, *options))

    def run(number):
        child = start(number)
        child.join(300)
        assert child.exitcode == 0
        return out.read_bytes()

    whole = {run(0)}
    began = time.perf_counter()
    whole.add(run(1))
    took = time.perf_counter() - began
    assert len(whole) == 2
    for number in (0, 1):
        child, limit = start(number), time.perf_counter() + 60
        while number and child.is_alive() and len([*outputs.iterdir()]) == 1 and time.perf_counter() < limit:
            time.sleep(0.0005)
        child.join(random.uniform(0, took / 40 if number else took))
        child.kill()
        child.join()
        assert out.read_bytes() in whole
    run(0)
    assert [path.name for path in outputs.iterdir()] == [out.name]


@posix_alone
class TestFullDisk:
    """Files may not grow beyond a bound: the system refuses to write, as it does on a full disk."""

    @staticmethod
    @contextlib.contextmanager
    def small_files(n_bytes):
        """The bound of this process, for a block: what reports the test must write again."""
        import resource

        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    @pytest.mark.parametrize("ending", ["csv", "parquet", "feather", "csv.gz"])
    def test_scores(self, cli, two, long_table, tmp_path, ending):
        out = tmp_path / f"o.{ending}"
        out.write_bytes(b"old")
        with self.small_files(50_000):
            done = cli("score", two.model, long_table, "-o", out, "--force")
        assert done.code in (1, 3)
        assert done.err.count("\n") == 1, done.err
        assert "File too large" in done.err
        assert out.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == [out.name]

    def test_fits(self, cli, two, tmp_path):
        model, file = tmp_path / "m", write(small_table(seed=3), tmp_path / "t.csv")
        options = ("--target", "y", "--refine", "never", "-o", model)
        for before in (None, two.model.read_bytes()):
            if before is not None:
                model.write_bytes(before)
            with self.small_files(1000):
                done = cli("fit", file, *options)
            assert done.code in (1, 3)
            assert "File too large" in done.err
            assert (model.read_bytes() if model.exists() else None) == before
        assert {path.name for path in tmp_path.iterdir()} == {"m", "t.csv"}
