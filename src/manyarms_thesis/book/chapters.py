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


CHAPTERS: tuple[BookChapter, ...] = ()

__all__ = ["CHAPTERS", "EACH", "Against", "Bars", "BookChapter", "Over"]
