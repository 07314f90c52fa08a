"""Policies that need no parameters, mixtures with uniform play, and policies given as functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.explanation import Explanation
from manyarms._base.nested import prefixed, under
from manyarms._base.private import locked
from manyarms._base.typing import AnyArray, Array, Ints, Spec, loose
from manyarms.errors import InvalidInput
from manyarms.policies.base import (
    POLICIES,
    Policy,
    PolicyRows,
    StreamedPolicy,
    Values,
    action_blocks,
    group_arrays,
    lowest_ids,
    restore_policy,
)
from manyarms.policies.in_context import InContext, Mixed, Summed, in_context


class _FixedRows(PolicyRows):
    def __init__(self, probabilities: Array, count: int) -> None:
        self._probabilities, self._count = probabilities, count
        self.total = np.ones(count)

    def mass(self, first: int, last: int) -> Array:
        return np.broadcast_to(self._probabilities[first:last], (self._count, last - first))

    def mass_at(self, ids: Ints) -> Array:
        return self._probabilities[ids]

    def only(self, index: Ints) -> PolicyRows:
        return _FixedRows(self._probabilities, len(index))


class _UniformRows(PolicyRows):
    def __init__(self, probability: float, count: int) -> None:
        self._probability, self._count = probability, count
        self.total = np.ones(count)

    def mass(self, first: int, last: int) -> Array:
        return np.broadcast_to(np.float64(self._probability), (self._count, last - first))

    def mass_at(self, ids: Ints) -> Array:
        return np.full(ids.shape, self._probability)

    def only(self, index: Ints) -> PolicyRows:
        return _UniformRows(self._probability, len(index))


def mass_of_groups(groups: AnyArray, asked: AnyArray, probabilities: Array | None) -> Array:
    """The mass of the groups that are asked for, in one sum a group; None counts actions."""
    names, place = np.unique(groups, return_inverse=True)
    mass = np.bincount(place, weights=probabilities, minlength=len(names)).astype(np.float64)
    index = np.minimum(np.searchsorted(names, asked), len(names) - 1)
    return np.where(names[index] == asked, mass[index], 0.0)


@POLICIES.register("fixed")
class FixedPolicy(StreamedPolicy):
    """The same probabilities (K,) in every context; they must sum to 1."""

    def __init__(self, probabilities: npt.ArrayLike) -> None:
        p = validate.as_array("probabilities", probabilities, (None,))
        if p.min() < 0 or abs(p.sum() - 1) > 1e-6:
            raise InvalidInput(
                "probabilities", f"sum {p.sum():.9g}, smallest {p.min():.3g}", "numbers from 0 that sum to 1"
            )
        super().__init__(len(p))
        self.probabilities = validate.owned(locked(p / p.sum()))
        self.smallest_probability = float(self.probabilities[self.probabilities > 0].min())

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        return _FixedRows(self.probabilities, len(X))

    def sample_rows(self, X: npt.ArrayLike, rng: int | np.random.Generator | None = None) -> Ints:
        """One action for every context, (n,)."""
        upto = self.probabilities.cumsum()
        point = validate.seeded(rng).random(len(self._contexts(X))) * upto[-1]
        last = int(np.flatnonzero(self.probabilities)[-1])
        place: Ints = np.minimum(np.searchsorted(upto, point, side="right"), last)
        return place

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The mass of the wanted groups, (n,): one sum a group."""
        groups, asked = group_arrays(labels, wanted, self.action_count, len(self._contexts(X)))
        return mass_of_groups(groups, asked, self.probabilities)

    def spec(self) -> Spec:
        return {}

    def arrays(self) -> dict[str, AnyArray]:
        return {"probabilities": self.probabilities}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> FixedPolicy:
        return cls(arrays["probabilities"])


