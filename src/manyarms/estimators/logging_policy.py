"""What a log says of the policy that wrote it: the propensities of what was played, and of everything else.

IPS and its corrections need pi0 of the logged actions only. The mass of a group or a neighbourhood, SWITCH, and the bias
of a correction need pi0 of every action at each context (thesis, Section 7.1.2 and Appendix E.1.1): from the logging policy
itself, or from a support whose listed probabilities sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.bounds.summary import overshoot, undershoot
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy, action_blocks, first_above, row_blocks
from manyarms.policies.row_policy import at_rows
from manyarms.policies.support import SupportRows
from manyarms.rewards.base import RewardModel
from manyarms.weights import Correction

SUM_TOLERANCE = 1e-6
ROUNDING = 1e-12  # of a sum of probabilities that is 1
LEAST = 1e-300  # of a propensity: the inverse of a smaller one may be beyond all numbers
CELLS = 1 << 20  # numbers in a block of contexts x listed actions


@dataclass(frozen=True)
class Cells:
    """Some actions at some contexts: both policies' probabilities there, (b, k), and predictions on demand."""

    pi: Array
    pi0: Array
    predicted: Callable[[RewardModel], Array]


CellFunction = Callable[[Cells], Array]
"""A function of cells that gives an array (b, k), to be summed over the actions with pi0 > 0."""


PLAYED = "played"


def lost_sums(correction: Correction) -> dict[Hashable, CellFunction]:
    """The sums over actions from which `lost` is read, by name."""
    return {
        PLAYED: _pi,
        ("undershoot", correction): partial(cell_undershoot, correction),
        ("overshoot", correction): partial(cell_overshoot, correction),
    }


def lost(correction: Correction, sums: Mapping[Hashable, Array]) -> tuple[Array, Array]:
    """What a correction loses of pi, by sign: the sums over a of (pi - pi0 w_hat)_+ and of (pi - pi0 w_hat)_-, (n,) each.

    Of an action that the logging policy never plays all is lost.
    """
    return sums["undershoot", correction] + mass_never_played(sums[PLAYED]), -sums["overshoot", correction]


def mass_never_played(played: Array) -> Array:
    """pi's mass on actions with pi0 = 0, from its mass on the others."""
    out: Array = np.maximum(1.0 - played, 0.0)
    out[out < ROUNDING] = 0.0
    return out


def _pi(cells: Cells) -> Array:
    return cells.pi


def cell_undershoot(correction: Correction, cells: Cells) -> Array:
    """By how much pi0 w falls short of pi in each cell."""
    return undershoot(correction, cells.pi, cells.pi0)


def cell_overshoot(correction: Correction, cells: Cells) -> Array:
    """By how much pi0 w exceeds pi in each cell."""
    return overshoot(correction, cells.pi, cells.pi0)


class FullPropensities(Protocol):
    """pi0 of every action at every context of a log."""

    @property
    def listed(self) -> tuple[Ints, Array] | None:
        """All that may be played and how likely it was, (n, m) each, where the log lists it; None where a policy tells."""

    def group_mass(self, labels: AnyArray, wanted: AnyArray) -> Array:
        """The sum of pi0(a|x_i) over the actions with labels[a] == wanted[i], (n,)."""

    def of_many(self, index: Ints, ids: Ints) -> Array:
        """pi0(a_ij|x_i) for the rows `index` and ids (len(index), m)."""

    def sums(self, policy: Policy, functions: list[CellFunction]) -> Array:
        """(n, F): the sum over the actions with pi0 > 0 of each function."""

    def sample(self, index: Ints, count: int, rng: np.random.Generator) -> Ints:
        """(len(index), count): independent draws from pi0(.|x_i) for the rows `index`."""


class _FromPolicy:
    listed = None

    def __init__(self, X: Array, logging: Policy) -> None:
        self._X, self._logging = X, logging

    def group_mass(self, labels: AnyArray, wanted: AnyArray) -> Array:
        return self._logging.group_mass(self._X, labels, wanted)

    def of_many(self, index: Ints, ids: Ints) -> Array:
        return self._logging.probabilities_of_many(self._X[index], ids)

    def sums(self, policy: Policy, functions: list[CellFunction]) -> Array:
        _require_method(policy, "rows")
        out = np.zeros((len(self._X), len(functions)))
        K = policy.action_count
        for part in row_blocks(len(self._X)):
            X = self._X[part]
            ours, theirs = at_rows(policy, part).rows(X), self._logging.rows(X)
            z, z0 = ours.normaliser(K)[:, None], theirs.normaliser(K)[:, None]
            for first, last in action_blocks(K):
                ids = np.arange(first, last)
                pi0 = _invertible(theirs.mass(first, last) / z0)
                cells = Cells(ours.mass(first, last) / z, pi0, partial(_block, X, ids))
                played = cells.pi0 > 0
                for f, function in enumerate(functions):
                    out[part, f] += (function(cells) * played).sum(axis=1)
        return out

    def sample(self, index: Ints, count: int, rng: np.random.Generator) -> Ints:
        return self._logging.sample_rows(np.repeat(self._X[index], count, axis=0), rng).reshape(len(index), count)


