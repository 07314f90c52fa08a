"""What a bundle says about itself, checked: its header, and the ids of its actions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.typing import AnyArray, Ints, Spec
from manyarms.edge.encoding import KIND, RowEncoder, TableRows
from manyarms.errors import InvalidInput, ManyArmsError, StorageError, UnknownAction

RULES = ("softmax", "epsilon-greedy", "ensemble")
LARGEST = 1e30  # of a parameter: scores are then finite in float32, too
LATEST = 1e11  # seconds since 1970
SALT = 16  # bytes

EdgeId = str | int
"""What an action is called: a text, or an integer of 64 bits."""


@dataclass(frozen=True, repr=False)
class Header(Shown):
    """Whose policy it is, and by which rule it decides.

    version: of the live state that it was made from. created, expires: seconds since 1970. epsilon: the part of uniform play.
    temperature: of a softmax. salt: what its random numbers follow from. features: names of the entries of a context. encoder:
    what makes contexts of rows, as it says itself in JSON.
    """

    agent: str
    version: int
    rule: str
    dim: int
    created: float
    expires: float
    salt: bytes
    epsilon: float = 0.0
    temperature: float = 1.0
    features: tuple[str, ...] | None = None
    encoder: Spec | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.agent, str) or not self.agent:
            raise InvalidInput("agent", validate.describe(self.agent), "a name")
        validate.count("version", self.version, least=0)
        validate.one_of("rule", self.rule, RULES)
        validate.count("dim", self.dim)
        for name in ("created", "expires"):
            object.__setattr__(self, name, validate.number(name, getattr(self, name), least=0, most=LATEST))
        object.__setattr__(self, "epsilon", validate.probability("epsilon", self.epsilon))
        object.__setattr__(self, "temperature", validate.positive("temperature", self.temperature))
        if not isinstance(self.salt, bytes) or len(self.salt) != SALT:
            raise InvalidInput("salt", validate.describe(self.salt), f"{SALT} bytes")
        object.__setattr__(self, "features", _names(self.features, self.dim))
        if self.encoder is not None:
            told = validate.instance("encoder", self.encoder, dict, "what an encoder says of itself in JSON, or None")
            object.__setattr__(self, "encoder", deepcopy(told))

    def require_fitting(self, tables: AnyArray, actions: int) -> None:
        """Refuse tables (M, K, d) that this header does not describe."""
        if tables.ndim != 3 or tables.shape[1:] != (actions, self.dim) or not tables.size:
            came = f"shape {tables.shape}"
            raise InvalidInput("tables", came, f"(draws, {actions}, {self.dim}): draws, actions, numbers of a context")
        if len(tables) != 1 and self.rule != "ensemble":
            raise InvalidInput("tables", f"{len(tables)} of them", f"one, for {self.rule}")
        if not (
            float(tables.max()) < LARGEST and float(tables.min()) > -LARGEST
        ):  # false where one is not a number, too
            raise InvalidInput(
                "tables", "numbers that are too large, or none", f"finite numbers below {LARGEST:g} in size"
            )

    @cached_property
    def row_encoder(self) -> RowEncoder | None:
        """What makes contexts of rows; None where there is nothing, or nothing that can be used here."""
        if self.encoder is None or self.encoder.get("kind") != KIND:
            return None
        return TableRows(self.encoder)

    def _table(self) -> Table:
        facts = {
            "agent": self.agent, "version": f"{self.version:,}", "rule": self.rule, "contexts": f"{self.dim} numbers",
            "epsilon": f"{self.epsilon:g}", "temperature": f"{self.temperature:g}", "created": at_time(self.created),
            "expires": at_time(self.expires), "encoder": "no" if self.encoder is None else "yes",
        }  # fmt: skip
        return Table(f"{self.agent}, version {self.version:,}, {self.rule}", rows=list(facts.items()))


class Ids(Sequence[EdgeId]):
    """The ids of a bundle's actions, all texts or all integers, and their places."""

    def __init__(self, listed: list[EdgeId]) -> None:
        self._listed = listed

    @classmethod
    def of(cls, given: Iterable[EdgeId]) -> Ids:
        """Ids, checked."""
        found = cls([int(one) if isinstance(one, np.integer) else one for one in given])
        kinds = {type(one) for one in found._listed}
        if kinds not in ({str}, {int}) or "" in found._listed:
            raise InvalidInput(
                "ids", "other ones", "ids of one kind, texts that are not empty or integers; at least one"
            )
        if int in kinds and not all(-(2**63) <= int(one) < 2**63 for one in found._listed):
            raise InvalidInput("ids", "an integer that is too large", "integers of 64 bits")
        if len(set(found._listed)) < len(found._listed):
            raise InvalidInput("ids", "an id more than once", "distinct ids")
        return found

    def __len__(self) -> int:
        return len(self._listed)

    def __getitem__(self, place: int) -> EdgeId:  # type: ignore[override]
        return self._listed[place]

    @cached_property
    def _places(self) -> dict[EdgeId, int]:
        return {name: place for place, name in enumerate(self._listed)}

    def find(self, name: object) -> int | None:
        """The place of an id; None where there is none."""
        if type(name) is not type(self._listed[0]):  # True is no id, although it equals 1
            return None
        return self._places.get(name)

    def places(self, argument: str, names: Iterable[object]) -> Ints:
        """Of ids that are all known."""
        found = []
        for name in names:
            place = self.find(name)
            if place is None:
                came = f"action {validate.describe(name)}"
                raise UnknownAction(argument, came, f"actions of this bundle, which has {len(self):,} of them")
            found.append(place)
        return np.array(found, dtype=np.int64)

    def known(self, argument: str, names: Iterable[object]) -> Ints:
        """Of those that are known; what could not be an id is refused."""
        found = []
        for name in names:
            if type(name) not in (str, int) or (type(name) is int and not -(2**63) <= name < 2**63):
                raise InvalidInput(argument, validate.describe(name), "ids of actions, texts or integers of 64 bits")
            place = self.find(name)
            if place is not None:
                found.append(place)
        return np.array(found, dtype=np.int64)

    def arrays(self) -> dict[str, AnyArray]:
        """As a bundle has them."""
        if isinstance(self._listed[0], int):
            return {"ids": np.array(self._listed, dtype="<i8")}
        texts = [str(one).encode() for one in self._listed]
        ends = np.cumsum([len(text) for text in texts])
        if int(ends[-1]) >= 1 << 32:
            raise InvalidInput("ids", f"{int(ends[-1]):,} bytes of texts", "fewer than 4 GiB")
        return {"ends": ends.astype("<u4"), "texts": np.frombuffer(b"".join(texts), dtype="|u1")}

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray]) -> Ids:
        """The ids that `arrays` gave."""
        if "ids" in arrays:
            return cls.of(_array(arrays, "ids", "<i8", 1).tolist())
        ends, texts = _array(arrays, "ends", "<u4", 1).tolist(), _array(arrays, "texts", "|u1", 1).tobytes()
        starts = [0, *ends[:-1]]
        if ends[-1] != len(texts) or any(start >= end for start, end in zip(starts, ends, strict=True)):
            raise StorageError("a damaged edge bundle: the ids of its actions overlap")
        return cls.of([texts[start:end].decode() for start, end in zip(starts, ends, strict=True)])