@POLICIES.register("uniform")
class UniformPolicy(StreamedPolicy):
    """Every one of K actions with probability 1/K; nothing in it is as long as K."""

    def __init__(self, actions: int) -> None:
        super().__init__(actions)
        self.smallest_probability = 1.0 / self.action_count

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        return _UniformRows(self.smallest_probability, len(X))

    def sample_rows(self, X: npt.ArrayLike, rng: int | np.random.Generator | None = None) -> Ints:
        """One action for every context, (n,)."""
        place = validate.seeded(rng).random(len(self._contexts(X))) * self.action_count
        chosen: Ints = np.minimum(place.astype(np.int64), self.action_count - 1)
        return chosen

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The mass of the wanted groups, (n,): one count a group."""
        groups, asked = group_arrays(labels, wanted, self.action_count, len(self._contexts(X)))
        return mass_of_groups(groups, asked, None) / self.action_count

    def _best(self, X: Array, wanted: int, barred: Ints) -> Ints:
        """(n, wanted): equal probabilities go to the lowest ids."""
        return np.broadcast_to(lowest_ids(wanted, barred), (len(X), wanted)).copy()

    def spec(self) -> Spec:
        return {"actions": self.action_count}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> UniformPolicy:
        told = loose(spec)
        return cls(told["actions"])


@POLICIES.register("epsilon-mixture")
class EpsilonMixture(StreamedPolicy):
    """With probability epsilon any action, otherwise what `policy` plays: (1 - epsilon) pi + epsilon / K."""

    def __init__(self, policy: Policy, epsilon: float) -> None:
        if isinstance(policy, type) or not isinstance(policy, Policy):
            raise InvalidInput("policy", validate.describe(policy), "a policy, such as SoftmaxPolicy")
        super().__init__(policy.action_count)
        self.policy = policy
        self.epsilon = validate.probability("epsilon", epsilon)
        self.dim = getattr(policy, "dim", None)
        self.training_rows = getattr(policy, "training_rows", None)
        self._uniform = UniformPolicy(policy.action_count)
        # epsilon / K at least, since every action is explored
        self.smallest_probability = self.epsilon / self.action_count if self.epsilon else policy.smallest_probability

    def __repr__(self) -> str:
        return f"EpsilonMixture({self.policy!r}, epsilon={self.epsilon:g})"

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        rows = self.policy.rows(X)
        return _MixtureRows(rows, rows.normaliser(self.action_count)[:, None], self.epsilon, self.action_count)

    # everything is linear in the policy: its own ways are used, and they may be faster than streaming

    def probabilities_of_many(self, X: npt.ArrayLike, ids: npt.ArrayLike) -> Array:
        """pi(a_ij|x_i) for ids (n, m)."""
        return self._mix(self.policy.probabilities_of_many(X, ids), 1.0 / self.action_count)

    def expectation(self, X: npt.ArrayLike, values: Values) -> Array:
        """The sum over a of pi(a|x_i) values(x_i, a), (n,)."""
        own = self.policy.expectation(X, values)
        return self._mix(own, self._uniform.expectation(X, values)) if self.epsilon else own

    def group_mass(self, X: npt.ArrayLike, labels: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
        """The mass of the wanted groups, (n,)."""
        return self._mix(self.policy.group_mass(X, labels, wanted), self._uniform.group_mass(X, labels, wanted))

    def sample_rows(self, X: npt.ArrayLike, rng: int | np.random.Generator | None = None) -> Ints:
        """One action for every context, (n,)."""
        rng = validate.seeded(rng)
        X = self._contexts(X)
        out = rng.integers(self.action_count, size=len(X))
        follow = np.flatnonzero(rng.random(len(X)) >= self.epsilon)
        out[follow] = self.policy.sample_rows(X[follow], rng)
        return out

    def in_context(self, x: npt.ArrayLike) -> InContext:
        """The policy in one context (d,): draws and probabilities of rows that cost one pass over all actions together."""
        return Mixed(in_context(self.policy, self._one_context(x)[0]), self.epsilon, self.action_count)

    def _explained(self, X: Array, row: int) -> Explanation:
        return _saveable(self.policy)._explained(X, row)

    def _mix(self, own: Array, uniform: Array | float) -> Array:
        return (1 - self.epsilon) * own + self.epsilon * uniform

    def spec(self) -> Spec:
        return {"epsilon": self.epsilon, "policy": _saveable(self.policy).saved_spec()}

    def arrays(self) -> dict[str, AnyArray]:
        return prefixed("policy/", _saveable(self.policy).arrays())

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> EpsilonMixture:
        told = loose(spec)
        return cls(restore_policy(told["policy"], under("policy/", arrays)), told["epsilon"])


class _MixtureRows(PolicyRows):
    def __init__(self, rows: PolicyRows, normaliser: Array, epsilon: float, actions: int) -> None:
        self._rows, self._normaliser, self._epsilon, self._actions = rows, normaliser, epsilon, actions
        self.total = np.ones(len(normaliser))

    def mass(self, first: int, last: int) -> Array:
        return self._mix(self._rows.mass(first, last))

    def mass_at(self, ids: Ints) -> Array:
        return self._mix(self._rows.mass_at(ids))

    def score(self, first: int, last: int) -> Array:
        return self._rows.score(first, last) if self._epsilon < 1 else self.mass(first, last)

    def only(self, index: Ints) -> PolicyRows:
        return _MixtureRows(self._rows.only(index), self._normaliser[index], self._epsilon, self._actions)

    def _mix(self, mass: Array) -> Array:
        return mass * ((1 - self._epsilon) / self._normaliser) + self._epsilon / self._actions


def _saveable(policy: Policy) -> StreamedPolicy:
    if not isinstance(policy, StreamedPolicy):
        raise InvalidInput("policy", validate.describe(policy), "a policy of this package: others cannot be saved")
    return policy


class FunctionPolicy(StreamedPolicy):
    """Probabilities from a function of contexts (n, d) and ids (n,) that gives pi(a_i|x_i), (n,), each row summing to 1.

    For policies that live elsewhere: a table, another library, a service. Cannot be saved.
    """

    def __init__(self, probabilities: Callable[[Array, Ints], npt.ArrayLike], actions: int, floor: float = 0.0) -> None:
        super().__init__(actions)
        if not callable(probabilities):
            raise InvalidInput("probabilities", validate.describe(probabilities), "a function of contexts and ids")
        self._function = probabilities
        self.smallest_probability = validate.probability("floor", floor)  # the caller vouches for it

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        return _FunctionRows(self._checked, X)

    def in_context(self, x: npt.ArrayLike) -> InContext:
        """The policy in one context (d,): draws and probabilities of rows that cost one pass over all actions together."""
        return Summed(self.rows(self._one_context(x)), list(action_blocks(self.action_count)))

    def _checked(self, X: Array, ids: Ints) -> Array:
        values = validate.as_floats("probabilities", self._function(X, ids))
        if values.shape != ids.shape or (values.size and (values.min() < 0 or values.max() > 1 + 1e-9)):
            raise InvalidInput("probabilities", validate.describe(values), "a number from 0 to 1 for every row")
        return values


class _FunctionRows(PolicyRows):
    def __init__(self, function: Callable[[Array, Ints], Array], X: Array) -> None:
        self._function, self._X = function, X
        self.total = np.ones(len(X))

    def mass(self, first: int, last: int) -> Array:
        return self.mass_at(np.broadcast_to(np.arange(first, last), (len(self._X), last - first)))

    def mass_at(self, ids: Ints) -> Array:
        repeated = np.repeat(self._X, ids.shape[1], axis=0)
        return self._function(repeated, np.ascontiguousarray(ids).ravel()).reshape(ids.shape)

    def only(self, index: Ints) -> PolicyRows:
        return _FunctionRows(self._function, self._X[index])


__all__ = ["EpsilonMixture", "FixedPolicy", "FunctionPolicy", "UniformPolicy"]
