"""What a policy is, and everything that follows from its probabilities by streaming over blocks of actions.

A policy is a distribution pi(a|x) over K actions. It says what its probabilities are at some contexts (`rows`, up to
one factor per context); expectations, masses of groups, draws and best actions then follow here, from blocks of
ROWS x ACTIONS numbers. No array of contexts x actions is ever made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.registry import Registry
from manyarms._base.tables import Shown, Table
from manyarms._base.text import number
from manyarms._base.top_k import top_k_by_rows
from manyarms._base.typing import AnyArray, Array, Ints, Spec, loose
from manyarms.errors import InvalidInput
from manyarms.logs.labels import comparable, labels_of
from manyarms.logs.row_sketch import RowSketch
from manyarms.logs.schema import Schema
from manyarms.policies.edge import Edge, Seed, first_above
from manyarms.policies.in_context import AskedAnew, BlockSums, InContext

ROWS = 256  # contexts in a block
ACTIONS = 2048  # actions in a block: with 256 contexts 4 MB, near the second-level cache

Values = Callable[[Array, Ints], Array]
"""A function of contexts (b, d) and action ids (k,) that gives an array (b, k)."""


@runtime_checkable
class Policy(Protocol):
    """A distribution over actions given a context; X is always (n, d), and actions are rows of the catalogue, 0 .. K-1."""

    @property
    def action_count(self) -> int:
        """K."""

    @property
    def smallest_probability(self) -> float:
        """A number that no probability above 0 falls below, in any context; 0 if there is no such number."""

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,)."""

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""

    def sample_rows(self, X: npt.ArrayLike, rng: Seed = None) -> Ints:
        """One action for every context, (n,)."""

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""


class PolicyRows(ABC):
    """A policy at b contexts: masses in proportion to its probabilities, up to one factor per context."""

    total: Array | None = None  # (b,) sum of the masses, once known

    @abstractmethod
    def mass(self, first: int, last: int) -> Array:
        """(b, last - first) masses of the actions first..last-1, to be read before the next call, and not written to."""

    @abstractmethod
    def mass_at(self, ids: Ints) -> Array:
        """(b, m) masses of the actions `ids` (b, m)."""

    def mass_among(self, ids: Ints) -> Array:
        """(b, m) masses of the actions `ids` (b, m), where no others are on offer: in proportion among themselves alone."""
        return self.mass_at(ids)

    @abstractmethod
    def only(self, index: Ints) -> PolicyRows:
        """The same policy at some of the contexts."""

    def score(self, first: int, last: int) -> Array:
        """Anything that orders actions as their probabilities do."""
        return self.mass(first, last)

    def score_at(self, ids: Ints) -> Array:
        """(b, m): the same of the actions `ids` (b, m)."""
        return self.mass_at(ids)

    def normaliser(self, actions: int) -> Array:
        """(b,) sum of all masses."""
        if self.total is None:
            total = 0.0
            for first, last in action_blocks(actions):
                total = total + self.mass(first, last).sum(axis=1)
            self.total = np.asarray(total, dtype=np.float64)
        return self.total


def action_blocks(actions: int, size: int = ACTIONS) -> Iterator[tuple[int, int]]:
    """Bounds of consecutive blocks of actions."""
    for first in range(0, actions, size):
        yield first, min(first + size, actions)


