"""``qmedoid reproduce``: runs the paper's experiments, which lie beside the source of the package and not in it."""

import sys
from pathlib import Path

import qmedoid
from qmedoid.cli.more_options import ReproduceOptions
from qmedoid.exceptions import MissingExtraError


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
