"""What the thesis states about its posterior approximation, and the table of distances.

The thesis prints one law of the parameter, N(0, I) (Appendix B.6.3): statements about the Swiss roll are this project's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from manyarms_thesis.harness.claims import Claim, Measured, claim, measured
from manyarms_thesis.harness.results import Results

MARKS = (0, 1, 10, 100)
NORMAL, ROLL = "normal law", "Swiss roll"
GAUSSIAN, TRUTH = "Gaussian", "truth again"
COLUMNS = ("mean_error", "covariance_error", "sliced")
# "matches" and "nearly matches" (thesis, Appendix B.6.3), in standard deviations of the law that is to be matched
MATCHES, NEARLY = 0.15, 0.5
# how much farther than sampling itself a prior may be that is "exactly recovered" (thesis, Appendix B.2)
RECOVERED = 0.03


def at(results: Results, panel: str, rule: str, column: str, mark: int) -> Measured:
    """A distance after `mark` observations."""
    return measured(results.values(panel, rule, column)[:, MARKS.index(mark)])


def _paired(results: Results, panel: str, first: str, second: str, mark: int) -> Measured:
    """By how much one rule is farther from the truth than another, run by run."""
    one, other = (results.values(panel, rule, "sliced")[:, MARKS.index(mark)] for rule in (first, second))
    return measured(one - other)


def all_claims(results: Results) -> list[Claim]:
    """Everything that the thesis says about the approximation."""
    return [*_as_in_the_thesis(results), *_limits(results), *_against_others(results)]


def _as_in_the_thesis(results: Results) -> list[Claim]:
    """P_1, the exact posterior under N(0, I), and P_2, dTS's under the pre-trained prior (thesis, Appendix B.6.3)."""
    prior = at(results, NORMAL, "thesis", "to_exact", 0)
    apart = results.values(NORMAL, "thesis", "to_exact")[:, -1]
    width = results.values(NORMAL, "thesis", "exact_sd")[:, -1]
    return [
        claim(
            "The learned prior matches the true Gaussian prior", "4018",
            replace(prior, mean=MATCHES - prior.mean), panel=NORMAL,
            detail=f"{MATCHES} standard deviations less the sliced Wasserstein distance {prior}",
        ),
        claim(
            "After 100 rounds the approximate posterior P₂ nearly matches the exact posterior P₁", "4018",
            measured(NEARLY * width - apart), panel=NORMAL,
            detail=f"half a standard deviation of P₁ ({measured(width)} in all) less the sliced Wasserstein distance "
            f"{measured(apart)}",
        ),
    ]  # fmt: skip


def _limits(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        extra = _paired(results, panel, "thesis", TRUTH, 0)
        yield claim(
            "Without data the approximation recovers the diffusion prior exactly", "3564" if panel == NORMAL else "",
            replace(extra, mean=RECOVERED - extra.mean), panel=panel,
            detail=f"{RECOVERED} less what it is farther from the prior than a second sample of the prior, {extra}",
        )  # fmt: skip
        values = results.values(panel, "thesis", "sliced")
        yield claim(
            "With more data the approximation comes nearer to the truth", "",  # the thesis: the prior's influence fades
            measured(values[:, MARKS.index(10)] - values[:, MARKS.index(100)]), panel=panel,
            detail="sliced Wasserstein distance after 10 observations less that after 100",
        )  # fmt: skip


def _against_others(results: Results) -> Iterator[Claim]:
    not_gaussian = "Where the prior is not Gaussian, the approximation is nearer to the truth than a single Gaussian"
    no_links = "Leaving the links out on the way up loses nothing: the rule with Jacobians is farther from the truth"
    pairs = [(not_gaussian, ROLL, GAUSSIAN, "Gaussian {}, dTS {}")]
    pairs += [(no_links, panel, "jacobian", "jacobian {}, thesis {}") for panel in results.panels]
    for statement, panel, other, words in pairs:
        for mark in MARKS[1:]:
            shown = words.format(*(at(results, panel, rule, "sliced", mark) for rule in (other, "thesis")))
            yield claim(
                statement, "", _paired(results, panel, other, "thesis", mark), panel=f"{panel}, {mark} observations",
                detail=f"sliced Wasserstein distance: {shown}",
            )  # fmt: skip


def table(results: Results) -> str:
    """The distances as a Markdown table."""
    lines = [
        "| prior | observations | posterior | mean error | covariance error | sliced Wasserstein | effective draws |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for panel in results.panels:
        for mark in MARKS:
            for rule in results.methods(panel):
                errors = " | ".join(_short(at(results, panel, rule, column, mark)) for column in COLUMNS)
                effective = at(results, panel, rule, "effective_draws", mark).mean
                lines.append(f"| {panel} | {mark} | {rule} | {errors} | {effective:,.0f} |")
    return "\n".join(lines) + "\n"


def _short(value: Measured) -> str:
    return f"{value.mean:.3f} ± {value.standard_error:.3f}"


__all__ = ["COLUMNS", "GAUSSIAN", "MARKS", "NORMAL", "ROLL", "TRUTH", "all_claims", "at", "table"]
