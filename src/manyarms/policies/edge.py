"""What users ask of a policy: contexts as they have them in, ids out.

Everything else about a policy speaks rows of the catalogue and arrays (`base.py`). Filters say which actions are on offer; what
is sampled then is the policy given that it plays one of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import TypedDict, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.explanation import Explanation
from manyarms._base.typing import AnyArray, Array, Columns, ContextLike, FrameLike, Ints, Matrix, Row, SomeArray, Vector
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId
from manyarms.logs.contexts import encoded
from manyarms.logs.filters import Filter, filter_of, is_each, rows_of
from manyarms.logs.schema import NOTHING, Schema

BYTES_OF_A_BEST = 32  # an id and a score, and as much again while they are put in order
Seed = int | np.random.Generator | None


class Filters(TypedDict, total=False):
    """Which actions are on offer."""

    exclude: Filter
    candidates: Filter


class Edge(ABC):
    """A policy's answers in its user's words, from its answers in rows."""

    dim: int | None = None
    schema: Schema = NOTHING
    """How rows of a table become contexts, and what the actions are called; saved with it."""

    @property
    @abstractmethod
    def action_count(self) -> int:
        """K."""

    @abstractmethod
    def sample_rows(self, X: npt.ArrayLike, rng: Seed = None) -> Ints:
        """One action for every context, (n,), by its row."""

    @abstractmethod
    def _best(self, X: Array, wanted: int, barred: Ints) -> Ints:
        """(n, wanted): the most probable of all actions but the barred ones."""

    @abstractmethod
    def _best_of(self, X: Array, offered: Ints, wanted: int) -> Ints:
        """(n, wanted): the most probable of a few actions, ascending rows."""

    @abstractmethod
    def _masses_of(self, X: Array, offered: Ints) -> Iterator[tuple[slice, Array]]:
        """Masses (b, m) of some actions, ascending rows, in proportion to their probabilities, for blocks of contexts."""

    # ---- deciding

    @overload
    def decide(self, x: ContextLike, k: int, **options: Unpack[Filters]) -> AnyArray: ...
    @overload
    def decide(self, x: SomeArray, k: None = None, **options: Unpack[Filters]) -> ActionId | AnyArray: ...
    @overload
    def decide(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too, but no column
        self, x: Row | Sequence[float] | Vector, k: None = None, **options: Unpack[Filters]
    ) -> ActionId: ...
    @overload
    def decide(
        self,
        x: Columns | FrameLike | Sequence[Row] | Sequence[Sequence[float]] | Sequence[Vector] | Matrix,
        k: None = None,
        **options: Unpack[Filters],
    ) -> AnyArray: ...
    @overload
    def decide(
        self, x: ContextLike, k: int | None = None, exclude: Filter = None, candidates: Filter = None
    ) -> ActionId | AnyArray: ...

    def decide(
        self, x: ContextLike, k: int | None = None, exclude: Filter = None, candidates: Filter = None
    ) -> ActionId | AnyArray:
        """The most probable action, or the k most probable: an id or (k,) for one context, (n,) or (n, k) for many.

        x: numbers (d,) or (n, d); with an encoder also a mapping of columns, a row of a frame, a frame or a list of mappings.
        exclude: ids that are not on offer, among which unknown ones do no harm. candidates: the only ids on offer, all where
        nothing is given; few of them cost as little as they are. In a batch each context may have its own: a list of n lists, a
        boolean matrix (n, K), or a SciPy sparse one. Equal probabilities go to the first in the catalogue.
        """
        X, one = self._asked(x)
        rows = self._decided(X, one, 1 if k is None else validate.count("k", k), exclude, candidates)
        return self._answer(rows[:, 0] if k is None else rows, one)

    def decide_rows(self, X: npt.ArrayLike) -> Ints:
        """The most probable action of every context (n, d), by its row, (n,)."""
        return self._best(self._contexts(X), 1, np.empty(0, dtype=np.int64))[:, 0]

    def _decided(self, X: Array, one: bool, wanted: int, exclude: Filter, candidates: Filter) -> Ints:
        """(n, wanted)."""
        found = []
        for part, offered, barred in self._parts(X, one, exclude, candidates):
            if offered is None:
                if wanted > self.action_count - len(barred):
                    expected = f"at most the number of actions on offer, of {self.action_count}"
                    raise InvalidInput("k", wanted, expected)
                bytes_each = BYTES_OF_A_BEST * max(1, len(X))
                validate.room("k", wanted, bytes_each, f"of the best actions for {len(X):,} contexts")
                found.append(self._best(part, wanted, barred))
                continue
            if wanted > len(offered):
                raise InvalidInput("k", wanted, f"at most the number of actions on offer, {len(offered)}")
            found.append(self._best_of(part, offered, wanted))
        return np.concatenate(found)

    # ---- sampling

    @overload
    def sample(self, X: SomeArray, rng: Seed = None, **options: Unpack[Filters]) -> ActionId | AnyArray: ...
    @overload
    def sample(  # type: ignore[overload-overlap]
        self, X: Row | Sequence[float] | Vector, rng: Seed = None, **options: Unpack[Filters]
    ) -> ActionId: ...
    @overload
    def sample(
        self,
        X: Columns | FrameLike | Sequence[Row] | Sequence[Sequence[float]] | Sequence[Vector] | Matrix,
        rng: Seed = None,
        **options: Unpack[Filters],
    ) -> AnyArray: ...
    @overload
    def sample(self, X: ContextLike, rng: Seed = None, **options: Unpack[Filters]) -> ActionId | AnyArray: ...

    def sample(
        self, X: ContextLike, rng: Seed = None, *, exclude: Filter = None, candidates: Filter = None
    ) -> ActionId | AnyArray:
        """An action with the policy's probabilities: an id for one context, (n,) for many.

        Contexts and filters are those of `decide`; with filters, the law is the policy's given that it plays an action on offer.
        """
        contexts, one = self._asked(X, "X")
        generator = validate.seeded(rng, "rng")
        if exclude is None and candidates is None:
            return self._answer(self.sample_rows(contexts, generator), one)
        parts = []
        for i, (part, offered) in enumerate(self._offered(contexts, one, exclude, candidates)):
            chosen = np.empty(len(part), dtype=np.int64)
            for block, mass in self._masses_of(part, offered):
                upto = mass.cumsum(axis=1)
                _refuse_nothing(upto[:, -1], i if is_each(candidates) or is_each(exclude) else block.start)
                chosen[block] = offered[first_above(upto, generator.random(len(mass)) * upto[:, -1], mass)]
            parts.append(chosen)
        return self._answer(np.concatenate(parts), one)

    def propensity(
        self,
        x: ContextLike,
        action: ActionId | npt.ArrayLike | Sequence[ActionId],
        *,
        exclude: Filter = None,
        candidates: Filter = None,
    ) -> float | Array:
        """How likely `sample` is to give `action` in context x: a number, or (n,) for a batch and an action for each.

        Contexts and filters are those of `sample`. An action that the filters leave out has 0.
        """
        X, one = self._asked(x)
        given = [action] if one else action
        if one and np.iterable(action) and not isinstance(action, str):
            raise InvalidInput("action", validate.describe(action), "one id: there is one context")
        rows = rows_of("action", given, self.schema.catalogue, self.action_count)
        if len(rows) != len(X):
            raise InvalidInput("action", f"{len(rows)} actions", f"{len(X)}, one for each context")
        if exclude is None and candidates is None:
            found = self._probabilities_of_many(X, rows[:, None])[:, 0]
            return float(found[0]) if one else found
        found, start = np.zeros(len(X)), 0
        for i, (part, offered) in enumerate(self._offered(X, one, exclude, candidates)):
            for block, mass in self._masses_of(part, offered):
                here = slice(start + block.start, start + block.stop)
                total = mass.sum(axis=1)
                _refuse_nothing(total, i if is_each(candidates) or is_each(exclude) else block.start)
                place = np.minimum(np.searchsorted(offered, rows[here]), len(offered) - 1)
                on_offer = offered[place] == rows[here]
                found[here] = np.where(on_offer, mass[np.arange(len(mass)), place] / total, 0.0)
            start += len(part)
        return float(found[0]) if one else found

    @abstractmethod
    def _probabilities_of_many(self, X: Array, ids: Ints) -> Array: ...

    def explain(self, x: ContextLike, action: ActionId) -> Explanation:
        """What each feature of one context adds to an action's score, where scores are linear in features.

        Features are those of the context or, with an encoder of its own, what that makes of it (h[0], h[1], ...).
        """
        X, one = self._asked(x)
        if not one:
            raise InvalidInput("x", f"{len(X)} contexts", "one context")
        if np.iterable(action) and not isinstance(action, str):
            raise InvalidInput("action", validate.describe(action), "one id")
        found = self._explained(X, int(rows_of("action", [action], self.schema.catalogue, self.action_count)[0]))
        return found if found.names or self.schema.encoder is None else found.called(self.schema.encoder.names)

    def _explained(self, X: Array, row: int) -> Explanation:
        """The same, of a checked context (1, d), and of an action by its row."""
        raise InvalidInput("policy", type(self).__name__, "a policy whose scores are linear in features")

    # ---- from the user's words, and back

    def _contexts(self, X: npt.ArrayLike, name: str = "X") -> Array:
        return validate.rows(name, X, self.dim, "contexts")

    def _asked(self, x: ContextLike, name: str = "x") -> tuple[Array, bool]:
        """Contexts (n, d), and whether there was one."""
        given = validate.as_floats(name, encoded(self.schema.encoder, x, name))
        one = given.ndim == 1
        return self._contexts(given[None] if one else given, name), one

    def _answer(self, rows: Ints, one: bool) -> ActionId | AnyArray:
        names = self.schema.catalogue
        found = rows if names is None else names.named(rows)
        if not one:
            return found
        first = found[0]
        if isinstance(first, np.ndarray):
            return first
        return int(first) if isinstance(first, Integral) else cast(str, first)

    def _parts(
        self, X: Array, one: bool, exclude: Filter, candidates: Filter
    ) -> Iterator[tuple[Array, Ints | None, Ints]]:
        """Contexts that share their filters, with the actions on offer (None: all but the barred ones) and the barred ones."""
        names, number = self.schema.catalogue, None if one else len(X)
        chosen = filter_of("candidates", _listed(candidates), names, self.action_count, number)
        barred = filter_of("exclude", _listed(exclude), names, self.action_count, number, unknown=True)
        each = isinstance(chosen, list) or isinstance(barred, list)
        if each and not len(X):
            yield X, None, np.empty(0, dtype=np.int64)
        for i in range(len(X) if each else 1):
            some, out = (rows[i] if isinstance(rows, list) else rows for rows in (chosen, barred))
            gone = np.empty(0, dtype=np.int64) if out is None else np.unique(out)
            yield X[i : i + 1] if each else X, None if some is None else np.setdiff1d(some, gone), gone

    def _offered(self, X: Array, one: bool, exclude: Filter, candidates: Filter) -> Iterator[tuple[Array, Ints]]:
        """The same with all actions on offer listed."""
        for part, offered, barred in self._parts(X, one, exclude, candidates):
            if offered is None:
                offered = np.setdiff1d(np.arange(self.action_count), barred, assume_unique=True)
            if not len(offered):
                argument = "exclude" if candidates is None else "candidates"
                raise InvalidInput(argument, "a filter that leaves nothing", "at least one action on offer")
            yield part, offered


def _listed(filtered: Filter) -> Filter:
    """One id alone is a list of one."""
    if isinstance(filtered, Integral) or (isinstance(filtered, str) and filtered):
        return [filtered]
    if isinstance(filtered, np.ndarray) and filtered.ndim == 0:
        return filtered.reshape(1)
    return filtered


def _refuse_nothing(totals: Array, context: int) -> None:
    if len(totals) and not totals.min() > 0:
        came = f"actions that the policy never plays in context {context + int(np.argmin(totals))}"
        raise InvalidInput("candidates", came, "at least one with a probability above 0 on offer")


def first_above(upto: Array, point: Array, parts: Array) -> Ints:
    """The first column whose running sum exceeds `point`; where rounding left none, the last column with any mass."""
    column = (upto <= point[:, None]).sum(axis=1)
    over = column == upto.shape[1]
    if over.any():
        positive = parts[over] > 0
        column[over] = parts.shape[1] - 1 - positive[:, ::-1].argmax(axis=1)
    return np.asarray(column, dtype=np.int64)


__all__ = ["Edge", "Filters", "Seed", "first_above"]
