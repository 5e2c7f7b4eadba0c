"""What a reader should know first, in sentences made from the results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from qmedoid.reporting.document import Table, Value
from qmedoid.studies.paper import FRAUD
from qmedoid.studies.reproduction.against import Duel
from qmedoid.studies.reproduction.fraud import FIXED
from qmedoid.studies.reproduction.fraud_details import SPLITS
from qmedoid.studies.reproduction.fraud_tables import measure_of
from qmedoid.studies.reproduction.plan import NUMBERED
from qmedoid.studies.reproduction.results import Results


def rival_findings(duels: Iterable[Duel], titles: Mapping[str, str], ranked_by: Sequence[str]) -> Iterator[str]:
    """For every data set and kind of split, who is best by each figure, and by how much it beats our default or not."""
    by_place: dict[tuple[str, str, str], list[Duel]] = {}
    for duel in duels:
        if duel.figure in ranked_by:
            by_place.setdefault((duel.data, duel.split, duel.figure), []).append(duel)
    for (data, split, figure), rivals in by_place.items():
        best = max(rivals, key=lambda duel: duel.theirs.mean)
        where = titles[data] + ("" if split == "random" else f", split {SPLITS[best.split]}")
        yield f"{where}: {_verdict(best, figure)}"


def _verdict(best: Duel, figure: str) -> str:
    ahead, n = best.difference.mean, len(best.difference.values)
    sure = best.error is not None and abs(ahead) > 2 * best.error
    by = f"{abs(ahead):.3f}" + ("" if best.error is None else f" ± {best.error:.3f}")
    figures = f"{best.theirs.mean:.3f} against {best.ours.mean:.3f} in {figure}"
    if ahead > 0:
        doubt = "" if sure or n == 1 else "; that is within two standard errors"
        return (
            f"the plain classifier {best.rival} beats our default by {by} ({figures}), "
            f"on {f'{best.wins} of {n} splits' if n > 1 else 'the only split'}{doubt}."
        )
    place = f"behind by {by}" if ahead < 0 else "level with it"
    return f"no plain classifier beats our default; the best, {best.rival}, is {place} ({figures})."


def leak_finding(results: Results, data: str, *, comparable: bool) -> Iterator[str]:
    """How far a random forest is flattered by the rows that it was fitted on."""
    measured = [results.spread(data, "RandomForest", measure_of("PR-AUC", part, FIXED)) for part in ("all", "test")]
    share = results.spread(data, "RandomForest", lambda result: result["train"]["rows"] / result["all"]["rows"])
    everything, held_out = measured
    if everything is None or held_out is None or share is None:
        return
    printed = FRAUD["fraud_matched"]["RandomForest"]["PR-AUC"]
    yield (
        f"A random forest has a PR-AUC of {everything.mean:.3f} on all rows, {100 * share.mean:.0f} % of which it was "
        f"fitted on, and {held_out.mean:.3f} on test rows."
        + (f" The paper prints {printed:.3f}, for all rows." if comparable else "")
    )


def spread_findings(table: Table) -> Iterator[str]:
    """How many of the printed figures are within the spread of ours, and which are not."""
    for ours in (True, False):
        # One encoding of the heart data is enough here, lest its figures count twice.
        rows = [row for row in table.rows if _is_ours(row) == ours and not _is_numbered(row)]
        if not rows:
            continue
        outside = [row for row in rows if row[-1] == "no"]
        whose = "The paper's figures of its own method" if ours else "The paper's figures of plain classifiers"
        yield f"{whose}: {len(rows) - len(outside)} of {len(rows)} are within the spread of repeated splits."
        if ours:
            for row in outside:
                yield (
                    f"{row[0]}, as printed: the paper has {row[2]} {row[3]:.4f}; ours is {row[4]:.4f}, "
                    f"{row[6]:.4f} to {row[7]:.4f} over the splits."
                )


def encoding_finding(table: Table) -> Iterator[str]:
    """Which encoding of categories fits the printed figures of plain classifiers better."""
    numbered = [row for row in table.rows if _is_numbered(row) and not _is_ours(row)]
    names = {str(row[0]).removesuffix(f", {NUMBERED}") for row in numbered}
    one_hot = [row for row in table.rows if row[0] in names and not _is_ours(row)]
    if not numbered:
        return
    fits = [sum(row[-1] == "yes" for row in rows) for rows in (one_hot, numbered)]
    yield (
        f"{', '.join(sorted(names))}: of the paper's {len(numbered)} figures of plain classifiers {fits[0]} are within "
        f"the spread where categories are columns of 0 and 1, and {fits[1]} where they are numbered. "
        + ("The paper may have numbered them." if fits[1] > fits[0] else "That does not tell how the paper did it.")
    )


def _is_ours(row: Sequence[Value]) -> bool:
    return str(row[1]).startswith("printed")


def _is_numbered(row: Sequence[Value]) -> bool:
    return str(row[0]).endswith(NUMBERED)
