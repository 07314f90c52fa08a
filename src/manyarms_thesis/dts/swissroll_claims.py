"""What the thesis states about priors pre-trained on a Swiss roll, and what this project adds (Section 4.4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from manyarms_thesis.dts.pretrained import MOMENTS, OWN, PARTICLES, SHARED, SHARED_MOMENTS
from manyarms_thesis.harness.claims import Claim, Measured, claim, increasing, least, lower_regret, ratio
from manyarms_thesis.harness.results import Results

# "comparable" (thesis, Section 4.4.2): at most a tenth more regret
COMPARABLE, FACTOR = 0.9, 1.5


def series(results: Results) -> tuple[dict[int, str], dict[int, str]]:
    """Panels by pre-training size at the usual depth, and by depth at the usual size."""
    first = results.panels[0]
    L, n = results.parameter(first, "depth_usual"), results.parameter(first, "n_usual")
    by_size = {results.parameter(panel, "n"): panel for panel in results.where(L=L)}
    by_depth = {results.parameter(panel, "L"): panel for panel in results.where(n=n)}
    return dict(sorted(by_size.items())), dict(sorted(by_depth.items()))


def ratios_of(results: Results, panels: Mapping[int, str], agent: str) -> dict[int, Measured]:
    """LinTS's regret over that of dTS, by size or depth."""
    return {n: ratio(results, panel, agent, "LinTS") for n, panel in panels.items()}


def all_claims(results: Results) -> Iterator[Claim]:
    """Everything, for the prior as it is pre-trained, and for one chain for all with a Σ₁ that the thesis does not have."""
    by_size, by_depth = series(results)
    usual = results.parameter(results.panels[0], "depth_usual")
    for agent in (OWN, SHARED):
        found = [
            *_by_size(agent, ratios_of(results, by_size, agent)),
            *_by_depth(agent, ratios_of(results, by_depth, agent), usual),
        ]
        yield from (found if agent == OWN else [replace(one, thesis_lines="") for one in found])
    yield from of_rules(results, by_size[max(by_size)])


def of_rules(results: Results, panel: str) -> Iterator[Claim]:
    """The thesis's rule for evidence beside others, which it does not have."""
    for ours, theirs, statement in (
        (MOMENTS, OWN, "With one chain per action, moments have lower regret than the thesis's rule"),
        (PARTICLES, OWN, "With one chain per action, particles have lower regret than the thesis's rule"),
        (PARTICLES, "LinTS", "With one chain per action, by particles, dTS has lower regret than LinTS"),
        (SHARED_MOMENTS, SHARED, "With one chain for all, moments have lower regret than the thesis's rule"),
    ):
        yield lower_regret(results, panel, ours, theirs, statement, "")


def _by_size(agent: str, ratios: Mapping[int, Measured]) -> Iterator[Claim]:
    fewest, largest = min(ratios), max(ratios)
    fifty = min(ratios, key=lambda n: abs(n - 50))
    statement = "Larger pre-training sizes increase the gap to LinTS (ratio of LinTS's regret to dTS's)"
    yield increasing({f"n={n:,}": value for n, value in ratios.items()}, statement, "1688", panel=agent)
    for n, wanted, words, lines, meaning in (
        (fewest, COMPARABLE, f"With as few as {fewest} samples performance is comparable to LinTS", "1688",
         ": comparable means at most about a tenth more regret"),
        (fewest, 1, f"With only {fewest} samples dTS outperforms LinTS", "4038", ""),
        (fifty, FACTOR, f"With {fifty} samples dTS outperforms LinTS by a factor of {FACTOR}", "1688", ""),
        (largest, 1, f"With {largest:,} samples dTS outperforms LinTS", "1688", ""),
    ):  # fmt: skip
        above = replace(ratios[n], mean=ratios[n].mean - wanted)
        yield claim(words, lines, above, panel=agent, detail=f"ratio {ratios[n]} less {wanted}{meaning}")


def _by_depth(agent: str, ratios: Mapping[int, Measured], usual: int) -> Iterator[Claim]:
    ahead = {f"L={L}": ratios[usual] - value for L, value in ratios.items() if usual != L}
    nearest, difference = least(ahead)
    shown = ", ".join(f"L={L}: {value}" for L, value in ratios.items())
    yield claim(
        f"A depth of about {usual} yields the best performance", "1690", difference, panel=agent,
        parts=list(ahead.values()),
        detail=f"ratio of LinTS's regret to dTS's: {shown}; least convincing against {nearest}",
    )  # fmt: skip
    deepest = max(ratios)
    if deepest > usual:
        yield claim(
            f"Beyond a depth of {usual} performance drops", "1690", ratios[usual] - ratios[deepest], panel=agent,
            detail=f"ratio at L={usual} less that at L={deepest}",
        )  # fmt: skip


__all__ = ["all_claims", "of_rules", "ratios_of", "series"]
