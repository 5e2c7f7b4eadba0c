"""``qmedoid report`` and ``fit --report``: a page is written whole, the summary printed, and wrong calls refused."""

import json

import pytest
from small_tables import small_table, write

import qmedoid


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    """A table that the models have not seen."""
    return write(small_table(seed=7), tmp_path_factory.mktemp("new") / "new.csv")


def test_report_writes_a_page_called_like_its_model_by_default(cli, two, new, tmp_path):
    model, page = tmp_path / "copy.qmedoid", tmp_path / "copy.html"
    model.write_bytes(two.model.read_bytes())
    for more in ((), ("-o", page)):  # the same page again
        outcome = cli.ok("report", model, new, *more)
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert f"written to {page} ({page.stat().st_size:,} bytes)." in outcome.out


def test_report_without_a_table_is_about_held_out_rows(cli, two, tmp_path):
    cli.ok("report", two.model, "-o", tmp_path / "page.html")
    found = cli.ok("report", two.model, "--json").json
    assert found["figures"]["source"] == "held-out"
    assert found["page"] is None
    assert found["live"] == {"absent": None}
    assert "document" not in json.dumps(found["live"])


def test_report_prints_its_summary(cli, two, new, tmp_path):
    page = tmp_path / "page.html"
    found = cli.ok("report", two.model, new, "-o", page, "--json", "--cost", 4, "--ignore", "QM408").json
    assert found["page"] == {"path": str(page), "bytes": page.stat().st_size}
    assert found["operating"]["cost"] == 4
    assert {one["code"]: one["status"] for one in found["findings"]}["QM408"] == "ignored"
    assert found["made"]["command"].startswith(f"qmedoid report {two.model} {new} -o {page}")
    assert "--cost 4" in found["made"]["command"]
    assert "--ignore QM408" in found["made"]["command"]


def test_report_leaves_rows_and_model_out(cli, two, new, tmp_path):
    page = tmp_path / "page.html"
    cli.ok("report", two.model, new, "-o", page, "--no-rows")
    text = page.read_text(encoding="utf-8")
    saved = qmedoid.load(two.model)
    assert not any(repr(record["x1"]) in text or f"{record['x1']:.6g}" in text for record in saved.model.records)
    found = cli.ok("report", two.model, new, "-o", page, "--no-live", "--json").json
    assert "--no-live" in found["live"]["absent"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "page.txt"], "its file must end in .html"),
        (["--cost", "-1"], "--cost must be a number above 0"),
        (["--ignore", "QM999"], "There is no finding 'QM999'"),
    ],
)
def test_report_refuses_wrong_calls(cli, two, options, message):
    outcome = cli("report", two.model, *options)
    assert outcome.code == 2
    assert message in outcome.err


def test_report_replaces_no_other_file(cli, two, tmp_path):
    other = tmp_path / "page.html"
    other.write_text("<html>mine</html>")
    outcome = cli("report", two.model, "-o", other)
    assert outcome.code == 2
    assert "is no report of a model, so it is not replaced" in outcome.err
    assert other.read_text() == "<html>mine</html>"


def test_report_of_a_table_that_breaks_the_contract_is_refused_or_told(cli, two, tmp_path):
    table = write(small_table(seed=3).drop_columns(["x1"]), tmp_path / "less.csv")
    assert cli("report", two.model, table, "-o", tmp_path / "page.html").code == 3
    assert not (tmp_path / "page.html").exists()
    found = cli.ok("report", two.model, table, "--json", "--on-mismatch", "warn").json
    assert {one["code"]: one["status"] for one in found["findings"]}["QM401"] == "problem"


def test_fit_writes_a_report(cli, two, tmp_path):
    page = tmp_path / "page.html"
    options = ["--refine", "never", "--report", page, "--compare", "--json"]
    outcome = cli.ok("fit", two.file, "--target", "y", "-o", tmp_path / "m.qmedoid", *options)
    assert outcome.json["report"] == {"path": str(page), "bytes": page.stat().st_size}
    assert "held-out rows of two.csv" in page.read_text(encoding="utf-8")
    refused = cli("fit", two.file, "--target", "y", "-o", tmp_path / "n.qmedoid", "--report", tmp_path / "page.txt")
    assert refused.code == 2
    assert not (tmp_path / "n.qmedoid").exists()
