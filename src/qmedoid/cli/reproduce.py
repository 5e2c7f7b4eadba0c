"""``qmedoid reproduce``: runs the paper's experiments, which lie beside the source of the package and not in it."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import qmedoid
from qmedoid.cli.options import EVALUATION, LARGE, OUTPUT, Force, Options, Seed, argument, option
from qmedoid.exceptions import MissingExtraError


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(Options):
    """Run the paper's experiments again, and set ours beside them.

    On the paper's terms and on held-out rows, in a checkout of the source of qmedoid. A run that was stopped goes on
    where it was. Needs the extra 'baselines', for devices 'ibm'.
    """

    most_used = ("output", "quick", "jobs", "seed", "cache", "force", "json")
    examples = ("qmedoid reproduce heart --quick",)

    what: Annotated[
        Literal["all", "heart", "breast-cancer", "wine", "fraud", "devices"],
        argument(
            "WHAT",
            "Data set: heart, breast-cancer, wine, fraud or all; devices: decisions of simulated quantum devices.",
        ),
    ] = "all"
    output: Annotated[
        Path, option(OUTPUT, "Folder for tables, plots and the page.", "--output", "-o", metavar="FOLDER")
    ] = Path("reproduction")
    jobs: Annotated[int | None, option(LARGE, "Processes side by side. Default: one per core.", min=1, metavar="N")] = (
        None
    )
    seed: Seed = 0
    quick: Annotated[
        bool, option(EVALUATION, "A smoke run: few splits or records, a sample of the frauds.", "--quick")
    ] = False
    cache: Annotated[
        Path | None,
        option(LARGE, "Folder of results that are done. Default: one in the user's cache.", metavar="FOLDER"),
    ] = None
    force: Force = False


def run(options: ReproduceOptions) -> None:
    """Run the experiments of the checkout that this package is imported from."""
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

    reproduce(options)
