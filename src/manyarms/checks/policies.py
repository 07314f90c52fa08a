"""What every policy must satisfy: one distribution, however it is asked."""

from __future__ import annotations

import tempfile
from collections.abc import Callable

import numpy as np
from scipy.special import chdtrc

from manyarms._base.storage import load
from manyarms._base.typing import Array
from manyarms.checks.base import require, require_close
from manyarms.policies import StreamedPolicy

MakePolicy = Callable[[], StreamedPolicy]
CONTEXTS = 5
DRAWS = 4000
LEAST_P_VALUE = 1e-6


def check_policy(make: MakePolicy, *, tolerance: float = 1e-8, saved: bool = True) -> None:
    """Run every check of a policy; `make()` gives one over 2 to 5,000 actions.

    tolerance: how far its probabilities may be from what they are compared with. saved: whether it can be saved.
    """
    for check in POLICY_CHECKS:
        check(make(), tolerance)
    if saved:
        saving_keeps_the_policy(make(), tolerance)


def probabilities_sum_to_one(policy: StreamedPolicy, tolerance: float) -> None:
    """Every context has a distribution: at least 0, 1 in all, and none above 0 below `smallest_probability`."""
    table = _table(policy)
    require(bool((table >= 0).all()), "probabilities are at least 0", table.min())
    require_close(table.sum(axis=1), np.ones(len(table)), "the sum of the probabilities", max(tolerance, 1e-8), "1")
    least = float(table[table > 0].min())
    require(policy.smallest_probability <= least * (1 + 1e-9), "no probability above 0 is below the smallest", least)


def answers_agree(policy: StreamedPolicy, tolerance: float) -> None:
    """Single actions, expectations, masses of groups and blocks of `rows` all follow from the same table."""
    X, table, K = _contexts(policy), _table(policy), policy.action_count
    rng = np.random.default_rng(5)
    actions, labels = rng.integers(K, size=CONTEXTS), rng.integers(3, size=K)
    wanted, values = rng.integers(3, size=CONTEXTS), rng.standard_normal(K)
    rows = np.arange(CONTEXTS)
    within = max(tolerance, 1e-8)
    require_close(policy.probabilities_of(X, actions), table[rows, actions], "a probability", within, "the table")
    expected = policy.expectation(X, lambda x, ids: np.broadcast_to(values[ids], (len(x), len(ids))))
    require_close(expected, table @ values, "an expectation", within, "the table")
    mass = (table * (labels == wanted[:, None])).sum(axis=1)
    require_close(policy.group_mass(X, labels, wanted), mass, "the mass of a group", within, "the table")
    at = policy.rows(X)
    total = at.normaliser(K)[:, None]
    require_close(at.mass(0, K) / total, table, "a block of masses", within, "the table")
    require_close(
        at.only(rows[::-1]).mass(0, K) / total[::-1], table[::-1], "some of the contexts", within, "the table"
    )


def samples_have_the_law(policy: StreamedPolicy, tolerance: float) -> None:
    """Draws at one context have its probabilities (a chi-square test), and a seed fixes them."""
    X = _contexts(policy)
    drawn = policy.sample_rows(np.repeat(X[:1], DRAWS, axis=0), 11)
    counts = np.bincount(drawn, minlength=policy.action_count)
    expected = DRAWS * _table(policy)[0]
    require(not counts[expected <= 0].any(), "no action of probability 0 is drawn", np.flatnonzero(counts))
    often = expected >= 5
    seen = np.append(counts[often], counts[~often].sum())
    wanted = np.append(expected[often], expected[~often].sum())
    seen, wanted = seen[wanted > 0], wanted[wanted > 0]
    if len(seen) > 1:
        p_value = float(chdtrc(len(seen) - 1, ((seen - wanted) ** 2 / wanted).sum()))
        require(p_value > LEAST_P_VALUE, "draws have the policy's law", f"p-value {p_value:.2g}")
    require(np.array_equal(policy.sample_rows(X, 3), policy.sample_rows(X, 3)), "a seed fixes the draws")


def one_context_is_the_same(policy: StreamedPolicy, tolerance: float) -> None:
    """`in_context` draws what `sample_rows` draws, and has the probabilities of the table."""
    X, ids = _contexts(policy), np.arange(policy.action_count)
    for x in X:
        table = policy.probabilities_of_many(x[None], ids[None])[0]
        here, one, other = policy.in_context(x), np.random.default_rng(6), np.random.default_rng(6)
        for _ in range(5):
            ours, theirs = here.draw(one), int(policy.sample_rows(x[None], other)[0])
            require(ours == theirs, "in_context draws as sample_rows does", f"{ours}, not {theirs}")
        require_close(here.probabilities(ids), table, "a probability in one context", tolerance, "the table")


def the_best_are_the_most_probable(policy: StreamedPolicy, tolerance: float) -> None:
    """decide gives the k most probable, in order, whatever is excluded; one context gives an int."""
    X, table = _contexts(policy), _table(policy)
    k = min(3, policy.action_count - 1)
    best = np.asarray(policy.decide(X, k=k))
    require(best.shape == (CONTEXTS, k), "decide(X, k) has shape (n, k)", best.shape)
    require(isinstance(policy.decide(X[0]), int), "decide(x) is an int")
    for exclude in (None, best[0, :1]):
        offered = table.copy()
        if exclude is not None:
            offered[:, exclude] = -1.0
        found = np.asarray(policy.decide(X, k=k, exclude=exclude))
        ours = np.take_along_axis(offered, found, axis=1)
        largest = -np.sort(-offered, axis=1)[:, :k]
        require_close(ours, largest, "the probability of the best", max(tolerance, 1e-8), "the largest in the table")


def saving_keeps_the_policy(policy: StreamedPolicy, tolerance: float) -> None:
    """A saved policy comes back with the same class and the same probabilities, to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        policy.save(folder)
        again = load(folder)
    require(type(again) is type(policy), "a loaded policy is of the same class", type(again).__name__)
    require(bool((_table(again) == _table(policy)).all()), "a loaded policy has the same probabilities")


def _contexts(policy: StreamedPolicy) -> Array:
    dim = 3 if policy.dim is None else policy.dim
    return np.random.default_rng(42).uniform(-1, 1, (CONTEXTS, dim))


def _table(policy: StreamedPolicy) -> Array:
    """(n, K) probabilities at the check's contexts."""
    X = _contexts(policy)
    return policy.probabilities_of_many(X, np.tile(np.arange(policy.action_count), (len(X), 1)))


POLICY_CHECKS: tuple[Callable[[StreamedPolicy, float], None], ...] = (
    probabilities_sum_to_one,
    answers_agree,
    samples_have_the_law,
    one_context_is_the_same,
    the_best_are_the_most_probable,
)

__all__ = ["POLICY_CHECKS", "MakePolicy", "check_policy", "saving_keeps_the_policy"]