def _require_method(policy: object, method: str) -> None:
    if not hasattr(policy, method):
        expected = f"a policy with {method}, for sums over all actions (evaluation does without them with bias=False)"
        raise InvalidInput("policy", f"a {type(policy).__name__}", expected)


def _invertible(pi0: Array) -> Array:
    """Probabilities whose inverses are finite numbers: what is played less often than that, is never played."""
    return np.where(pi0 < LEAST, 0.0, pi0) if pi0.min() < LEAST else pi0


def _block(X: Array, ids: Ints, model: RewardModel) -> Array:
    return model.block(X, ids)


def _pairs(X: Array, ids: Ints, model: RewardModel) -> Array:
    return model.predict(np.repeat(X, ids.shape[1], axis=0), ids.ravel()).reshape(ids.shape)


class _FromSupport:
    def __init__(self, X: Array, ids: Ints, probabilities: Array, actions: int) -> None:
        self._X, self._ids, self._probabilities, self._actions = X, ids, probabilities, actions

    @property
    def listed(self) -> tuple[Ints, Array]:
        return self._ids, self._probabilities

    def group_mass(self, labels: AnyArray, wanted: AnyArray) -> Array:
        return cast(Array, ((labels[self._ids] == wanted[:, None]) * self._probabilities).sum(axis=1))

    def of_many(self, index: Ints, ids: Ints) -> Array:
        return SupportRows(self._ids[index], self._probabilities[index], self._actions).mass_at(ids)

    def sums(self, policy: Policy, functions: list[CellFunction]) -> Array:
        _require_method(policy, "probabilities_of_many")
        out = np.zeros((len(self._X), len(functions)))
        step = max(1, CELLS // self._ids.shape[1])
        for start in range(0, len(self._X), step):
            part = slice(start, start + step)
            X, ids = self._X[part], self._ids[part]
            pi0 = _invertible(self._probabilities[part])
            cells = Cells(at_rows(policy, part).probabilities_of_many(X, ids), pi0, partial(_pairs, X, ids))
            played = cells.pi0 > 0
            for f, function in enumerate(functions):
                out[part, f] = (function(cells) * played).sum(axis=1)
        return out

    def sample(self, index: Ints, count: int, rng: np.random.Generator) -> Ints:
        ids, p = self._ids[index], self._probabilities[index]
        upto, row = p.cumsum(axis=1), np.arange(len(ids))
        drawn = [ids[row, first_above(upto, rng.random(len(ids)) * upto[:, -1], p)] for _ in range(count)]
        return np.stack(drawn, axis=1)


def logged_propensities(log: LoggedData, purpose: str) -> Array:
    """pi0(a_i|x_i), (n,), as logged, or from the logging policy where the log keeps only that."""
    pi0 = log.propensities
    if pi0 is None:
        if log.logging is None:
            log.require("propensities", purpose=purpose)
            raise AssertionError  # require has raised
        pi0 = log.logging.probabilities_of(log.contexts, log.actions)
        if not pi0.min() > 0:
            row = int(np.argmin(pi0))
            came = f"a logging policy that never plays the action of row {row}"
            raise InvalidInput("log.logging", came, f"the policy that wrote the log, for {purpose}")
    if pi0.min() < LEAST:
        came = f"a propensity of {pi0.min():.3g}"
        raise InvalidInput("log", came, f"propensities whose inverses are finite numbers, for {purpose}")
    return pi0


def full_propensities(log: LoggedData) -> FullPropensities | None:
    """pi0 of all actions, if the log can tell."""
    # what is written down is read before the policy is asked again, which may have to score a million actions for it
    ids, listed = log.support, log.support_probabilities
    if ids is not None and listed is not None and (np.abs(listed.sum(axis=1) - 1) <= SUM_TOLERANCE).all():
        return _FromSupport(log.contexts, ids, listed, log.action_count)
    if log.logging is not None and hasattr(log.logging, "rows"):
        return _FromPolicy(log.contexts, cast(Policy, log.logging))
    return None


def require_full_propensities(log: LoggedData, purpose: str) -> FullPropensities:
    """pi0 of all actions, or the reason why the log cannot tell."""
    found = full_propensities(log)
    if found is not None:
        return found
    came = "a log with the propensities of the logged actions only"
    if log.support_probabilities is not None:
        sums = log.support_probabilities.sum(axis=1)
        row = int(np.argmax(np.abs(sums - 1) > SUM_TOLERANCE))
        came = f"a log whose listed support has probability {sums[row]:.6g} at row {row}"
    elif log.logging is not None:
        came = "a logging policy that tells the probabilities of single actions only"
    raise InvalidInput(
        "log",
        came,
        f"for {purpose} the logging policy's probabilities of all actions: log.logging as a manyarms policy, or "
        "support and support_probabilities that sum to 1",
    )


__all__ = [
    "CellFunction", "Cells", "FullPropensities", "cell_overshoot", "cell_undershoot", "full_propensities",
    "logged_propensities", "lost", "lost_sums", "mass_never_played", "require_full_propensities",
]  # fmt: skip
