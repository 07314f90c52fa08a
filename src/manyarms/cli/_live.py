"""What commands on live stores have in common: the argument that names one, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

from manyarms.cli._progress import Board, News

Store = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="A live store: the path of its SQLite file, or postgresql://user@host:port/database.",
        show_default=False,
    ),
]


@contextmanager
def reporting(name: str) -> Iterator[Callable[[int, int, str], None]]:
    """A function to be told how much is done, of how much, and what it is; it goes to stderr."""
    with Board(Console(stderr=True), name) as board:
        yield lambda done, total, words: board.tell(News(name, done, total or None, words))


__all__ = ["Store", "reporting"]
