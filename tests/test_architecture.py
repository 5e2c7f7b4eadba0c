"""The page on the architecture names the folders of the package in the order of the import contract."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "qmedoid"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def folders_of_the_table() -> list[str]:
    return re.findall(r"(?m)^\| `(\w+)/` \|", PAGE)


def test_table_names_every_folder_of_the_package():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert sorted(folders_of_the_table()) == sorted(folders)


def test_table_has_the_order_of_the_import_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    level = {name.strip(): number for number, layer in enumerate(reversed(layers)) for name in layer.split("|")}
    levels = [level[folder] for folder in folders_of_the_table()]
    assert levels == sorted(levels)


def test_picture_names_only_places_that_exist():
    picture = re.search(r"```text\n(.*?)```", PAGE, re.DOTALL).group(1)
    places = re.findall(r"\b([a-z]+)/(\w+)?", picture)
    named = {folder for folder, _ in places}
    assert {"cli", "tables", "estimators", "methods", "model", "quantum"} <= named
    for folder, part in places:
        assert (PACKAGE / folder).is_dir(), folder
        if part:
            assert (PACKAGE / folder / f"{part}.py").exists() or (PACKAGE / folder / part).is_dir(), f"{folder}/{part}"


def test_modules_that_the_page_names_exist():
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)", PAGE):
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), path
