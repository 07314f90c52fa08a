"""Actions: the ids of a catalogue and their rows, both ways; a row once given never changes.

Methods number actions 0 .. K-1, the world calls them by name or by a number of its own. New ids continue the count, so
everything learned for the old ones stays where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from numbers import Integral
from pathlib import Path
from threading import Lock

import numpy as np
import numpy.typing as npt

from manyarms._base import storage
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted
from manyarms._base.typing import AnyArray, Ints
from manyarms._base.validate import describe, integers
from manyarms.errors import InvalidInput, StorageError, UnknownAction

KIND = "actions"
MOST = 2**63 - 1  # what an integer id, which is saved as int64, may be in size
EXPECTED = "ids of one kind: non-empty strings, or integers of 64 bits"

_GROWING = Lock()  # held while a catalogue is made longer: several that share their ids may be, in as many threads

ActionId = str | int
"""What an action is called: a non-empty string, or an integer of 64 bits."""


class Actions(Shown, Sequence[ActionId]):
    """An unchangeable list of distinct ids, all of them strings or all of them integers.

    `add` gives a longer one that shares what it can with this one: adding costs what is new, not what is there.

    >>> catalogue = Actions(["apple", "pear"]).add(["fig"])
    >>> catalogue.rows(["fig", "apple"])
    array([2, 0])
    >>> catalogue.ids([1, 1, 2])
    ['pear', 'pear', 'fig']
    """

    def __init__(self, ids: Iterable[ActionId]) -> None:
        self._ids: list[ActionId] = []  # of this catalogue and of longer ones made from it: the first `_size` are ours
        self._rows: dict[ActionId, int] = {}
        self._size = 0
        self._extend(ids)

    def _extend(self, ids: Iterable[ActionId]) -> None:
        """Put ids behind those that are there, all of them or none."""
        if not isinstance(ids, Iterable) or isinstance(ids, str | bytes):
            raise InvalidInput("ids", describe(ids), "a list of " + EXPECTED)
        fresh: list[ActionId] = []
        rows: dict[ActionId, int] = {}
        for row, given in enumerate(ids, start=self._size):
            name = as_id("ids", given, f" at row {row}")
            first = self._ids[0] if self._ids else fresh[0] if fresh else name
            if isinstance(name, str) is not isinstance(first, str):
                raise InvalidInput("ids", f"{describe(first)} at row 0 and {describe(name)} at row {row}", EXPECTED)
            if (known := self._rows.get(name, rows.get(name))) is not None:
                raise UnknownAction("ids", f"{describe(name)} at rows {known} and {row}", "distinct ids")
            rows[name] = row
            fresh.append(name)
        self._ids += fresh
        self._rows |= rows
        self._size = len(self._ids)

    @property
    def numbered(self) -> bool:
        """Whether the ids are integers."""
        return self._size > 0 and not isinstance(self._ids[0], str)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, row: int) -> ActionId:  # type: ignore[override]
        return self._ids[range(self._size)[row]]

    def __iter__(self) -> Iterator[ActionId]:
        return iter(self._ids[: self._size])

    def __contains__(self, name: object) -> bool:
        return self.find(name) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Actions) or len(self) != len(other):
            return False
        return self._ids is other._ids or all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((self._size, *self._ids[: min(self._size, 8)]))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self._ids[: min(3, self._size)]))
        return f"Actions([{shown}{', ...' if len(self) > 3 else ''}], {len(self)} in all)"

    def __deepcopy__(self, memo: object) -> Actions:
        return self  # it never changes

    # ---- from ids to rows, and back

    def find(self, name: object) -> int:
        """The row of an id, -1 where there is none."""
        if isinstance(name, Integral) and not isinstance(name, bool):
            name = int(name)
        elif not isinstance(name, str):
            return -1  # True is no id, although it equals 1
        row = self._rows.get(name, -1)
        return row if row < self._size else -1

    def find_all(self, names: Iterable[object]) -> Ints:
        """The rows of ids, -1 where there is none."""
        names = names.tolist() if isinstance(names, np.ndarray) else list(names)
        kind = int if self.numbered else str
        if all(type(name) is kind for name in names):  # the usual case, at the speed of a dictionary
            rows: Ints = np.fromiter(map(self._rows.get, names, repeat(-1)), np.int64, len(names))
            rows[rows >= self._size] = -1
            return rows
        return np.fromiter(map(self.find, names), np.int64, len(names))

    def row(self, name: ActionId) -> int:
        """The row of one id."""
        found = self.find(name)
        if found < 0:
            raise UnknownAction("action", describe(name), self._expected())
        return found

    def rows(self, names: Iterable[ActionId], argument: str = "ids") -> Ints:
        """The rows of ids, all of which are known. argument: what they are called in an error."""
        listed, found = self._found(names, argument)
        if len(found) and found.min() < 0:
            raise UnknownAction(argument, describe(listed[int(np.argmax(found < 0))]), self._expected())
        return found

    def known(self, names: Iterable[ActionId], argument: str = "ids") -> Ints:
        """The rows of those among ids that are known; what could not be an id is refused."""
        listed, found = self._found(names, argument)
        for place in np.flatnonzero(found < 0).tolist():
            as_id(argument, listed[place])
        return found[found >= 0]

    def _found(self, names: Iterable[ActionId], argument: str) -> tuple[list[ActionId], Ints]:
        if not isinstance(names, Iterable) or isinstance(names, str | bytes):
            raise InvalidInput(argument, describe(names), f"a list of ids, such as {self._some()}")
        if isinstance(names, np.ndarray):
            if names.ndim != 1:
                raise InvalidInput(
                    argument, f"an array of shape {names.shape}", f"a list of ids, such as {self._some()}"
                )
            names = names.tolist()
        listed = list(names)
        return listed, self.find_all(listed)

    def check_one(self, argument: str, name: object) -> int:
        """The row of one id, which is known."""
        found = self.find(name)
        if found < 0:
            raise UnknownAction(argument, f"action {describe(as_id(argument, name))}", self._expected())
        return found

    def ids(self, rows: npt.ArrayLike) -> list[ActionId]:
        """The ids of rows."""
        if isinstance(rows, np.ndarray):
            rows = rows.ravel()
        wanted = integers("rows", [int(rows)] if isinstance(rows, Integral) else rows)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise UnknownAction("rows", int(wanted.max()), f"rows from 0 to {len(self) - 1}")
        return [self._ids[row] for row in wanted.tolist()]

    def named(self, rows: Ints) -> AnyArray:
        """The ids of rows that are known to be there, in their shape: integers, or strings as Python objects."""
        found: AnyArray = np.empty(rows.size, dtype=np.int64 if self.numbered else object)
        found[:] = [self._ids[row] for row in rows.ravel().tolist()]
        return found.reshape(rows.shape)

    def _some(self) -> str:
        return ", ".join(describe(name) for name in self._ids[: min(3, self._size)])

    def _expected(self) -> str:
        return f"an id of the catalogue, which has {len(self):,}" + (f" ({self._some()}, ...)" if len(self) else "")

    # ---- longer ones

    def add(self, names: Iterable[ActionId]) -> Actions:
        """A longer catalogue: the ids that are new, in their order, after the old ones."""
        if not isinstance(names, Iterable) or isinstance(names, str | bytes):
            raise InvalidInput("names", describe(names), "a list of " + EXPECTED)
        fresh = [name for name in dict.fromkeys(as_id("names", one) for one in names) if name not in self]
        if not fresh:
            return self
        longer = Actions(())
        with _GROWING:
            if self._size == len(self._ids):  # nobody has made this one longer before
                longer._ids, longer._rows = self._ids, self._rows
            else:
                longer._ids = self._ids[: self._size]
                longer._rows = {name: row for row, name in enumerate(longer._ids)}
            longer._size = self._size
            longer._extend(fresh)
        return longer

    def longer(self, names: Iterable[ActionId], number: int) -> Actions:
        """A longer catalogue with so many ids more, all of which must be new."""
        fresh = listed_ids("ids", names)
        if len(fresh) != number:
            raise InvalidInput("ids", f"{len(fresh)} ids", f"{number}, one for each new action")
        for name in fresh:
            if name in self:
                raise UnknownAction("ids", describe(name), "ids that are new: this one is in the catalogue")
        if len(set(fresh)) < number:
            twice = next(name for name, times in Counter(fresh).items() if times > 1)
            raise UnknownAction("ids", f"{describe(twice)} more than once", "distinct ids")
        return self.add(fresh)

    # ---- keeping

    def arrays(self) -> dict[str, AnyArray]:
        """All ids as plain arrays: integers; or the strings' UTF-8 bytes one after the other, and where each one ends."""
        if self.numbered:
            return {"numbers": np.array(self._ids[: self._size], dtype=np.int64)}
        encoded = [str(name).encode("utf-8", "surrogatepass") for name in self]
        ends = np.cumsum([len(piece) for piece in encoded], dtype=np.int64)
        return {"utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8), "ends": ends}

    @classmethod
    def from_arrays(cls, arrays: dict[str, AnyArray]) -> Actions:
        """The catalogue that `arrays` came from."""
        try:
            if "numbers" in arrays:
                return cls(integers("numbers", arrays["numbers"]).tolist())
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

    def _table(self) -> Table:
        rows = [(row, str(name)) for name, row in zip(self, range(5), strict=False)]
        return Table(f"{counted(len(self), 'action')}", ("row", "id"), rows, ["..."] if len(self) > 5 else [])


def listed_ids(argument: str, names: Iterable[ActionId]) -> list[ActionId]:
    """Ids as they are kept, in a list."""
    if not isinstance(names, Iterable) or isinstance(names, str | bytes):
        raise InvalidInput(argument, describe(names), "a list of " + EXPECTED)
    if isinstance(names, np.ndarray):
        if names.ndim != 1:
            raise InvalidInput(argument, f"an array of shape {names.shape}", "a list of " + EXPECTED)
        names = names.tolist()
    return [as_id(argument, name) for name in names]


def as_id(argument: str, name: object, where: str = "") -> ActionId:
    """An id as it is kept: a str or an int, whatever NumPy or a subclass made of it."""
    if isinstance(name, str) and name:
        return name if type(name) is str else str(name)
    if isinstance(name, Integral) and not isinstance(name, bool | np.bool_) and abs(int(name)) <= MOST:
        return int(name)
    raise InvalidInput(argument, describe(name) + where, EXPECTED)


@storage.LOADERS.register(KIND)
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Actions:
    return Actions.from_arrays(arrays)


__all__ = ["ActionId", "Actions", "as_id", "listed_ids"]
