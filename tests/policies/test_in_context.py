"""A policy in one context: the law, the draws and the probabilities of the policy, from one pass over its actions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies import EpsilonMixture, SoftmaxPolicy, StreamedPolicy, TopSoftmaxPolicy, UniformPolicy
from manyarms.policies import in_context as in_context_module
from manyarms.policies.base import ACTIONS, PolicyRows, action_blocks
from manyarms.policies.in_context import AskedAnew, in_context
from manyarms.policies.softmax import LinearScores

K, D = 2 * ACTIONS + 57, 8
rng = np.random.default_rng(3)
BETA = rng.standard_normal((K, D))
X = rng.standard_normal(D)
ALL = np.arange(K)

MADE: dict[str, StreamedPolicy] = {
    "double": SoftmaxPolicy(BETA),
    "single": SoftmaxPolicy(BETA.astype(np.float32)),
    "single, shifted": SoftmaxPolicy((12 * BETA).astype(np.float32)),
    "double, shifted": SoftmaxPolicy(200 * BETA),
    "beyond what sums resolve": SoftmaxPolicy((900 * BETA).astype(np.float32)),
    "explored": EpsilonMixture(SoftmaxPolicy((12 * BETA).astype(np.float32)), 0.3),
    "listed": TopSoftmaxPolicy(BETA, 40),
    "uniform": UniformPolicy(K),
}


@pytest.mark.parametrize("name", MADE)
def test_draws_and_probabilities_are_those_of_the_policy(name: str) -> None:
    policy = MADE[name]
    here, one, other = policy.in_context(X), np.random.default_rng(1), np.random.default_rng(1)
    drawn = [here.draw(one) for _ in range(50)]
    assert drawn == [int(policy.sample_rows(X[None], other)[0]) for _ in range(50)]
    for ids in (np.array(drawn), ALL):
        np.testing.assert_array_equal(here.probabilities(ids), policy.probabilities_of_many(X[None], ids[None])[0])
    # asked the other way round
    again = policy.in_context(X)
    np.testing.assert_array_equal(again.probabilities(ALL[:9]), here.probabilities(ALL[:9]))
    assert again.draw(np.random.default_rng(1)) == drawn[0]


@pytest.mark.parametrize("name", ["single", "single, shifted", "explored", "listed"])
def test_draws_have_the_law(name: str) -> None:
    policy, n = MADE[name], 20_000
    here, generator = policy.in_context(X), np.random.default_rng(2)
    counts = np.bincount([here.draw(generator) for _ in range(n)], minlength=K)
    expected = n * policy.probabilities_of_many(X[None], ALL[None])[0]
    often = expected >= 5
    seen, wanted = (np.append(part[often], part[~often].sum()) for part in (counts, expected))
    assert not seen[wanted == 0].any()
    seen, wanted = seen[wanted > 0], wanted[wanted > 0]
    assert chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-6


def test_what_is_barred_is_never_drawn_and_the_rest_keeps_its_proportions() -> None:
    policy, n = SoftmaxPolicy(BETA[:20]), 20_000
    here, generator, barred = policy.in_context(X), np.random.default_rng(4), frozenset(range(0, 20, 3))
    counts = np.bincount([here.draw_allowed(generator, barred) for _ in range(n)], minlength=20)
    law = policy.probabilities_of_many(X[None], ALL[None, :20])[0]
    law[list(barred)] = 0.0
    assert not counts[law == 0].any()
    assert chisquare(counts[law > 0], n * law[law > 0] / law.sum()).pvalue > 1e-6


def by_hand(policy: SoftmaxPolicy, x: Array, seed: int) -> tuple[int, float]:
    """What stores have recorded: blocks scored one by one; a block by its sum, an action in it; the action scored alone."""
    blocks, scaled = list(action_blocks(K)), policy._linear.scaled(x[None])
    scores = [policy._linear.scores(scaled, *block) for block in blocks]
    shift = policy.rows(x[None]).shift
    masses = [np.exp(s if shift is None else s - shift) for s in scores]
    upto = np.stack([m.sum(axis=1) for m in masses], axis=1).cumsum(axis=1)
    point = np.random.default_rng(seed).random(1) * upto[:, -1]
    block = int((upto <= point[:, None]).sum())
    rest = point - (upto[0, block - 1] if block else 0.0)
    action = blocks[block][0] + int((masses[block].cumsum(axis=1) <= rest[:, None]).sum())
    total: Any = 0.0
    for mass in masses:
        total = total + mass.sum(axis=1)
    alone = policy._linear.scores_at(scaled, np.array([[action]]))
    mass = np.exp(alone if shift is None else alone - shift)
    return action, float(mass[0, 0] / np.float64(total[0]))


@pytest.mark.parametrize("name", ["double", "single", "single, shifted", "double, shifted"])
def test_draws_and_probabilities_stay_what_earlier_versions_recorded(name: str) -> None:
    policy = MADE[name]
    assert isinstance(policy, SoftmaxPolicy)
    for seed in range(20):
        here = policy.in_context(X)
        action = here.draw(np.random.default_rng(seed))
        assert (action, float(here.probabilities(np.array([action]))[0])) == by_hand(policy, X, seed)


@pytest.mark.parametrize("name", ["single", "single, shifted"])
def test_rounding_is_within_its_bound(name: str) -> None:
    """Against double precision: a score is off by gamma_(d+2) |x|^T |beta_a| at most, a sum by gamma of its additions."""
    policy = MADE[name]
    assert isinstance(policy, SoftmaxPolicy)
    beta = np.asarray(policy.actions, dtype=np.float64)
    scores = beta @ X
    exact = np.exp(scores - scores.max())
    exact /= exact.sum()
    u = 2.0**-24
    off = (D + 4) * u * np.abs(beta) @ np.abs(X)  # with the rounding of x, and of the shift
    # each mass is off by exp(off) and its own few roundings; sums of at most ACTIONS + blocks terms
    relative = np.expm1(off + off.max() + (ACTIONS + 3 + 16) * u * 1.01)
    found = policy.in_context(X).probabilities(ALL)
    normal = exact > 1e-30  # below, single precision counts in steps
    assert (np.abs(found - exact)[normal] <= (relative * exact)[normal]).all()


class Counting(LinearScores):
    """Counts the actions that it scores."""

    scored = 0

    def scores(self, x: AnyArray, first: int, last: int, out: AnyArray | None = None) -> AnyArray:
        self.scored += len(x) * (last - first)
        return super().scores(x, first, last, out)


@pytest.mark.parametrize("name", ["single", "single, shifted", "explored"])
def test_all_answers_together_score_every_action_once(name: str) -> None:
    """But for the block that is drawn from, where nothing was held."""
    policy = MADE[name]
    soft = policy.policy if isinstance(policy, EpsilonMixture) else policy
    assert isinstance(soft, SoftmaxPolicy)
    counted = SoftmaxPolicy(soft.actions)
    counting = counted._linear = Counting("actions", soft.actions, 1.0)
    asked = EpsilonMixture(counted, policy.epsilon) if isinstance(policy, EpsilonMixture) else counted
    here, generator = asked.in_context(X), np.random.default_rng(5)
    for _ in range(3):
        here.probabilities(np.array([here.draw(generator), 5, 7]))
    assert K <= counting.scored <= K + 3 * ACTIONS


def test_policies_of_others_are_asked_by_their_own_methods() -> None:
    class Theirs:
        action_count = 4
        smallest_probability = 0.25

        def sample_rows(self, X: Array, rng: Any = None) -> Any:
            return np.array([3])

        def probabilities_of_many(self, X: Array, ids: Any) -> Array:
            return np.full(ids.shape, 0.25)

    here = in_context(Theirs(), X)  # type: ignore[arg-type]
    assert isinstance(here, AskedAnew)
    assert here.draw(np.random.default_rng()) == 3
    assert here.probabilities(np.array([1, 2])).tolist() == [0.25, 0.25]


@pytest.mark.parametrize("wrong", [np.ones(D + 1), np.ones((1, D)), "x", None, [np.nan] * D])
def test_what_is_no_context_is_refused(wrong: Any) -> None:
    for policy in (MADE["single"], MADE["explored"], MADE["listed"]):
        with pytest.raises(InvalidInput):
            policy.in_context(wrong)


@pytest.mark.parametrize("actions", [1, 7, 64, 65, 200])
@pytest.mark.parametrize("together", [1, 3, 8])
def test_blocks_asked_together_are_summed_one_by_one(
    actions: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masses that are whole numbers, so that no sum rounds."""
    monkeypatch.setattr(in_context_module, "TOGETHER", together)
    masses = np.random.default_rng(actions).integers(0, 9, (1, actions)).astype(float)
    masses[0, 0] = 1.0

    class Rows(PolicyRows):
        """Given masses."""

        def mass(self, first: int, last: int) -> Array:
            return masses[:, first:last]

        def mass_at(self, ids: Ints) -> Array:
            return np.take_along_axis(masses, ids, axis=1)

        def only(self, index: Ints) -> PolicyRows:
            return self

    blocks = list(action_blocks(actions, 16))
    one, many = in_context_module.BlockSums(Rows(), blocks, one=True), in_context_module.BlockSums(Rows(), blocks)
    assert np.array_equal(one._sums, many._sums) and one.total == many.total == masses.sum()
    for seed in range(20):
        assert one.draw(np.random.default_rng(seed)) == many.draw(np.random.default_rng(seed))
