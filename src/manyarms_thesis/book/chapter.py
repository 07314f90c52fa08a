"""A chapter of the book: what it asks, of what, what came out, and which picture shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from manyarms_thesis.book.pictures import Drawing
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


__all__ = ["EACH", "SCALED", "BookChapter"]