def _names(features: object, dim: int) -> tuple[str, ...] | None:
    if features is None:
        return None
    if not isinstance(features, tuple | list) or not all(isinstance(one, str) for one in features):
        raise InvalidInput("features", validate.describe(features), "names, or None")
    if len(features) != dim:
        raise InvalidInput("features", f"{len(features)} names", f"{dim}, one for each number of a context")
    return tuple(features)


def contents(header: Header, tables: AnyArray, ids: Ids) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Header and arrays as bytes are made of them: the larger numbers first, so that each begins where it should."""
    told = {
        "agent": header.agent, "version": header.version, "rule": header.rule, "dim": header.dim, "actions": len(ids),
        "draws": len(tables), "created": header.created, "expires": header.expires, "epsilon": header.epsilon,
        "temperature": header.temperature, "salt": header.salt.hex(),
        "features": None if header.features is None else list(header.features), "encoder": header.encoder,
    }  # fmt: skip
    named = ids.arrays()
    first = {"ids": named.pop("ids")} if "ids" in named else {}
    return told, {**first, "tables": tables, **named}


def read_contents(told: dict[str, Any], arrays: dict[str, AnyArray]) -> tuple[Header, AnyArray, Ids]:
    """What `contents` gave; a StorageError where it cannot have been."""
    try:
        features = told["features"]
        header = Header(
            told["agent"], told["version"], told["rule"], told["dim"], told["created"], told["expires"],
            bytes.fromhex(told["salt"]), told["epsilon"], told["temperature"],
            None if features is None else tuple(_texts(features)), _mapping(told["encoder"]),
        )  # fmt: skip
        ids, tables = Ids.restored(arrays), _array(arrays, "tables", "<f4", 3)
        header.require_fitting(tables, len(ids))
        rows = header.row_encoder
        if isinstance(rows, TableRows) and rows.dim != header.dim:
            raise StorageError(f"an encoder of {rows.dim} numbers for contexts of {header.dim}")
        if (told["actions"], told["draws"]) != (len(ids), len(tables)):
            raise StorageError("its header counts other actions or draws than there are")
        return header, tables, ids
    except (ManyArmsError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        told_why = str(error) if isinstance(error, ManyArmsError) else type(error).__name__
        raise StorageError(f"a damaged edge bundle: {told_why}") from error


def _array(arrays: dict[str, AnyArray], name: str, kind: str, axes: int) -> AnyArray:
    found = arrays[name]
    if found.dtype.str != kind or found.ndim != axes:
        raise StorageError(f"the array {name!r} is {found.dtype} with {found.ndim} axes")
    return found


def _texts(given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise StorageError("names of features that are no texts")
    return given


def _mapping(given: Any) -> dict[str, Any] | None:
    if given is not None and not isinstance(given, dict):
        raise StorageError("an encoder that is none")
    return given


def at_time(seconds: float) -> str:
    """Seconds since 1970 as a date."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def size_of(draws: int, actions: int, dim: int) -> int:
    """Bytes of the tables of a bundle."""
    return math.prod((4, draws, actions, dim))


__all__ = ["RULES", "SALT", "EdgeId", "Header", "Ids", "at_time", "contents", "read_contents", "size_of"]
