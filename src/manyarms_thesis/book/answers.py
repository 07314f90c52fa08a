"""Answers whose figures come from stored claims: text with places such as {mets-synthetic: meTS-Lin outperforms | linear}.

A place names an experiment, how a statement begins and, after a bar, a part of the panel's name. It becomes the claim's
figure with its standard error. `[held]` before the experiment's name demands a verdict: where the stored one is another,
the page is not made, so that no sentence outlives the result that it rests on. A place with `~` before it is checked and
shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from manyarms.errors import ManyArmsError
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.store import Record
from manyarms_thesis.harness.verdicts import figure_of

PLACE = re.compile(
    r"\{(?P<hidden>~?)(?:\[(?P<verdict>[a-z ]+)\])?(?P<name>[a-z0-9-]+):"
    r"\s*(?P<start>[^|{}]+?)\s*(?:\|\s*(?P<panel>[^{}]*?)\s*)?\}"
)


class StaleAnswer(ManyArmsError):
    """An answer rests on a result that is not there, or has changed."""


def filled(text: str, records: Mapping[str, Record]) -> str:
    """The text with the figures of the claims that it names."""

    def figure(place: re.Match[str]) -> str:
        claim = find(records, place["name"], place["start"], place["panel"] or "")
        if place["verdict"] and claim.verdict != place["verdict"]:
            raise StaleAnswer(
                f"the answer {text[:60]!r}... rests on {place['name']}, “{claim.statement}” ({claim.panel}): "
                f"it says {place['verdict']}, the stored verdict is {claim.verdict}"
            )
        return "" if place["hidden"] else figure_of(claim)

    made = PLACE.sub(figure, text)
    if stray := re.search(r"[{}].{0,60}", made):  # no text of an answer has braces
        raise StaleAnswer(f"the answer {text[:60]!r}... has a place that cannot be read, at {stray.group()!r}")
    return re.sub(r" +([.,;:)])", r"\1", made)


def find(records: Mapping[str, Record], name: str, start: str, panel: str) -> Claim:
    """The claim of an experiment whose statement begins so and whose panel is this one, or the first that has these words."""
    if name not in records:
        raise StaleAnswer(f"an answer rests on {name}, which has no stored result")
    named = [one for one in records[name].claims if one.statement.startswith(start) and panel in one.panel]
    if not named:
        raise StaleAnswer(f"an answer rests on {name}, “{start}...”, panel “{panel}”, which is not among its claims")
    return min(named, key=lambda one: one.panel != panel)  # the first of those that are best


__all__ = ["StaleAnswer", "filled", "find"]
