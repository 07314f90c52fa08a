"""The chapters of the book: what each asks, of what, what came out, and which picture shows it.

Answers name the claims that they rest on (`book.answers`): where a stored verdict is no longer the one that a sentence was
written for, the page is not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from manyarms_thesis.book.pictures import Against, Bars, Drawing, Over
from manyarms_thesis.harness.experiments import slug

EACH = "a context for each action"
SCALED = "scores scaled, zero start"


@dataclass(frozen=True)
class BookChapter:
    """A chapter: `number` is the first part of the place of its experiments."""

    number: int
    title: str
    question: str
    setting: str
    answer: str
    drawings: Sequence[Drawing] = field(default_factory=list)
    caption: str = ""

    @property
    def anchor(self) -> str:
        """Where links lead."""
        return slug(self.title)


METS = BookChapter(
    1,
    "Structured beliefs: meTS",
    "Many items are mixtures of a few shared effects. Does Thompson sampling that learns the effects lose less than agents that "
    "learn every item alone, and does the lead grow with the catalogue?",
    "Worlds drawn from the mixed-effect model itself (Section 3.4), MovieLens with a structure learned from other users, and worlds in "
    "which the prior is wrong. Regret is the expected one, over 5,000 rounds at the thesis's sizes. One context is shared by all "
    "actions, as the thesis's text says; a context for each action, as its authors' public code has it, stands beside.",
    "TODO",
    [],
    "TODO",
)

CHAPTERS: tuple[BookChapter, ...] = (METS,)

__all__ = ["CHAPTERS", "EACH", "Against", "Bars", "BookChapter", "Over"]
