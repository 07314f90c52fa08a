"""The best units by an index, found in blocks: the same as by looking at all of them, ties, withheld members and all."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyarms as ma
from beliefs.test_blocks import made_up, sized
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.agents.decisions.knowledge_gradient import expected_gain
from manyarms.beliefs import Belief
from manyarms.beliefs.actions import index_search, search, sketch
from manyarms.beliefs.actions.blocks import Blocks
from manyarms.beliefs.actions.index_search import Blocked, BlockForm, Scanned, unit_scores

SEEDS = st.integers(0, 10**6)
INDICES: dict[str, Callable[[float], index_search.Index]] = {
    "mean": lambda top: lambda m, v: m,
    "optimistic": lambda top: lambda m, v: m + 2.0 * np.sqrt(v),
    "on another scale": lambda top: lambda m, v: np.tanh(m) + 0.1 * np.sqrt(v),
    "gradient": lambda top: lambda m, v: m + 50.0 * expected_gain(np.abs(top - m), v, 0.5),
    "variance": lambda top: lambda m, v: v,
}


@given(seed=SEEDS, rows=st.integers(1, 60), size=st.integers(1, 9), width=st.integers(1, 6), kept=st.booleans())
@settings(max_examples=1000)
def test_forms_are_bounded_by_block_and_by_member(seed: int, rows: int, size: int, width: int, kept: bool) -> None:
    """Against exact fractions: forms of any rank, rows of all scales, and later ones that are far longer."""
    rng = np.random.default_rng(seed)
    features = made_up(rng, rows + 1, width)
    features[-1] *= 10.0 ** rng.choice([0, 10, 40])
    T = rng.standard_normal((width, int(rng.integers(1, width + 1)))) * 10.0 ** rng.choice([-20, 0, 0, 20])
    if rng.integers(3) == 0:
        T = np.diag(np.abs(rng.standard_normal(width)))
    Q: Array = T @ T.T
    counts, patch = np.ones(rows + 1, dtype=np.int64), sized(size)
    patch.setattr(sketch, "REST", 0.1 if kept else 3.0)
    built = Blocks(features[:rows], counts[:rows], counts[:rows] > 1)
    if size > 1:
        built.insert(features[rows], counts, counts > 1)
    patch.undo()
    form = BlockForm(built, Q)
    each = form.members(np.arange(len(built)))
    for j, length in enumerate(built.lengths.rows.tolist()):
        for place, unit in enumerate(built.units.rows[j, :length].tolist()):
            b, S = [Fraction(v) for v in features[unit].tolist()], [[Fraction(v) for v in row] for row in Q.tolist()]
            exact = sum(b[i] * S[i][m] * b[m] for i in range(width) for m in range(width))
            for bound in (form.bounds[j], each[j, place]):
                assert np.isinf(bound) or exact <= Fraction(float(bound))


def mixed(seed: int, actions: int, width: int, *, whole: bool, played: int, effects: float = 1.0) -> Belief:
    """A belief of distinct weights, some of them more than once, after a few rows; whole: of small integers, all exact."""
    rng = np.random.default_rng([seed, 5])
    b = rng.integers(-2, 3, (actions, width)).astype(float) if whole else rng.uniform(-1, 1, (actions, width))
    b[rng.integers(actions, size=actions // 4)] = b[rng.integers(actions, size=actions // 4)]
    mean = rng.integers(-2, 3, (width, 2)).astype(float) if whole else rng.standard_normal((width, 2))
    prior = ma.MixedEffectPrior(b, mean * rng.integers(2), effects * np.eye(width * 2), np.eye(2))
    belief = ma.beliefs.belief_of(prior, ma.Linear(1.0))
    if played:
        belief.observe(
            rng.integers(-1, 2, (played, 2)) + 0.5, rng.integers(actions, size=played), rng.standard_normal(played)
        )
    return belief


def both(belief: Belief, x: Array, offer: Any, size: int, *, spread: bool = True) -> tuple[Blocked, Scanned]:
    """The units in small blocks, and one by one."""
    patch = sized(size)
    patch.setattr(search, "FEW", 0)
    found = unit_scores(belief, x, offer, spread=spread, rising=True)
    patch.undo()
    assert isinstance(found, Blocked)
    return found, Scanned(*belief.unplayed_moments(x, offer, spread=spread), offer.counts)


def ordered(found: tuple[Array, Ints]) -> tuple[Array, Ints]:
    order = np.lexsort((found[1], -found[0]))
    return found[0][order], found[1][order]


@given(
    seed=SEEDS,
    name=st.sampled_from(sorted(INDICES)),
    size=st.sampled_from((1, 2, 5, 64)),
    k=st.sampled_from((1, 2, 7)),
    width=st.integers(1, 5),
    played=st.integers(0, 6),
    screen=st.booleans(),
)
@settings(max_examples=100)
def test_the_same_units_as_by_looking_at_all(
    seed: int, name: str, size: int, k: int, width: int, played: int, screen: bool
) -> None:
    belief, rng = mixed(seed, 70, width, whole=False, played=played), np.random.default_rng(seed)
    belief.catalogue.retire(np.setdiff1d(rng.integers(70, size=5), belief.catalogue.played.rows))
    offer = belief.catalogue.offer(exclude=rng.integers(70, size=int(rng.integers(20))))
    x = rng.uniform(-1, 1, 2)
    if not belief.unplayed_moments(x, offer, spread=True)[0].any() and name == "mean":
        return  # all means are 0: there is nothing to search
    blocked, scanned = both(belief, x, offer, size)
    means = ordered(scanned.two_means(-np.inf))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_search, "FEW", 0 if screen else 2048)
        np.testing.assert_allclose(ordered(blocked.two_means(-np.inf))[0], means[0], rtol=0, atol=1e-12)
        top = float(means[0][0])
        index = INDICES[name](top)
        everything = index(scanned.mean, scanned.variance)[offer.counts > 0]
        for floor in (-np.inf, float(np.median(everything)), float(everything.max()), float(everything.max()) + 1.0):
            for without in (-1, int(np.flatnonzero(offer.counts)[0]), int(means[1][0])):
                ours = ordered(blocked.best(index, k, floor, top, without))
                theirs = ordered(scanned.best(index, k, floor, np.inf, without))
                assert without not in ours[1]
                if floor == everything.max():  # whether it is reached is a matter of rounding
                    continue
                n = min(k, len(theirs[0]))
                np.testing.assert_allclose(ours[0][:n], theirs[0][:n], rtol=0, atol=1e-9)
                if len(theirs[0]) <= k and (np.diff(theirs[0]) < -1e-9).all():
                    np.testing.assert_array_equal(ours[1], theirs[1])


@given(seed=SEEDS, size=st.sampled_from((1, 3, 64)), k=st.sampled_from((1, 4)), screen=st.booleans())
def test_all_that_are_equal_are_found(seed: int, size: int, k: int, screen: bool) -> None:
    """Weights and contexts of small whole numbers: nothing is rounded, and many units are equal to the last bit."""
    belief = mixed(seed, 80, 3, whole=True, played=0, effects=0.25)
    offer, x = belief.catalogue.offer(exclude=[3, 7, 11]), np.array([1.0, -2.0])
    blocked, scanned = both(belief, x, offer, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_search, "FEW", 0 if screen else 2048)
        for index in (lambda m, v: m + v, lambda m, v: v, lambda m, v: np.maximum(m, 0.0)):
            ours, theirs = ordered(blocked.best(index, k)), ordered(scanned.best(index, k))
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_array_equal(ours[1], theirs[1])


RULES: list[Any] = [
    ma.Greedy(),
    ma.agents.UCB(1.5),
    ma.agents.Pessimistic(0.7),
    ma.agents.KnowledgeGradient(0.0),
    ma.agents.KnowledgeGradient(200.0),
    ma.agents.KnowledgeGradient(1e12),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("width", [2, 12])
def test_rules_decide_the_same_with_and_without_blocks(rule: Any, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As actions are played, retired, reinstated and added, with filters and several places."""
    rng = np.random.default_rng(width)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (6000, width)), np.zeros((width, 3)), np.eye(3 * width), np.eye(3))
    agent = Agent(ma.beliefs.belief_of(prior, ma.Linear(1.0)), rule, 0)
    for step in range(8):
        X = rng.standard_normal((4, 3))
        best = np.asarray(agent.decide(X, k=3))
        left = np.setdiff1d(np.arange(6000), list(agent.belief.catalogue.retired))
        options: list[dict[str, Any]] = [{}, {"exclude": best.ravel()}, {"candidates": rng.permutation(left)[:4500]}]
        for one in options:
            ours = np.asarray(agent.decide(X, k=3, **one))
            assert (np.asarray(agent.decide(X, **one)) == ours[:, 0]).all()
            with monkeypatch.context() as patch:
                patch.setattr(search, "FEW", 10**9)
                np.testing.assert_array_equal(agent.decide(X, k=3, **one), ours)
        agent.observe(X, best[:, step % 3], rng.standard_normal(4))
        agent.observe(rng.standard_normal((10, 3)), rng.integers(6000, size=10), rng.standard_normal(10))
        if step == 2:
            agent.retire(np.unique(best)[:4])
        if step == 4:
            agent.add_actions(weights=3 * rng.standard_normal((50, width)))


