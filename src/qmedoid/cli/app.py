"""The commands of ``qmedoid``; each imports what it needs when it runs, so that ``--help`` answers at once."""

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=True, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        from qmedoid import __version__

        typer.echo(f"qmedoid {__version__}")
        raise typer.Exit


@app.callback()
def qmedoid(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """A geometry-first, quantum-inspired classifier for tables."""


@app.command()
def demo(
    splits: Annotated[int, typer.Option(min=1, help="Repeated splits of each small data set.")] = 5,
    fraud_splits: Annotated[int, typer.Option(min=0, help="Repeated splits of the fraud sample; 0 leaves it out.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first split.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Fit heart, breast cancer, wine and a sample of card frauds; print ours beside the paper's and plain baselines."""
    from qmedoid.cli.demo import run

    run(splits=splits, fraud_splits=fraud_splits, seed=seed, as_json=json)


def main() -> None:
    """Entry point of the console script."""
    app()