class StreamedPolicy(Shown, Edge):
    """A policy from `rows` alone; `dim` is None where any context will do.

    `decide`, `sample` and `propensity` speak the ids and take the contexts of its `schema`; all other methods speak rows of the
    catalogue and take arrays.

    One that is to be saved registers its name with `POLICIES` and defines `spec`, `arrays` and `restored`.
    """

    training_rows: RowSketch | None = None
    """A sketch of the rows that it was learned from, where that is known; saved with it."""

    smallest_probability: float = 0.0
    """A number that no probability above 0 falls below, in any context; 0 if there is no such number."""

    def __init__(self, actions: int) -> None:
        self._actions = validate.count("actions", actions)

    @abstractmethod
    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts (b, d)."""

    @property
    def action_count(self) -> int:
        """K."""
        return self._actions

    def __repr__(self) -> str:
        return f"{type(self).__name__}(actions={self.action_count})"

    # ---- probabilities

    def probabilities_of(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """pi(a_i|x_i), (n,)."""
        X = self._contexts(X)
        return self.probabilities_of_many(X, self._ids("actions", actions, (len(X),))[:, None])[:, 0]

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        X = self._contexts(X)
        ids = self._ids("ids", ids, (len(X), None))
        out = np.empty(ids.shape)
        for part in row_blocks(len(X)):
            rows = self.rows(X[part])
            out[part] = rows.mass_at(ids[part]) / rows.normaliser(self.action_count)[:, None]
        # large scores in single precision: an action's mass, computed alone, may round to more than the sum with all others
        return np.minimum(out, 1.0)

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,)."""
        X = self._contexts(X)

        def weighed(mass: Array, part: slice, first: int, last: int) -> Array:
            return np.asarray(np.einsum("bk,bk->b", mass, values(X[part], np.arange(first, last))))

        return self._streamed(X, weighed)

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The sum of pi(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""
        X = self._contexts(X)
        groups, asked = group_arrays(labels, wanted, self.action_count, len(X))

        def inside(mass: Array, part: slice, first: int, last: int) -> Array:
            return np.asarray((mass * (groups[first:last] == asked[part][:, None])).sum(axis=1))

        return self._streamed(X, inside)

    def _streamed(self, X: Array, counted: Callable[[Array, slice, int, int], Array]) -> Array:
        """(n,): what is counted (b,) of every block's masses, over the sum of all masses."""
        out = np.empty(len(X))
        for part in row_blocks(len(X)):
            rows = self.rows(X[part])
            above, total = np.zeros(len(X[part])), np.zeros(len(X[part]))
            for first, last in action_blocks(self.action_count):
                mass = rows.mass(first, last)
                if rows.total is None:
                    total += mass.sum(axis=1)
                above += counted(mass, part, first, last)
            out[part] = above / (total if rows.total is None else rows.total)
        return out

    # ---- choices

    def sample_rows(self, X: npt.ArrayLike, rng: Seed = None) -> Ints:
        """One action for every context, (n,): first a block by its mass, then an action in the block."""
        X = self._contexts(X)
        rng = validate.seeded(rng)
        blocks = list(action_blocks(self.action_count))
        out = np.empty(len(X), dtype=np.int64)
        for part in row_blocks(len(X)):
            out[part] = BlockSums(self.rows(X[part]), blocks, one=len(X[part]) == 1).draw(rng)
        return out

    def in_context(self, x: npt.ArrayLike) -> InContext:
        """The policy in one context (d,): draws and probabilities of rows that cost one pass over all actions together."""
        return AskedAnew(self, self._one_context(x))

    def _one_context(self, x: npt.ArrayLike) -> Array:
        """(1, d)."""
        given = validate.as_floats("x", x)
        if given.ndim != 1:
            raise InvalidInput("x", f"shape {given.shape}", "one context, (d,)")
        return self._contexts(given[None], "x").copy()  # it is kept

    def _best(self, X: Array, wanted: int, barred: Ints) -> Ints:
        """(n, wanted): the most probable of all actions but the barred ones."""

        def blocks(part: slice) -> Iterator[Array]:
            rows = self.rows(X[part])
            for first, last in action_blocks(self.action_count):
                yield _without(rows.score(first, last), first, barred)

        return top_k_by_rows(len(X), wanted, blocks)[0]

    def _best_of(self, X: Array, offered: Ints, wanted: int) -> Ints:
        """(n, wanted): the most probable of a few actions, ascending rows."""

        def blocks(part: slice) -> Iterator[Array]:
            rows = self.rows(X[part])
            for first, last in action_blocks(len(offered)):
                yield rows.score_at(np.broadcast_to(offered[first:last], (len(X[part]), last - first)))

        return offered[top_k_by_rows(len(X), wanted, blocks)[0]]

    def _masses_of(self, X: Array, offered: Ints) -> Iterator[tuple[slice, Array]]:
        """Masses (b, m) of some actions, for blocks of contexts, of bounded size as long as that of one context is."""
        for part in row_blocks(len(X), max(1, ROWS * ACTIONS // len(offered))):
            some = X[part]
            yield part, self.rows(some).mass_among(np.broadcast_to(offered, (len(some), len(offered))))

    def _probabilities_of_many(self, X: Array, ids: Ints) -> Array:
        return self.probabilities_of_many(X, ids)

    # ---- keeping

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return POLICIES.name_of(type(self))

    def spec(self) -> Spec:
        """What a saved folder says in words and numbers, beside the kind."""
        raise InvalidInput("policy", repr(self), "a policy made of arrays: one made of functions cannot be saved")

    def arrays(self) -> dict[str, AnyArray]:
        """What a saved folder holds in arrays."""
        return {}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> StreamedPolicy:
        """The policy that `spec` and `arrays` describe."""
        raise InvalidInput("policy", cls.__name__, "a policy made of arrays: one made of functions cannot be saved")

    def saved_spec(self) -> Spec:
        """`spec` with the kind: what `restore_policy` needs."""
        return {**self.spec(), "type": self.kind}

    def save(self, folder: str | Path) -> None:
        """Write the policy to a folder, encoder and ids included; `manyarms.load` reads it."""
        rows = {} if self.training_rows is None else prefixed("training_rows.", self.training_rows.arrays())
        schema, tables = self.schema.state()
        spec = self.saved_spec() | {"schema": schema}
        storage.save(folder, "policy", spec, self.arrays() | rows | prefixed("schema/", tables))

    # ---- checks at the edge

    def _ids(self, name: str, ids: npt.ArrayLike, shape: tuple[int | None, ...]) -> Ints:
        array = validate.action_ids(name, ids, self.action_count, len(shape))
        if any(s is not None and s != t for s, t in zip(shape, array.shape, strict=True)):
            wanted = "(" + ", ".join("m" if s is None else str(s) for s in shape) + ")"
            raise InvalidInput(name, f"shape {array.shape}", f"ids of actions of shape {wanted}")
        return array

    def _table(self) -> Table:
        rows = [
            ("actions", f"{self.action_count:,}"),
            ("contexts", "any" if self.dim is None else f"of length {self.dim:,}"),
        ]
        known = "known" if self.training_rows is not None else "unknown"
        rows += [("rows it was learned from", known)]
        if self.smallest_probability:
            rows.append(("smallest probability", number(self.smallest_probability)))
        return Table(repr(self), rows=rows)


POLICIES: Registry[type[StreamedPolicy]] = Registry("policy", package="manyarms.policies", group="manyarms.policies")


def restore_policy(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> StreamedPolicy:
    """The policy, of whatever kind, that `saved_spec()` and `arrays()` describe."""
    told = loose(spec)
    return POLICIES[told["type"]].restored(told, arrays)


@storage.LOADERS.register("policy")
def _restore_saved(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> StreamedPolicy:
    told = loose(spec)
    rows, tables = under("training_rows.", arrays), under("schema/", arrays)
    # one by one: what was read is let go as soon as the policy has its own
    others = ("training_rows.", "schema/")
    own = {name: validate.owned(arrays.pop(name)) for name in list(arrays) if not name.startswith(others)}
    policy = restore_policy(told, own)
    policy.training_rows = RowSketch.restored(rows) if rows else None
    policy.schema = fitting(Schema.from_state(told["schema"], tables), policy)
    return policy


def fitting(schema: Schema, policy: StreamedPolicy) -> Schema:
    """A schema, once it is known to be of as many actions and of contexts as long as the policy's."""
    if schema.catalogue is not None and len(schema.catalogue) != policy.action_count:
        came = f"a catalogue of {len(schema.catalogue):,} actions"
        raise InvalidInput("schema", came, f"one of {policy.action_count:,}, those of the policy")
    if schema.encoder is not None and policy.dim not in (None, schema.encoder.dim):
        came = f"an encoder that makes contexts of length {schema.encoder.dim}"
        raise InvalidInput("schema", came, f"length {policy.dim}, that of the policy's contexts")
    return schema


def row_blocks(n: int, most: int = ROWS) -> Iterator[slice]:
    """Consecutive blocks of at most so many contexts."""
    step = min(most, ROWS)
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def group_arrays(labels: npt.ArrayLike, wanted: npt.ArrayLike, actions: int, n: int) -> tuple[AnyArray, AnyArray]:
    """Labels (K,) and the labels that n contexts ask for, as arrays."""
    groups, asked = labels_of("labels", labels, actions, "actions"), labels_of("wanted", wanted, n, "contexts")
    if not comparable(groups, asked):
        raise InvalidInput("wanted", f"labels of type {asked.dtype}", f"labels of the actions' type, {groups.dtype}")
    return groups, asked


def shaped(ids: Ints, k: int | None, asked: AnyArray) -> int | Ints:
    """Best ids (n, m) as they were asked for: one or k of them, for one context (d,) or for many (n, d)."""
    if k is None:
        return int(ids[0, 0]) if asked.ndim == 1 else ids[:, 0]
    return ids[0] if asked.ndim == 1 else ids


def lowest_ids(wanted: int, barred: Ints) -> Ints:
    """(wanted,): the lowest ids that are not barred."""
    return np.setdiff1d(np.arange(wanted + len(barred)), barred, assume_unique=True)[:wanted]


def _without(scores: Array, first: int, barred: Ints) -> Array:
    here = barred[(barred >= first) & (barred < first + scores.shape[1])] - first
    if len(here):
        scores = scores.copy()
        scores[:, here] = -np.inf
    return scores


__all__ = [
    "ACTIONS",
    "POLICIES",
    "ROWS",
    "Policy",
    "PolicyRows",
    "StreamedPolicy",
    "Values",
    "action_blocks",
    "first_above",
    "fitting",
    "group_arrays",
    "lowest_ids",
    "restore_policy",
    "row_blocks",
    "shaped",
]
