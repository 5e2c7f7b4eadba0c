"""The last part of ``qmedoid demo``: the sample of the credit-card frauds."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from qmedoid.cli._display import over_splits, progress_bar, verdict, with_error
from qmedoid.studies.datasets import load_creditcard_sample
from qmedoid.studies.fraud import METHODS, RareOutcome, compare_rare


def fraud_outcomes(seeds: Sequence[int]) -> Iterator[RareOutcome]:
    """Outcomes of every method on the fraud sample, with a bar meanwhile."""
    with progress_bar() as bar:
        task = bar.add_task("credit-card fraud", total=len(METHODS))
        for outcome in compare_rare(load_creditcard_sample(), METHODS, seeds):
            bar.advance(task)
            yield outcome


def fraud_table(outcomes: Sequence[RareOutcome]) -> Table:
    """A row for every method."""
    first = outcomes[0]
    table = Table(
        title=f"{first.data}: test rows of {over_splits(first.splits)}",
        title_justify="left",
        caption=f"recall: of the frauds, among the {100 * first.alert_budget:.0f} % most suspicious test rows. "
        f"{100 * first.prevalence:.1f} % of the rows are frauds; in the whole table it is 0.17 %, and PR-AUC and "
        "log-loss would be others. log-loss: smaller is better.",
        caption_justify="left",
    )
    table.add_column("method")
    for column in ("PR-AUC", "recall", "log-loss"):
        table.add_column(column, justify="right")
    for outcome in outcomes:
        table.add_row(
            outcome.method,
            with_error(outcome.pr_auc, outcome.pr_auc_se),
            with_error(outcome.recall, outcome.recall_se),
            with_error(outcome.log_loss, outcome.log_loss_se),
        )
    return table


def fraud_findings(outcomes: Sequence[RareOutcome]) -> Iterator[str]:
    """Who decided, and whether a plain baseline is ahead of us."""
    staged = [
        f"{100 * outcome.by_circuit:.0f} % in {outcome.method!r} (stage: {outcome.stage})"
        for outcome in outcomes
        if outcome.by_circuit is not None
    ]
    if staged:
        yield "Records decided by the circuit: " + ", ".join(staged) + "."
    own = {outcome.method: outcome.pr_auc for outcome in outcomes}
    plain = {method: score for method, score in own.items() if not method.startswith("qmedoid")}
    best = max(plain, key=plain.__getitem__)
    yield f"{outcomes[0].data}: the best plain baseline, {best}, {verdict(plain[best] - own['qmedoid'])} in PR-AUC."
