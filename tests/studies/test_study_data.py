"""The data sets of cells: their digests, the numbered heart data, and how the shipped sample was drawn."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.datasets import Dataset
from benchmarks.studies import cells as study_data
from benchmarks.studies.cells import digest

from qmedoid.datasets import HOW_TO_GET, table_of
from qmedoid.exceptions import DataError


class TestDigest:
    DATA = Dataset("a", np.arange(6.0).reshape(3, 2), np.array([0, 1, 1]), ("u", "v"), ("no", "yes"), np.arange(3.0))

    def test_does_not_depend_on_how_numbers_lie_in_memory(self):
        same = dataclasses.replace(
            self.DATA, X=np.asfortranarray(self.DATA.X).astype(">f8"), y=self.DATA.y.astype(np.int8), name="b"
        )
        assert digest(same) == digest(self.DATA)
        assert len(bytes.fromhex(digest(self.DATA))) == 32

    @pytest.mark.parametrize(
        "change",
        [
            {"X": np.arange(6.0).reshape(3, 2)[:, ::-1]},
            {"X": np.nextafter(np.arange(6.0).reshape(3, 2), 9)},
            {"X": np.arange(6.0).reshape(2, 3)},
            {"y": np.array([0, 1, 0])},
            {"y": np.array(["0", "1", "1"])},
            {"feature_names": ("v", "u")},
            {"class_names": ("yes", "no")},
            {"times": np.arange(3.0)[::-1]},
            {"times": None},
        ],
    )
    def test_depends_on_all_that_a_result_depends_on(self, change):
        assert digest(dataclasses.replace(self.DATA, **change)) != digest(self.DATA)


def test_writing_the_sample_gives_the_same_bytes_each_time(tmp_path):
    table = table_of("creditcard-sample")
    for name in ("a", "b"):
        study_data.write_sample(table, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert pq.read_table(tmp_path / "a").equals(table)


def test_sample_is_not_drawn_from_another_table(monkeypatch):
    with pytest.raises(DataError, match="lacks the numbers"):
        study_data.draw_sample(pa.table({"V1": [0.0, 1.0, 2.0, 3.0], "Class": [0, 0, 1, 0]}))
    monkeypatch.setenv("QMEDOID_DATA", "no-such-folder")
    with pytest.raises(SystemExit, match=r"mlg-ulb/creditcardfraud.*set QMEDOID_DATA"):
        study_data.main()


def test_the_sample_is_drawn_again_from_the_whole_table():
    path = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not path.is_file():
        pytest.skip(f"needs the whole credit-card table. {HOW_TO_GET}")
    assert study_data.draw_sample(pq.read_table(path)).equals(table_of("creditcard-sample"))
