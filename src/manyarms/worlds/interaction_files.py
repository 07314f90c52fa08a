"""Finding and reading who interacted with what; nothing is shipped or fetched.

Under MANYARMS_DATA, or in a folder of its own, plain or gzipped, as their publishers write them:

ml-1m, ml-100k, ml-25m    MovieLens: ratings.dat, u.data, ratings.csv
gowalla, amazon-book      train.txt, valid.txt, test.txt (those that are there are pooled): `user item item ...` a line
ciao, epinions            ratings.csv: user,product,category,rating[,helpfulness]; a rating of 0 is none
twitch                    full_a.csv or 100k_a.csv, without a header: user,stream,streamer,start,stop; streamers are the items
goodreads                 goodreads_interactions.csv: user_id,book_id,is_read,rating,is_reviewed

Every pair counts once. Ratings do not matter unless `least_rating` is given: whoever rated a film has seen it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import DataError, InvalidInput
from manyarms.worlds import data_files

InteractionSet = Literal[
    "ml-1m", "ml-100k", "ml-25m", "gowalla", "amazon-book", "ciao", "epinions", "twitch", "goodreads"
]
CHUNK = 1 << 26  # bytes of lines that are read at once: the largest of these files have hundreds of millions
LONGEST_NAME = 64  # characters of a streamer's name; the publisher's have at most 25
SPLITS = ("train.txt", "valid.txt", "test.txt")


@dataclass(frozen=True)
class InteractionTable:
    """A file with one interaction a line: its possible names, and where its columns are."""

    files: tuple[str, ...]
    separator: str
    header: tuple[str, ...]  # the columns; in the file itself only where `has_header`
    item: int
    rating: int | None
    has_header: bool = True
    named_items: bool = False
    zero_is_none: bool = False  # a rating of 0 stands for a rating that was never given


TABLES: dict[InteractionSet, InteractionTable] = {
    "ml-1m": InteractionTable(("ratings.dat",), "::", ("user", "movie", "rating", "timestamp"), 1, 2, has_header=False),
    "ml-100k": InteractionTable(("u.data",), "\t", ("user", "item", "rating", "timestamp"), 1, 2, has_header=False),
    "ml-25m": InteractionTable(("ratings.csv",), ",", ("userId", "movieId", "rating", "timestamp"), 1, 2),
    "ciao": InteractionTable(
        ("ratings.csv",), ",", ("user", "product", "category", "rating", "helpfulness"), 1, 3, zero_is_none=True
    ),
    "epinions": InteractionTable(
        ("ratings.csv",), ",", ("user", "product", "category", "rating"), 1, 3, zero_is_none=True
    ),
    "twitch": InteractionTable(
        ("full_a.csv", "100k_a.csv"),
        ",",
        ("user", "stream", "streamer", "start", "stop"),
        2,
        None,
        has_header=False,
        named_items=True,
    ),
    "goodreads": InteractionTable(
        ("goodreads_interactions.csv",), ",", ("user_id", "book_id", "is_read", "rating", "is_reviewed"), 1, 3
    ),
}


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct pairs of a user and an item, by user and then by item, both numbered from 0 without gaps.

    users, items (m,); user_ids and item_ids are what the file calls them, in rising order.
    """

    users: Ints
    items: Ints
    user_ids: AnyArray
    item_ids: AnyArray
    provenance: str

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        return f"Interactions({self.provenance})"

    @property
    def user_count(self) -> int:
        """How many users have an interaction."""
        return len(self.user_ids)

    @property
    def item_count(self) -> int:
        """How many items have an interaction."""
        return len(self.item_ids)


def read_interactions(
    name: InteractionSet, folder: str | Path | None = None, *, least_rating: float | None = None
) -> Interactions:
    """Read a data set, from memory where this process has read the same files before.

    least_rating: leave out what was rated lower, or not at all; None keeps every interaction.
    """
    validate.one_of("data", name, get_args(InteractionSet))
    if least_rating is not None:
        least_rating = validate.not_negative("least_rating", least_rating)
        if name not in TABLES or TABLES[name].rating is None:
            raise InvalidInput("least_rating", least_rating, f"None: {name} has no ratings")
    return _read(name, data_files.states_of(_find(name, folder)), least_rating)


