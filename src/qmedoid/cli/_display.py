"""What the parts of the demo share: the bar, and how a mean is written."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def progress_bar() -> Progress:
    """A bar on standard error that leaves nothing behind; none where that is not a terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip


def with_error(mean: float, error: float | None) -> str:
    """A mean and, where there is one, its standard error."""
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f}"


def over_splits(splits: int) -> str:
    """What a table's figures are means of."""
    return "one stratified split" if splits == 1 else f"{splits} stratified splits (mean ± standard error)"


def verdict(ahead: float) -> str:
    """Whether another method is ahead of ours, from the difference of their scores."""
    by = f"{abs(ahead):.3f}"
    if float(by) == 0:
        return "is level with ours"
    return f"is ahead by {by}" if ahead > 0 else f"is behind by {by}"
