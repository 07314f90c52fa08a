"""Actions: the ids of a catalogue and their rows, both ways; a row once given never changes.

Methods number actions 0 .. K-1, the world calls them by name. New names continue the count, so everything learned for
the old ones stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path

import numpy as np
import numpy.typing as npt

from manyarms._base import storage
from manyarms._base.typing import AnyArray, Ints
from manyarms._base.validate import describe, integers
from manyarms.errors import InvalidInput, StorageError, UnknownAction

KIND = "actions"


class Actions(Sequence[str]):
    """An unchangeable list of distinct, non-empty string ids.

    >>> catalogue = Actions(["apple", "pear"]).add(["fig"])
    >>> catalogue.rows(["fig", "apple"])
    array([2, 0])
    >>> catalogue.ids([1, 1, 2])
    ['pear', 'pear', 'fig']
    """

    def __init__(self, ids: Iterable[str]) -> None:
        if not isinstance(ids, Iterable):
            raise InvalidInput("ids", describe(ids), "a list of non-empty strings")
        self._ids: tuple[str, ...] = tuple(ids)
        self._rows: dict[str, int] = {}
        for row, name in enumerate(self._ids):
            if not isinstance(name, str) or not name:
                raise InvalidInput("ids", f"{describe(name)} at row {row}", "non-empty strings")
            if self._rows.setdefault(name, row) != row:
                raise UnknownAction("ids", f"{describe(name)} at rows {self._rows[name]} and {row}", "distinct ids")

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._ids[row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Actions) and self._ids == other._ids

    def __hash__(self) -> int:
        return hash(self._ids)

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._ids[:3]))
        return f"Actions([{shown}{', ...' if len(self) > 3 else ''}], {len(self)} in all)"

    def row(self, name: str) -> int:
        """The row of one id."""
        found = self._rows.get(name) if isinstance(name, str) else None
        if found is None:
            raise UnknownAction("action", describe(name), f"an id of the catalogue, which has {len(self)}")
        return found

    def rows(self, names: Iterable[str]) -> Ints:
        """The rows of ids."""
        return np.array([self.row(name) for name in names], dtype=np.int64)

    def ids(self, rows: npt.ArrayLike) -> list[str]:
        """The ids of rows."""
        if isinstance(rows, np.ndarray):
            rows = rows.ravel()
        wanted = integers("rows", [int(rows)] if isinstance(rows, Integral) else rows)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise UnknownAction("rows", int(wanted.max()), f"rows from 0 to {len(self) - 1}")
        return [self._ids[row] for row in wanted.tolist()]

    def add(self, names: Iterable[str]) -> Actions:
        """A longer catalogue: the ids that are new, in their order, after the old ones."""
        fresh = dict.fromkeys(name for name in Actions(dict.fromkeys(names)) if name not in self._rows)
        return Actions((*self._ids, *fresh)) if fresh else self

    def arrays(self) -> dict[str, AnyArray]:
        """All ids as two plain arrays: their UTF-8 bytes one after the other, and where each one ends."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in self._ids]
        ends = np.cumsum([len(piece) for piece in encoded], dtype=np.int64)
        return {"utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray]) -> Actions:
        """The catalogue that `arrays` came from."""
        try:
            text, ends = arrays["utf8"].tobytes(), arrays["ends"].tolist()
            if (ends[-1] if ends else 0) != len(text):
                raise ValueError(f"{len(text)} bytes, but the last id ends at {ends[-1] if ends else 0}")
            starts = [0, *ends[:-1]]
            return cls(text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True))
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(f"the arrays hold no catalogue of actions: {error}") from error

    def save(self, folder: Path | str) -> None:
        """Write the catalogue to a folder of its own; `manyarms.load` reads it."""
        storage.save(folder, KIND, {}, self.arrays())


@storage.LOADERS.register(KIND)
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Actions:
    return Actions.from_arrays(arrays)


__all__ = ["Actions"]
