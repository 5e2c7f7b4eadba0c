"""The blocks of the page about other tools run as they stand, for those who have the tools installed."""

import re
from pathlib import Path

import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "other-tools.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
TOOLS = {
    "Amazon Braket": ("braket.devices", "amazon-braket-sdk"),
    "PennyLane": ("pennylane", "pennylane 'openqasm3[parser]'"),
    "Qiskit elsewhere": ("qiskit", "qiskit"),
}


def blocks():
    """Blocks of Python by the heading that they stand below."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.partition("\n")[0]: BLOCK.findall(part) for part in parts if BLOCK.search(part)}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with the files of the page, and the names that its later blocks use."""
    folder, names = tmp_path_factory.mktemp("tools"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks()["One record"]:
            exec(block, names)
    return folder, names


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_read_the_files_and_give_the_probabilities_of_the_model(tool, files, monkeypatch):
    module, package = TOOLS[tool]
    pytest.importorskip(module, reason=f"{tool} is not installed: pip install {package}")
    folder, names = files
    monkeypatch.chdir(folder)
    own = dict(names)
    for block in blocks()[tool]:
        exec(block, own)


def test_every_tool_has_its_blocks():
    assert blocks().keys() == {"One record", *TOOLS}
    assert all("assert abs(" in block for tool in TOOLS for block in blocks()[tool])
