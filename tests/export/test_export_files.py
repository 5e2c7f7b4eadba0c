"""Exports of a saved model from Python."""

import pytest

from model_kinds import exported
from qmedoid.exceptions import ParameterError


def test_saved_models_export_themselves(tmp_path):
    saved, _ = exported("evidence", 1000)
    for format, given, start in (
        ("js", {}, b"// A model of qmedoid"),
        ("sql", {"dialect": "sqlite", "table": "patients"}, b"-- A model of qmedoid"),
        ("onnx", {}, b""),
    ):
        if format == "onnx":
            pytest.importorskip("onnx", reason="onnx is not installed: pip install 'qmedoid[onnx]'")
        written = saved.export(tmp_path / f"model.{format}", format=format, **given)
        content = written.path.read_bytes()
        assert (written.format, written.bytes) == (format, len(content))
        assert content.startswith(start)
    assert b'FROM "patients"' in (tmp_path / "model.sql").read_bytes()


@pytest.mark.parametrize(
    "given", [{"format": "pmml"}, {"format": "js", "table": "t"}, {"format": "sql", "dialect": "x"}]
)
def test_saved_models_refuse_other_formats(tmp_path, given):
    with pytest.raises(ParameterError, match="parameter"):
        exported("nearest medoid", 1000).saved.export(tmp_path / "model", **given)
    assert not list(tmp_path.iterdir())
