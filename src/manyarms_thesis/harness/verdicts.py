"""Claims as a reader wants them: one verdict for each statement, whatever the number of worlds, and an answer in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from manyarms._base.text import counted
from manyarms_thesis.harness.claims import Claim, Measured, Verdict

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
MOST_NAMED = 3  # statements that an answer names of a kind


@dataclass(frozen=True)
class Statement:
    """What one statement came to over all the worlds in which it was measured."""

    text: str
    claims: Sequence[Claim]

    @property
    def verdict(self) -> Verdict:
        """Held where it held everywhere, in part where it held somewhere; else refuted where it was so anywhere."""
        verdicts = {one.verdict for one in self.claims}
        if verdicts == {"held"}:
            return "held"
        if verdicts & {"held", "held in part"}:
            return "held in part"
        return "refuted" if "refuted" in verdicts else "undecided"

    @property
    def against(self) -> bool:
        """Whether it is undecided only because what was below zero was so in worlds smaller than the thesis's."""
        return self.verdict == "undecided" and any(below_zero_here(one) for one in self.claims)

    @property
    def of_thesis(self) -> bool:
        """Whether the thesis states it of these worlds."""
        return bool(self.claims[0].thesis_lines)

    @property
    def sections(self) -> str:
        """The sections of the thesis that state it."""
        return self.claims[0].sections

    @property
    def nearest(self) -> Claim:
        """The claim that decided least for it."""
        return min(self.claims, key=lambda one: Measured(one.figure, one.standard_error, one.degrees).strength)

    @property
    def figure(self) -> str:
        """The least convincing difference and its standard error."""
        return figure_of(self.nearest)

    @property
    def counts(self) -> str:
        """In how many worlds it held, where there are several."""
        held = sum(one.holds for one in self.claims)
        return f"in {held} of {counted(len(self.claims), 'world')}" if len(self.claims) > 1 else ""


def below_zero_here(one: Claim) -> bool:
    """Whether a claim would be refuted, were its worlds not smaller than the thesis's."""
    return one.verdict == "undecided" and one.parts[2] > 0


def figure_of(one: Claim) -> str:
    """A difference with its standard error, or that it has none."""
    if math.isnan(one.figure):
        return "nothing to measure"
    if math.isnan(one.standard_error):
        return f"{one.figure:.4g} (no standard error)"
    return plus_minus(one.figure, one.standard_error)


def plus_minus(mean: float, error: float) -> str:
    """A figure with as many decimals as its error has two digits: 1,229 ± 160, 0.2437 ± 0.048; tiny ones by their powers of ten.

    >>> plus_minus(1229.4, 161.0), plus_minus(0.24371, 0.0482), plus_minus(3e-8, 2e-9), plus_minus(0.5, 0.0)
    ('1,229 ± 161', '0.244 ± 0.048', '3e-08 ± 2e-09', '0.5 ± 0')
    """
    if error == 0 or not 1e-6 <= error < 1e9 or abs(mean) >= 1e9:
        return f"{mean:.4g} ± {error:.2g}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{mean:,.{places}f} ± {error:,.{places}f}"


def statements(claims: Iterable[Claim]) -> list[Statement]:
    """The claims by statement, those of the thesis first."""
    groups: dict[tuple[bool, str], list[Claim]] = {}
    for one in claims:
        groups.setdefault((not one.thesis_lines, one.statement), []).append(one)
    return [Statement(text, groups[beyond, text]) for beyond, text in sorted(groups, key=lambda key: key[0])]


def tally(found: Sequence[Statement]) -> str:
    """How many of some statements came to which verdict: 5 held, 2 held in part, 3 undecided (1 below zero here)."""
    numbers = {verdict: sum(one.verdict == verdict for one in found) for verdict in VERDICTS}
    against = sum(one.against for one in found)
    said = f" ({against} below zero here)" if against else ""  # undecided is the last of the verdicts
    return ", ".join(f"{number} {verdict}" for verdict, number in numbers.items() if number) + said


def answer(claims: Sequence[Claim]) -> list[str]:
    """What came out, in sentences: how many statements held, and which did not; of this project's, those that are refuted."""
    found = statements(claims)
    of_thesis, beyond = ([one for one in found if one.of_thesis is kind] for kind in (True, False))
    texts = []
    if of_thesis:
        texts.append(f"Of {counted(len(of_thesis), 'statement')} of the thesis: {tally(of_thesis)}.")
    if beyond:
        texts.append(f"Of {counted(len(beyond), 'statement')} of this project: {tally(beyond)}.")
    for verdict in ("refuted", "undecided", "held in part", "held"):
        named = [one for one in of_thesis or beyond if one.verdict == verdict]
        if named and (verdict != "held" or len(named) == len(of_thesis or beyond)):
            texts.append(_named(verdict, named))
    refuted = [one for one in beyond if one.verdict == "refuted"]
    if of_thesis and refuted:
        texts.append(_named("refuted, of this project's own", refuted))
    return texts


def _named(verdict: str, some: Sequence[Statement]) -> str:
    shown = [f"{one.text} ({', '.join(filter(None, (one.counts, one.figure)))})" for one in some[:MOST_NAMED]]
    more = f"; and {len(some) - MOST_NAMED} more" if len(some) > MOST_NAMED else ""
    return f"{verdict[0].upper()}{verdict[1:]}: {'; '.join(shown)}{more}."


__all__ = ["VERDICTS", "Statement", "answer", "below_zero_here", "figure_of", "plus_minus", "statements", "tally"]