def interactions_of(users: Array | Ints, items: AnyArray, provenance: str = "") -> Interactions:
    """Interactions from any two columns of the same length, repeated pairs kept once.

    >>> interactions_of([7, 3, 7, 7], ["b", "a", "a", "b"], "three of them").items
    array([0, 0, 1])
    """
    user_column, item_column = np.asarray(users), np.asarray(items)
    if user_column.ndim != 1 or user_column.shape != item_column.shape or not len(user_column):
        came = f"shapes {user_column.shape} and {item_column.shape}"
        raise InvalidInput("users, items", came, "two columns of the same length, not empty")
    user_ids, user_index = np.unique(user_column, return_inverse=True)
    item_ids, item_index = np.unique(item_column, return_inverse=True)
    pairs = np.unique(user_index.astype(np.int64) * len(item_ids) + item_index)
    told = f"{len(pairs):,} interactions of {len(user_ids):,} users with {len(item_ids):,} items"
    columns = (pairs // len(item_ids), pairs % len(item_ids), user_ids, item_ids)
    for column in columns:
        column.flags.writeable = False  # many worlds share it
    return Interactions(*columns, f"{provenance}: {told}" if provenance else told)


def _find(name: InteractionSet, folder: str | Path | None) -> list[Path]:
    base = data_files.data_folder(name, folder)
    choices = TABLES[name].files if name in TABLES else SPLITS
    # a folder of its own first: the root of all data sets may hold files of the same name
    for sub in (name, ""):
        found = [path for file in choices for path in data_files.plain_or_gzipped(Path(base) / sub, file)]
        if found:
            return found[:1] if name in TABLES else found
    raise DataError(f"{name}: no {' or '.join(choices)}, plain or .gz, in {base} or its folder {name}")


@lru_cache(maxsize=2)
def _read(name: InteractionSet, states: data_files.FileStates, least_rating: float | None) -> Interactions:
    paths = [path for path, _, _ in states]
    if name in TABLES:
        users, items = _table(paths[0], TABLES[name], least_rating)
    else:
        parts = [_lists(path) for path in paths]
        users, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    if not len(users):
        raise DataError(f"{paths[0]}: no interaction" + (" with such a rating" if least_rating is not None else ""))
    origin = f"{name} ({', '.join(path.name.removesuffix('.gz') for path in paths)})"
    if least_rating is not None:
        origin += f", ratings of at least {least_rating:g}"
    if data_files.is_made_up(paths[0]):
        origin = f"made-up data, not {origin}"
    return interactions_of(users, items, origin)


# ---- one interaction a line


def _table(path: Path, table: InteractionTable, least_rating: float | None) -> tuple[Ints, AnyArray]:
    """The columns of users and items of a whole file."""
    users: list[Ints] = []
    items: list[Ints] = []
    names: dict[str, int] = {}
    for first_line, lines in _chunks(path, table):
        chunk = _numbers(path, table, lines, first_line)
        keep = np.ones(len(chunk), dtype=np.bool_)
        if table.rating is not None:
            if table.zero_is_none:
                keep &= chunk["rating"] > 0
            if least_rating is not None:
                keep &= chunk["rating"] >= least_rating
        users.append(chunk["user"][keep])
        items.append(_numbered(path, chunk["item"], names) if table.named_items else chunk["item"][keep])
    who = np.concatenate(users) if users else np.empty(0, dtype=np.int64)
    what = np.concatenate(items) if items else np.empty(0, dtype=np.int64)
    if not table.named_items:
        return who, what
    return who, np.array(list(names))[what]


def _chunks(path: Path, table: InteractionTable) -> Iterator[tuple[int, list[str]]]:
    """Lists of lines that are not empty, with the number of the first; the header is checked and left out."""
    with data_files.opened(path) as stream:
        number = 1
        if table.has_header:
            header = tuple(_text(stream.readline()).strip().split(table.separator))
            if header != table.header:
                expected = table.separator.join(table.header)
                raise DataError(f"{path}: line 1: expected the header {expected!r}, got {','.join(header)[:80]!r}")
            number = 2
        while raw := stream.readlines(CHUNK):
            yield number, [_text(line) for line in raw]
            number += len(raw)


def _numbers(path: Path, table: InteractionTable, lines: list[str], first_line: int) -> AnyArray:
    """Users, items and ratings of some lines as a structured array."""
    # numpy's reader takes separators of one character
    single = lines if len(table.separator) == 1 else [line.replace(table.separator, "\t") for line in lines]
    single = [line for line in single if not line.isspace()]
    separator = table.separator if len(table.separator) == 1 else "\t"
    columns, kinds = [0, table.item], [("user", np.int64), ("item", f"U{LONGEST_NAME}" if table.named_items else "i8")]
    if table.rating is not None:
        columns.append(table.rating)
        kinds.append(("rating", np.float64))
    if not single:
        return np.empty(0, dtype=kinds)
    width = len(table.header)
    if any(line.count(separator) != width - 1 for line in single):
        raise _complaint(path, table, lines, first_line)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # older NumPy reads 1.5 as 1, and only warns
            chunk: AnyArray = np.loadtxt(
                single, delimiter=separator, comments=None, usecols=columns, dtype=kinds, ndmin=1
            )
    except (ValueError, DeprecationWarning) as error:
        raise _complaint(path, table, lines, first_line) from error
    if (chunk["user"] < 0).any() or (table.rating is not None and not (chunk["rating"] >= 0).all()):
        raise _complaint(path, table, lines, first_line)
    return chunk


def _numbered(path: Path, column: AnyArray, names: dict[str, int]) -> Ints:
    """Names as numbers in order of first appearance; `names` grows."""
    distinct, place = np.unique(column, return_inverse=True)
    numbers = np.empty(len(distinct), dtype=np.int64)
    for i, name in enumerate(distinct.tolist()):
        if len(name) >= LONGEST_NAME:
            raise DataError(f"{path}: an item's name of {LONGEST_NAME} or more characters: {name[:80]!r}")
        numbers[i] = names.setdefault(name, len(names))
    return numbers[place]


def _complaint(path: Path, table: InteractionTable, lines: list[str], first_line: int) -> DataError:
    """An error that names the first bad line."""
    numbered = {table.header[0]} if table.named_items else {table.header[0], table.header[table.item]}

    def what_is_wrong(column: str, field: str) -> str | None:
        if column in numbered:
            return None if field.strip().isdecimal() else "is not an integer of at least 0"
        if table.rating is None or column != table.header[table.rating]:
            return None
        try:
            return None if float(field) >= 0 else "is not a number of at least 0"
        except ValueError:
            return "is not a number"

    return data_files.complaint(path, map(str.strip, lines), first_line, table.separator, table.header, what_is_wrong)


# ---- one user a line


def _lists(path: Path) -> tuple[Ints, Ints]:
    """`user item item ...`; a user without items is a line of one number."""
    with data_files.opened(path) as stream:
        lines = [line.split() for line in stream]
    used = [line for line in lines if line]
    if not used:
        raise DataError(f"{path}: the file is empty")
    for number, line in enumerate(lines, start=1):
        if not all(map(bytes.isdigit, line)):
            came = b" ".join(line)[:80].decode("latin-1")
            raise DataError(f"{path}: line {number}: not a list of integers of at least 0: {came!r}")
    counts = np.array([len(line) - 1 for line in used])
    users = np.array([line[0] for line in used]).astype(np.int64)
    items = np.array([field for line in used for field in line[1:]], dtype=np.bytes_)
    return np.repeat(users, counts), items.astype(np.int64) if len(items) else np.empty(0, dtype=np.int64)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace")


__all__ = ["InteractionSet", "Interactions", "interactions_of", "read_interactions"]
