"""A chapter of the book: what it asks, of what, what came out, and which picture shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from manyarms_thesis.book.pictures import Drawing
from manyarms_thesis.harness.experiments import slug

EACH = "a context for each action"
SCALED = "scores scaled, zero start"
TEXTS = Path(__file__).with_name("texts")


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


def answer_of(name: str) -> str:
    """The answer of a chapter, from texts/NAME.md: lines may end anywhere, a paragraph or an item of a list is one line here."""
    blocks = (TEXTS / f"{name}.md").read_text(encoding="utf-8").strip().split("\n\n")
    return "\n\n".join(re.sub(r"\s*\n(?!- )\s*", " ", block) for block in blocks)


__all__ = ["EACH", "SCALED", "BookChapter", "answer_of"]
