"""Answers whose figures come from stored claims: text with places such as {mets-synthetic: meTS-Lin outperforms | linear}.

A place names an experiment, how a statement begins and, after a bar, a part of the panel's name. It becomes the claim's
figure with its standard error. `| *` in place of a panel is the statement as a whole, over all of its worlds, as the book's
tables judge it. `[held]` before the experiment's name demands a verdict: where the stored one is another, the page is not
made, so that no sentence outlives the result that it rests on. A place with `~` before it is checked and shows nothing; one
with `#` shows how many of its comparisons hold, "38 of 42".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from manyarms.errors import ManyArmsError
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.store import Record
from manyarms_thesis.harness.verdicts import Statement, figure_of, statements

PLACE = re.compile(
    r"\{(?P<kind>[~#]?)(?:\[(?P<verdict>[a-z ]+)\])?(?P<name>[a-z0-9-]+):"
    r"\s*(?P<start>[^|{}]+?)\s*(?:\|\s*(?P<panel>[^{}]*?)\s*)?\}"
)
EVERY_WORLD = "*"


class StaleAnswer(ManyArmsError):
    """An answer rests on a result that is not there, or has changed."""


def filled(text: str, records: Mapping[str, Record]) -> str:
    """The text with the figures of the claims that it names."""

    def figure(place: re.Match[str]) -> str:
        panel = place["panel"] or ""
        if panel == EVERY_WORLD:
            whole = find_whole(records, place["name"], place["start"])
            stored, shown, of = whole.verdict, whole.figure, whole.claims
        else:
            claim = find(records, place["name"], place["start"], panel)
            stored, shown, of = claim.verdict, figure_of(claim), [claim]
        if place["verdict"] and stored != place["verdict"]:
            raise StaleAnswer(
                f"the answer {text[:60]!r}... rests on {place['name']}, “{place['start']}...” ({panel}): "
                f"it says {place['verdict']}, the stored verdict is {stored}"
            )
        if place["kind"] == "#":
            return f"{sum(one.parts[1] for one in of)} of {sum(one.parts[0] for one in of)}"
        return "" if place["kind"] else shown

    made = PLACE.sub(figure, text)
    if stray := re.search(r"[{}].{0,60}", made):  # no text of an answer has braces
        raise StaleAnswer(f"the answer {text[:60]!r}... has a place that cannot be read, at {stray.group()!r}")
    return re.sub(r" +([.,;:)])", r"\1", made)


def find(records: Mapping[str, Record], name: str, start: str, panel: str) -> Claim:
    """The claim of an experiment whose statement begins so and whose panel is this one, or the first that has these words."""
    named = [one for one in _record(records, name).claims if one.statement.startswith(start) and panel in one.panel]
    if not named:
        raise StaleAnswer(f"an answer rests on {name}, “{start}...”, panel “{panel}”, which is not among its claims")
    return min(named, key=lambda one: one.panel != panel)  # the first of those that are best


def find_whole(records: Mapping[str, Record], name: str, start: str) -> Statement:
    """The one statement of an experiment that begins so, the thesis's own where it is measured beyond the thesis, too."""
    named = [one for one in statements(_record(records, name).claims) if one.text.startswith(start)]
    if len({one.text for one in named}) != 1:
        raise StaleAnswer(f"an answer rests on {name}, “{start}...”: {len(named)} of its statements begin so")
    return named[0]


def _record(records: Mapping[str, Record], name: str) -> Record:
    if name not in records:
        raise StaleAnswer(f"an answer rests on {name}, which has no stored result")
    return records[name]


__all__ = ["StaleAnswer", "filled", "find", "find_whole"]
