"""Finding and reading rating files; nothing is shipped or fetched.

The environment variable MANYARMS_DATA names a folder with one folder a data set (`ml-1m`, `ml-100k`). Files
may be plain or gzipped. MovieLens's terms forbid passing it on: whoever wants it takes it from its publisher,
and everybody else can work with `write_made_up_movielens`.
"""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from manyarms._base import validate
from manyarms._base.files import write_bytes_atomically
from manyarms._base.typing import Array, Ints
from manyarms.errors import DataError
from manyarms.worlds import data_files
from manyarms.worlds.interaction_files import TABLES

COLUMNS = ("user", "movie", "rating", "timestamp")
LOWEST, HIGHEST = 1.0, 5.0

RatingSet = Literal["ml-1m", "ml-100k"]


@dataclass(frozen=True, eq=False)
class Ratings:
    """Who rated what and how: users and items are numbered from 0 without gaps, their own ids kept beside.

    users, items, ratings (n,); user_ids (U,) and item_ids (I,) in rising order; only rated items are there.
    """

    users: Ints
    items: Ints
    ratings: Array
    user_ids: Ints
    item_ids: Ints
    provenance: str

    def __len__(self) -> int:
        return len(self.ratings)


def find_ratings(name: RatingSet = "ml-1m", folder: str | Path | None = None) -> Path:
    """The rating file of a data set: in `folder` itself, in its folder `name`, or under MANYARMS_DATA."""
    validate.one_of("data", name, get_args(RatingSet))
    base = data_files.data_folder(name, folder, "manyarms.worlds.datasets.write_made_up_movielens")
    [file] = TABLES[name].files
    for sub in ("", name):
        for path in data_files.plain_or_gzipped(Path(base) / sub, file):
            return path
    raise DataError(f"{name}: no file {file} or {file}.gz in {base} or its folder {name}")


def read_ratings(name: RatingSet = "ml-1m", folder: str | Path | None = None) -> Ratings:
    """Read a data set's ratings, from memory where the same file has been read before by this process."""
    return _read(name, data_files.states_of([find_ratings(name, folder)]))


@lru_cache(maxsize=2)
def _read(name: RatingSet, states: data_files.FileStates) -> Ratings:
    [(path, _, _)] = states
    separator = TABLES[name].separator
    with data_files.opened(path) as stream:
        text = stream.read()
    table = _table(path, text, separator)
    users, movies, ratings = table[:, 0], table[:, 1], table[:, 2]
    whole = (users >= 1) & (movies >= 1) & (users == np.floor(users)) & (movies == np.floor(movies))
    if not (np.isfinite(table).all() and (whole & (ratings >= LOWEST) & (ratings <= HIGHEST)).all()):
        raise _complaint(path, text, separator)
    user_ids, user_index = np.unique(users.astype(np.int64), return_inverse=True)
    item_ids, item_index = np.unique(movies.astype(np.int64), return_inverse=True)
    counts = f"{len(ratings):,} ratings of {len(item_ids):,} movies by {len(user_ids):,} users"
    made_up = data_files.is_made_up(path)
    columns = (user_index.astype(np.int64), item_index.astype(np.int64), ratings.copy(), user_ids, item_ids)
    for column in columns:
        column.flags.writeable = False  # many worlds share it
    return Ratings(*columns, f"made-up data, not MovieLens: {counts}" if made_up else f"MovieLens {name}: {counts}")


def _table(path: Path, text: bytes, separator: str) -> Array:
    """All lines as numbers, (n, 4); a file with anything else in it is refused with its first bad line."""
    if not text.strip():
        raise DataError(f"{path}: the file is empty")
    # numpy's C reader takes separators of one character; a tab that is there already would go unseen
    # otherwise
    mixed = separator != "\t" and b"\t" in text
    try:
        single = text.replace(separator.encode(), b"\t")
        table = np.loadtxt(io.BytesIO(single), delimiter="\t", comments=None, ndmin=2, encoding="latin-1")
    except ValueError as error:
        raise _complaint(path, text, separator) from error
    if mixed or table.shape[1] != len(COLUMNS):
        raise _complaint(path, text, separator)
    return table


def _complaint(path: Path, text: bytes, separator: str) -> DataError:
    """An error that names the first line which is not four good numbers."""
    return data_files.complaint(path, text.decode("latin-1").split("\n"), 1, separator, COLUMNS, _what_is_wrong)


def _what_is_wrong(column: str, field: str) -> str | None:
    try:
        value = float(field)
    except ValueError:
        return "is not a number"
    if not np.isfinite(value):
        return "is not finite"
    if column in ("user", "movie") and (value < 1 or value != int(value)):
        return "is not an integer of at least 1"
    if column == "rating" and not LOWEST <= value <= HIGHEST:
        return f"is not between {LOWEST:g} and {HIGHEST:g}"
    return None


def write_made_up_movielens(
    folder: str | Path, *, users: int = 200, movies: int = 150, share: float = 0.3, seed: int = 0
) -> Path:
    """Write a small made-up `ratings.dat.gz` in ml-1m's format, and a note that says it is made up; gives the
    folder.

    Movies scatter around five centres in three dimensions and ratings are rounded inner products, so that a
    factorisation and a mixture find something. Every movie and every user has a rating; in all about a part
    `share` of the pairs is rated.
    """
    users, movies = validate.count("users", users), validate.count("movies", movies)
    share = validate.probability("share", share)
    rng = np.random.default_rng(validate.seed(seed))
    centres = rng.normal(scale=0.8, size=(5, 3))
    movie_vectors = centres[rng.integers(5, size=movies)] + rng.normal(scale=0.3, size=(movies, 3))
    user_vectors = rng.normal(size=(users, 3))
    scores = 3.5 + user_vectors @ movie_vectors.T + rng.normal(scale=0.5, size=(users, movies))
    seen = rng.random((users, movies)) < share
    seen[np.arange(users), rng.integers(movies, size=users)] = True
    seen[rng.integers(users, size=movies), np.arange(movies)] = True
    who, what = np.nonzero(seen)
    given = np.clip(np.rint(scores[who, what]), LOWEST, HIGHEST).astype(np.int64)
    lines = "".join(f"{u + 1}::{m + 1}::{r}::0\n" for u, m, r in zip(who, what, given, strict=True))
    note = f"Made-up ratings (seed {seed}), in the format of MovieLens 1M; not MovieLens.\n"
    target = data_files.made_up_folder(folder, note)
    # without a time stamp in it the file is the same, byte for byte, for the same arguments
    packed = gzip.compress(lines.encode("ascii"), mtime=0)
    write_bytes_atomically(target / f"{TABLES['ml-1m'].files[0]}.gz", packed)
    return target


__all__ = ["RatingSet", "Ratings", "find_ratings", "read_ratings", "write_made_up_movielens"]