def test_ties_go_to_the_lowest_id_in_blocks() -> None:
    """5,000 distinct rows, half of which differ in what the context does not see."""
    rng = np.random.default_rng(0)
    b = np.column_stack([rng.integers(-3, 4, 5000), rng.permutation(5000)]).astype(float)
    prior = ma.MixedEffectPrior(b, np.array([[1.0], [0.0]]), np.diag([1.0, 1e-90]), np.eye(1))
    ties = np.flatnonzero(b[:, 0] == 3)
    for rule in (ma.Greedy(), ma.agents.UCB(2.0), ma.agents.KnowledgeGradient(5.0)):
        agent = Agent(ma.beliefs.belief_of(prior, ma.Linear(1.0)), rule, 0)
        assert np.asarray(agent.decide(np.ones(1), k=5)).tolist() == ties[:5].tolist()
        assert np.asarray(agent.decide(np.ones(1), k=5, exclude=ties[1:4])).tolist() == ties[[0, 4, 5, 6, 7]].tolist()


def test_what_blocks_do_not_serve_is_scanned() -> None:
    x, patch = np.ones(2), pytest.MonkeyPatch()
    patch.setattr(search, "FEW", 0)
    belief = mixed(0, 30, 2, whole=False, played=3)
    offer = belief.catalogue.offer()
    assert isinstance(unit_scores(belief, x, offer, spread=True, rising=True), Blocked)
    assert isinstance(unit_scores(belief, x, offer, spread=True, rising=False), Scanned)
    assert isinstance(unit_scores(belief, np.zeros(2), offer, spread=True, rising=True), Scanned)
    some = belief.catalogue.offer(candidates=[0, 1, 2])
    assert isinstance(unit_scores(belief, x, some, spread=True, rising=True), Scanned)
    rng = np.random.default_rng(0)
    own = np.stack([np.eye(2)] * 30)
    prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (30, 2)), np.ones((2, 2)), np.eye(4), own)
    belief = ma.beliefs.belief_of(prior, ma.Linear(1.0))
    assert isinstance(unit_scores(belief, x, belief.catalogue.offer(), spread=True, rising=True), Scanned)
    patch.undo()
