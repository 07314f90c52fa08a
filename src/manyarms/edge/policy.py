"""A policy that decides where it was sent to, by itself, and says exactly how likely each of its decisions was.

Its random numbers follow from the bundle's salt and the id of the event,

    (w0, w1, w2, w3) = HMAC-SHA256(salt, id),   four big-endian integers of 64 bits;   u_i = floor(w_i / 2^11) / 2^53

so that whoever has the bundle can make every decision again. With m actions on offer, in the order of the bundle, the j-th for
the j-th place, places from 0:

    softmax          exp(s_a / T) in proportion, s_a the scores: the first place whose running sum is above u_3 of the whole
    epsilon-greedy   where u_0 < epsilon the place floor(w_2 m / 2^64), else the best score
    ensemble         where u_0 < epsilon the place floor(w_2 m / 2^64), else the best score of draw floor(w_1 M / 2^64) of M

A context of zeros tells an ensemble nothing: it then takes the place floor(w_2 m / 2^64) in any case.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.typing import JSON, AnyArray, Array, Ints, Spec
from manyarms.edge import bundle_format, scores, signing
from manyarms.edge.encoding import RowEncoder
from manyarms.edge.header import EdgeId, Header, Ids, at_time, contents, read_contents
from manyarms.errors import InvalidInput, LiveError, StorageError, UnknownAction

MOST_OF_AN_ID = 256  # characters of an event's id
CLOSE = 1e-9  # exponentials of two machines differ by less, as a share
NONE: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, repr=False)
class EdgeDecision(Shown):
    """A decision that was made at the edge, with all that an upload needs (`as_json`).

    propensity: exactly how likely the action was, given the bundle, the context and the filters. greedy: whether it is the one
    that looks best. bundle: the id of what decided; version: of the state that it was made from. at: seconds since 1970, by the
    clock of who decided. context: as numbers.
    """

    id: str
    action: EdgeId
    propensity: float
    bundle: str
    agent: str
    version: int
    greedy: bool
    at: float
    context: tuple[float, ...]
    candidates: tuple[EdgeId, ...] | None = None
    exclude: tuple[EdgeId, ...] | None = None

    def as_json(self) -> Spec:
        """What POST /v1/edge/{agent}/decisions takes for it."""
        told: dict[str, JSON] = {
            "id": self.id, "context": list(self.context), "action": self.action, "propensity": self.propensity,
            "bundle": self.bundle, "at": self.at,
        }  # fmt: skip
        for name, given in (("candidates", self.candidates), ("exclude", self.exclude)):
            if given is not None:
                told[name] = list(given)
        return told


class _Offer(NamedTuple):
    """What may be chosen: these places of the bundle, ascending, or all but the barred ones; how many."""

    places: Ints | None
    barred: Ints
    number: int

    def at(self, rank: int) -> int:
        """The place in the bundle of the action of this rank."""
        if self.places is not None:
            return int(self.places[rank])
        for place in self.barred.tolist():
            rank += place <= rank
        return rank


class EdgePolicy(Shown):
    """A policy of a bundle. `read` makes it of the bundle's bytes; it never changes, and threads may share it."""

    def __init__(self, header: Header, tables: npt.ArrayLike, ids: Sequence[EdgeId] | Ids) -> None:
        """tables: (M, K, d), float32, the parameters of K actions in each of M draws; M is 1 but for an ensemble."""
        self.header = validate.instance("header", header, Header, "the header of a bundle")
        self.ids = ids if isinstance(ids, Ids) else Ids.of(ids)
        self._tables = _numbers(tables)
        header.require_fitting(self._tables, len(self.ids))

    # ---- the bundle

    @classmethod
    def read(
        cls,
        data: bytes,
        public_key: signing.PublicKey | Sequence[signing.PublicKey] | None = None,
        *,
        verify: Literal["signature"] | None = "signature",
        expired: bool = False,
    ) -> EdgePolicy:
        """The policy of a bundle, once its signature has been checked.

        public_key: that of GET /v1/edge/key, 32 bytes or in hexadecimal; several, where keys have changed. verify=None: whoever
        made these bytes is believed. expired: take one whose time is over, to look at. Whatever is wrong with the bytes is a
        StorageError.
        """
        expired = validate.flag("expired", expired)
        signed, signature = bundle_format.split(data)
        if verify is not None:
            validate.one_of("verify", verify, ("signature",))
            signing.require_signature(signed, signature, public_key)
        policy = cls(*read_contents(*bundle_format.unpacked(signed)))
        policy.__dict__["content"] = signed  # so that it need not be written again
        if not expired and policy.expired:
            raise StorageError(f"{policy._told()} expired at {at_time(policy.header.expires)}: fetch a new one")
        return policy

    @cached_property
    def content(self) -> bytes:
        """The bytes of its bundle, but for the signature."""
        return bundle_format.packed(*contents(self.header, self._tables, self.ids))

    @cached_property
    def id(self) -> str:
        """What tells its bundle from every other: the first half of the SHA-256 of its content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()[:32]

    def to_bytes(self, key: signing.SigningKey | None) -> bytes:
        """The bundle; key: who signs it, None for nobody."""
        if key is None:
            return self.content + bytes(bundle_format.SIGNATURE)
        return self.content + validate.instance("key", key, signing.SigningKey, "a signing key, or None").sign(
            self.content
        )

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return time.time() >= self.header.expires

    # ---- deciding

    def decide(
        self,
        context: Mapping[str, object] | npt.ArrayLike,
        id: str | None = None,
        candidates: Sequence[EdgeId] | None = None,
        exclude: Sequence[EdgeId] | None = None,
    ) -> EdgeDecision:
        """Decide for one context, which is d numbers or, where the bundle has an encoder, a mapping of its columns.

        id: of the event, made here if it is not given. The decision follows from it, the bundle and the question: it must not be
        chosen by what comes of it. candidates: the only actions on offer. exclude: not these; unknown ones do no harm.
        """
        if self.expired:
            raise LiveError(f"{self._told()} expired at {at_time(self.header.expires)}: fetch a new one")
        return self._decided(context, uuid.uuid4().hex if id is None else id, candidates, exclude)

    def _decided(self, context: Any, id: object, candidates: Any, exclude: Any) -> EdgeDecision:
        event, x = _event(id), self.vector(context)
        asked, barred = _listed("candidates", candidates), _listed("exclude", exclude)
        offer = self._offer(asked, barred)
        place, chance, greedy = self._answer(x, offer, self._words(event))
        return EdgeDecision(
            event, self.ids[place], chance, self.id, self.header.agent, self.header.version, greedy, time.time(),
            tuple(x.tolist()), asked, barred,
        )  # fmt: skip

    def check(
        self,
        context: Mapping[str, object] | npt.ArrayLike,
        id: str,
        action: EdgeId,
        propensity: float,
        candidates: Sequence[EdgeId] | None = None,
        exclude: Sequence[EdgeId] | None = None,
    ) -> EdgeDecision:
        """The decision made again, or an InvalidInput where it is not the one that was told.

        Exponentials may round otherwise on another machine: a propensity may be off by 1e-9 of it, and the action of a softmax
        may be the neighbour of the one found here, where the point that was drawn is as near to the border between them.
        """
        told = validate.probability("propensity", propensity)
        made = self._decided(context, id, candidates, exclude)
        if type(action) is not type(made.action) or action != made.action:
            made = self._neighbour(made, action)
        if not math.isclose(told, made.propensity, rel_tol=CLOSE):
            raise InvalidInput("propensity", told, f"{made.propensity!r}, which the bundle gives to this decision")
        return made

    def _neighbour(self, made: EdgeDecision, action: EdgeId) -> EdgeDecision:
        """The same decision with another action, where rounding alone keeps them apart."""
        offer = self._offer(made.candidates, made.exclude)
        rank = self._rank(action, offer) if self.header.rule == "softmax" else None
        if rank is not None:
            mass, point = self._masses(np.array(made.context), offer), _unit(self._words(made.id)[3])
            upto = np.cumsum(mass)
            before, after = (upto[rank] - mass[rank]) / upto[-1], upto[rank] / upto[-1]
            if mass[rank] > 0 and before - CLOSE <= point <= after + CLOSE:
                return replace(
                    made, action=action, propensity=float(mass[rank] / upto[-1]), greedy=rank == int(mass.argmax())
                )
        raise InvalidInput(
            "action", validate.describe(action), f"{made.action!r}, which the bundle decides on for this id and context"
        )

    def law(
        self,
        context: Mapping[str, object] | npt.ArrayLike,
        candidates: Sequence[EdgeId] | None = None,
        exclude: Sequence[EdgeId] | None = None,
    ) -> dict[EdgeId, float]:
        """How likely each action on offer is."""
        x, epsilon = self.vector(context), self.header.epsilon
        offer = self._offer(_listed("candidates", candidates), _listed("exclude", exclude))
        places = np.setdiff1d(np.arange(len(self.ids)), offer.barred) if offer.places is None else offer.places
        if self.header.rule == "softmax":
            mass = self._masses(x, offer)
            chances = (mass if offer.places is not None else mass[places]) / mass.sum()
        elif self._uniform(x):
            chances = np.full(offer.number, 1.0 / offer.number)
        else:
            hits = np.bincount(self._heads(x, offer), minlength=len(self.ids))
            chances = (1.0 - epsilon) * hits[places] / len(self._tables) + epsilon / offer.number
        return {self.ids[place]: chance for place, chance in zip(places.tolist(), chances.tolist(), strict=True)}

    # ---- what the question is

    def vector(self, context: Mapping[str, object] | npt.ArrayLike) -> Array:
        """A context as numbers (d,)."""
        if isinstance(context, Mapping):
            encoder = self._encoder
            if encoder is None:
                raise InvalidInput("context", "a mapping", "numbers: this bundle has no encoder that can be used here")
            context = encoder.row(context)
        x = validate.as_floats("context", context)
        if x.shape != (self.header.dim,):
            raise InvalidInput("context", f"shape {x.shape}", f"{self.header.dim} numbers")
        return x.copy()

    @property
    def _encoder(self) -> RowEncoder | None:
        return self.header.row_encoder

    def _offer(self, candidates: tuple[EdgeId, ...] | None, exclude: tuple[EdgeId, ...] | None) -> _Offer:
        barred = NONE if exclude is None else np.unique(self.ids.known("exclude", exclude))
        places: Ints | None = None
        number = len(self.ids) - len(barred)
        if candidates is not None:
            asked = np.sort(self.ids.places("candidates", candidates))
            if len(asked) > 1 and (asked[1:] == asked[:-1]).any():
                raise UnknownAction("candidates", "an action more than once", "every action at most once")
            places, barred = np.setdiff1d(asked, barred, assume_unique=True), NONE
            number = len(places)
        if not number:
            name = "exclude" if candidates is None else "candidates"
            raise InvalidInput(name, "a filter that leaves nothing", "at least one action on offer")
        return _Offer(places, barred, number)

    def _rank(self, action: object, offer: _Offer) -> int | None:
        """The place of an action among those of `_masses`."""
        place = self.ids.find(action)
        if place is None:
            return None
        if offer.places is None:
            return place
        found = np.flatnonzero(offer.places == place)
        return int(found[0]) if len(found) else None

    # ---- what the answer is

    def _words(self, event: str) -> tuple[int, int, int, int]:
        digest = hmac.digest(self.header.salt, event.encode(), "sha256")
        w0, w1, w2, w3 = (int.from_bytes(digest[start : start + 8], "big") for start in range(0, 32, 8))
        return w0, w1, w2, w3

    def _answer(self, x: Array, offer: _Offer, words: tuple[int, int, int, int]) -> tuple[int, float, bool]:
        """The place in the bundle, its chance, and whether it looks best."""
        if self.header.rule == "softmax":
            mass = self._masses(x, offer)
            upto = np.cumsum(mass)  # one after the other, on every machine
            rank = int(np.searchsorted(upto, _unit(words[3]) * upto[-1], side="right"))
            rank = min(rank, int(np.flatnonzero(mass)[-1]))
            place = rank if offer.places is None else int(offer.places[rank])
            return place, float(mass[rank] / upto[-1]), rank == int(mass.argmax())
        anyone = offer.at(words[2] * offer.number >> 64)
        if self._uniform(x):
            return anyone, 1.0 / offer.number, anyone == offer.at(0)
        heads, epsilon, draws = self._heads(x, offer), self.header.epsilon, len(self._tables)
        place = anyone if _unit(words[0]) < epsilon else int(heads[words[1] * draws >> 64])
        chance = (1.0 - epsilon) * (int((heads == place).sum()) / draws) + epsilon / offer.number
        best = heads if draws == 1 else self._best(self._mean, self._largest_mean, x, offer)
        return place, chance, place == int(best[0])

    def _uniform(self, x: Array) -> bool:
        return self.header.rule == "ensemble" and not x.any()

    def _heads(self, x: Array, offer: _Offer) -> Ints:
        """(M,): the best place of each draw."""
        return self._best(self._tables, self._largest, x, offer)

    def _best(self, tables: AnyArray, largest: Array, x: Array, offer: _Offer) -> Ints:
        if offer.places is None:
            return scores.best(tables, x, offer.barred, largest)
        return offer.places[scores.best(tables[:, offer.places], x, NONE, largest)]

    def _masses(self, x: Array, offer: _Offer) -> Array:
        """In proportion to the chances: of the places on offer, or of all with 0 for the barred ones."""
        table = self._tables[0] if offer.places is None else self._tables[0][offer.places]
        found = scores.in_order(table, x) / self.header.temperature
        found[offer.barred] = -np.inf
        mass: Array = np.exp(found - found.max())
        return mass

    @cached_property
    def _largest(self) -> Array:
        return _largest(self._tables)

    @cached_property
    def _mean(self) -> AnyArray:
        """(1, K, d): the mean of the draws."""
        return np.asarray(self._tables.mean(axis=0, dtype=np.float64, keepdims=True), dtype=np.float32)

    @cached_property
    def _largest_mean(self) -> Array:
        return _largest(self._mean)

    # ---- in words

    @property
    def nbytes(self) -> int:
        """Bytes of its tables."""
        return int(self._tables.nbytes)

    def __repr__(self) -> str:
        return f"<EdgePolicy {self.id[:8]}: {self.header.rule}, {len(self.ids):,} actions>"

    def _told(self) -> str:
        return f"the edge bundle {self.id} of {self.header.agent!r}"

    def _table(self) -> Table:
        told = self.header
        facts = {
            "bundle": self.id, "agent": told.agent, "version": f"{told.version:,}", "rule": told.rule,
            "actions": f"{len(self.ids):,}", "contexts": f"{told.dim} numbers", "draws": f"{len(self._tables)}",
            "epsilon": f"{told.epsilon:g}", "created": at_time(told.created), "expires": at_time(told.expires),
        }  # fmt: skip
        return Table(f"edge policy: {told.rule} over {len(self.ids):,} actions", rows=list(facts.items()))


def _unit(word: int) -> float:
    return (word >> 11) * 2.0**-53


def _numbers(tables: npt.ArrayLike) -> AnyArray:
    """Tables as they are kept: those of a bundle are read-only views of its bytes, others are copied."""
    if isinstance(tables, np.ndarray) and tables.dtype == np.float32 and not isinstance(tables, np.ma.MaskedArray):
        if tables.flags.writeable or not tables.flags.c_contiguous:
            tables = np.array(tables, dtype="<f4", order="C")
        return np.asarray(tables, dtype="<f4")
    with np.errstate(over="ignore"):  # infinite then, and refused as such
        return validate.as_floats("tables", tables).astype("<f4", order="C")


def _largest(tables: AnyArray) -> Array:
    return np.asarray(np.maximum(tables.max(axis=1), -tables.min(axis=1)), dtype=np.float64)


def _event(id: object) -> str:
    fits = isinstance(id, str) and 0 < len(id) <= MOST_OF_AN_ID and "\0" not in id
    try:
        if fits:
            str(id).encode()
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise InvalidInput("id", validate.describe(id), f"a text of 1 to {MOST_OF_AN_ID} characters")
    return str(id)


def _listed(name: str, given: Any) -> tuple[EdgeId, ...] | None:
    """Ids as Python has them."""
    if given is None:
        return None
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise InvalidInput(name, validate.describe(given), "a list of ids of actions")
    return tuple(int(one) if isinstance(one, np.integer) else one for one in given)


__all__ = ["EdgeDecision", "EdgePolicy"]
