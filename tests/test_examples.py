"""Every public class and function has an example in its docstring, and the examples run and print what they show."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import qmedoid
from qmedoid import quantum

WITHOUT = {
    "load": "SavedModel", "Comparison": "compare", "ModelDiff": "diff", "Recalibration": "recalibrate",
    "StabilityReport": "stability",
}  # fmt: skip
"""Names that the example of another shows at work."""


def documented(module):
    return [
        pytest.param(getattr(module, name), id=name)
        for name in module.__all__
        if callable(getattr(module, name)) and name not in WITHOUT
    ]


def run_examples(shown):
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(shown), {}, shown.__name__, None, 0)
    assert examples.examples, f"{shown.__name__} has no example."
    printed = []
    found = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples, out=printed.append)
    assert found.failed == 0, "".join(printed)


@pytest.mark.parametrize("shown", documented(qmedoid))
def test_example_runs(shown):
    run_examples(shown)


def test_examples_of_the_circuits_run():
    pytest.importorskip("qiskit", reason="needs the extra 'quantum'")
    for shown in (getattr(quantum, name) for name in quantum.__all__):
        if ">>>" in (shown.__doc__ or "") or shown.__module__.startswith("qmedoid.quantum.circuits"):
            run_examples(shown)


def test_page_of_the_interface_names_everything():
    pytest.importorskip("qiskit", reason="needs the extra 'quantum'")
    pytest.importorskip("qiskit_aer", reason="needs the extra 'quantum'")
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    names = [f"qmedoid.{name}" for name in qmedoid.__all__ if name != "__version__"]
    names += [f"qmedoid.quantum.{name}" for name in quantum.__all__]
    assert sorted(re.findall(r"^\.\. auto\w+:: ([\w.]+)$", page, flags=re.MULTILINE)) == sorted(names)
