"""``qmedoid reproduce``: runs the paper's experiments, which lie beside the source of the package and not in it."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import qmedoid
from qmedoid.cli.options import EVALUATION, LARGE, OUTPUT, Force, Json, Seed, argument, command, flag, option
from qmedoid.exceptions import MissingExtraError


@command("qmedoid reproduce heart --quick", most_used=("output", "quick", "jobs", "seed", "cache", "force", "json"))
def run(
    what: Annotated[
        Literal["all", "heart", "breast-cancer", "wine", "fraud", "devices"],
        argument(
            "WHAT",
            "Data set: heart, breast-cancer, wine, fraud or all; devices: decisions of simulated quantum devices.",
        ),
    ] = "all",
    *,
    json: Json = False,
    output: Annotated[Path, option(OUTPUT, "FOLDER", "Folder for tables, plots and the page.", "--output", "-o")] = (
        Path("reproduction")
    ),
    jobs: Annotated[int | None, option(LARGE, "N", "Processes side by side. Default: one per core.", min=1)] = None,
    seed: Seed = 0,
    quick: Annotated[
        bool, flag(EVALUATION, "A smoke run: few splits or records, a sample of the frauds.", "--quick")
    ] = False,
    cache: Annotated[
        Path | None, option(LARGE, "FOLDER", "Folder of results that are done. Default: one in the user's cache.")
    ] = None,
    force: Force = False,
) -> None:
    """Run the paper's experiments again, and set ours beside them.

    On the paper's terms and on held-out rows, in a checkout of the source of qmedoid. A run that was stopped goes on
    where it was. Needs the extra 'baselines', for devices 'ibm'.
    """
    checkout = Path(qmedoid.__file__).resolve().parents[2]
    if not (checkout / "benchmarks" / "studies" / "command.py").is_file():
        raise MissingExtraError(
            "The paper's experiments are not part of the installed package: run this command in a checkout of its "
            "source, after pip install --editable '.[baselines]' there."
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    # The one import of what is not in the package; see the contract in pyproject.toml.
    from benchmarks.studies.command import reproduce

    reproduce(what, output, jobs=jobs, seed=seed, quick=quick, cache=cache, force=force, json=json)
