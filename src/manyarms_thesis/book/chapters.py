"""The chapters of the book, in the order of the thesis.

Answers name the claims that they rest on (`book.answers`): where a stored verdict is no longer the one that a sentence was
written for, the page is not made. Every experiment with a stored result is spoken of in the answer of its chapter.
"""

from __future__ import annotations

from manyarms_thesis.book.chapter import BookChapter
from manyarms_thesis.book.offline import ES, PWLL, SDM
from manyarms_thesis.book.online import DRIFT, DTS, METS

CHAPTERS: tuple[BookChapter, ...] = (METS, DTS, SDM, PWLL, ES, DRIFT)

__all__ = ["CHAPTERS", "BookChapter"]
