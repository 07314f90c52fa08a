"""Worlds that drift: the law of every change, regret against the best action of the round, and ids that keep in step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.worlds import Cube, Drifting, Pool, Seasons, Sudden, Turnover, Wandering, simulate_drifting
from manyarms.worlds.drifting_rounds import DriftingRun, tell_agent, trailing_mean

MANY = 10**13
STRUCTURES = ("mixed", "shared", "independent")


def small(**options: Any) -> Drifting:
    return Drifting(**{"actions": 12, "dim": 2, "changes": Wandering(20), "seed": 3} | options)


def own_parts(world: Drifting, rounds: int) -> np.ndarray:
    """(rounds + 1, K, d): theta less what is shared, over the square root of its variance."""
    path = [world.theta]
    for _ in range(rounds):
        world.advance()
        path.append(world.theta)
    return (np.stack(path) - world.weights @ world.psi) / np.sqrt(world.action_scale)


def assert_correlation(first: np.ndarray, second: np.ndarray, expected: float) -> None:
    """The mean product of standard normal numbers, one pair each, within six standard errors: var(xy) = 1 + rho^2."""
    error = np.sqrt((1 + expected**2) / first.size)
    assert abs((first * second).mean() - expected) < 6 * error


# ---- laws of change ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "correlation"),
    [
        (Wandering(10), lambda lag: 2.0 ** (-lag / 10)),
        (Wandering(0.5), lambda lag: 4.0**-lag),
        (Seasons(24), lambda lag: np.cos(2 * np.pi * lag / 24)),
        (Seasons(2.5), lambda lag: np.cos(2 * np.pi * lag / 2.5)),
        (Sudden([7]), lambda lag: float(lag < 7)),
        ([Wandering(10), Seasons(24)], None),
        ([Sudden([2, 7], share=0.4), Wandering(5, share=0.5), Turnover(4, 300)], None),
    ],
)
def test_the_marginal_law_stays_and_the_correlation_is_the_stated_one(
    change: Any, correlation: Callable[[int], float] | None
) -> None:
    """20,000 actions, which are independent, at one pair of rounds each: no dependence to correct the errors for."""
    world = Drifting(20_000, 1, changes=change, structure="independent", action_scale=2.0, seed=5)
    path = own_parts(world, 30)
    for t in (0, 6, 7, 13, 30):
        z = path[t].ravel()
        assert abs(z.mean()) < 6 / np.sqrt(z.size)
        assert abs((z**2).mean() - 1) < 6 * np.sqrt(2 / z.size)
        assert abs((z**4).mean() - 3) < 6 * np.sqrt(96 / z.size)
    if correlation is not None:
        for lag in (1, 6, 7, 13, 30):
            assert_correlation(path[0], path[lag], correlation(lag))


def test_the_companion_of_a_season_does_not_lose_length_over_100_000_rounds() -> None:
    world = Drifting(3, 2, changes=Seasons(1_000), structure="independent", seed=1)
    start = world.theta
    for _ in range(100_000):
        world.advance()
    np.testing.assert_allclose(world.theta, start, atol=1e-8)


@pytest.mark.parametrize("change", [Wandering(3, share=0.3), Seasons(7, share=0.3)])
def test_a_share_of_the_actions_moves_and_the_same_one_always(change: Any) -> None:
    path = own_parts(Drifting(50, 2, changes=change, seed=2), 20)
    moved = (path[1:] != path[:-1]).any(axis=2)
    assert (moved == moved[0]).all() and moved[0].sum() == 15


def test_a_sudden_change_hits_its_rounds_and_its_share_only() -> None:
    path = own_parts(Drifting(50, 2, changes=Sudden([3, 9], share=0.2), seed=2), 12)
    moved = (path[1:] != path[:-1]).any(axis=2)
    assert moved.sum(axis=1).tolist() == [10 if t in (3, 9) else 0 for t in range(1, 13)]
    assert not np.array_equal(moved[2], moved[8])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_prior_is_the_law_of_the_actions_at_every_round(structure: Any) -> None:
    """Over 4,000 seeds the parameters of three actions have the covariances that `prior` and `action_prior` state."""
    weights = [[1.0, 0.5], [-1.0, 0.0], [0.3, 2.0]] if structure == "mixed" else None
    draws = []
    for seed in range(4_000):
        world = Drifting(
            3, 1, changes=Wandering(4), structure=structure, effects=2, weights=weights, action_scale=0.5, seed=seed
        )
        for _ in range(3):
            world.advance()
        draws.append(world.theta.ravel())
    theta = np.stack(draws)
    shared = {"mixed": 3 * np.array(weights or np.zeros((3, 2))) @ np.array(weights or np.zeros((3, 2))).T}
    expected = {**shared, "shared": np.full((3, 3), 3.0), "independent": np.zeros((3, 3))}[structure] + 0.5 * np.eye(3)
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(theta))
    assert (np.abs(theta.T @ theta / len(theta) - expected) < 6 * spread).all()
    marginal = np.broadcast_to(world.action_prior().covariance, (3, 1, 1)).ravel()
    np.testing.assert_allclose(marginal, np.diag(expected))
    prior = world.prior()
    assert prior.actions == 3 and prior.dim == 1
    np.testing.assert_allclose(np.broadcast_to(prior.marginal().covariance, (3, 1, 1)).ravel(), np.diag(expected))


# ---- regret -----------------------------------------------------------------------------------------------------------


def test_regret_is_that_of_the_round_in_a_world_seen_through() -> None:
    """Two arms without noise to speak of: regret by hand from theta of each round."""
    world = small(actions=2, dim=1, source=Pool([[1.0]]), structure="independent", changes=Sudden([2, 4]), noise=1e-6)
    seen = []

    class First:
        def decide(self, x: np.ndarray) -> int:
            seen.append(world.theta.ravel().copy())
            return 0

        def observe(self, x: np.ndarray, a: int, r: float) -> None:
            assert abs(r - seen[-1][0]) < 1e-4  # the reward is of the same round, too

    run = simulate_drifting(world, First(), 6)
    np.testing.assert_allclose(run.regret, [max(theta) - theta[0] for theta in seen])
    assert len({tuple(theta) for theta in seen}) == 3 and run.sudden.tolist() == [2, 4] and world.round == 6


@pytest.mark.parametrize("kind", ["linear", "logistic", "poisson"])
def test_regret_and_the_best_action_agree_with_brute_force_at_every_round(kind: Any) -> None:
    world = small(
        actions=3_000, reward=kind, effect_scale=0.3, action_scale=0.2, changes=[Wandering(5), Turnover(2, 700)]
    )
    for _ in range(4):
        X = world.contexts(7)
        means = world.rewards.mean(X @ world.theta.T)
        ids, best = world.optimal(X)
        np.testing.assert_allclose(best, means.max(axis=1))
        np.testing.assert_array_equal(ids, world.ids[means.argmax(axis=1)])
        np.testing.assert_allclose(
            world.regret(X, world.ids[:7]), means.max(axis=1) - means[np.arange(7), np.arange(7)]
        )
        assert world.regret(X[0], int(world.ids[5])) == pytest.approx(means[0].max() - means[0, 5])
        assert world.optimal(X[:1])[0] == ids[0] and world.optimal(X[:0])[0].shape == (0,)
        world.advance()


def test_an_agent_that_knows_the_truth_has_no_regret() -> None:
    world = small(changes=[Wandering(5), Seasons(9), Turnover(3, 2)])

    class Oracle:
        def decide(self, x: np.ndarray) -> int:
            return int(world.optimal(x[None])[0][0])

        def observe(self, *row: object) -> None: ...

        def retire(self, ids: np.ndarray) -> None: ...

        def add_actions(self, number: int) -> np.ndarray:
            return world.ids.max() + 1 - number + np.arange(number)

    assert simulate_drifting(world, Oracle(), 40).regret.max() < 1e-12


# ---- streams ----------------------------------------------------------------------------------------------------------


def played(world: Drifting, choose: Callable[[int], int], rounds: int = 30) -> list[np.ndarray]:
    rows = []
    for t in range(rounds):
        x = world.contexts(1)[0]
        a = int(world.ids[choose(t)])
        rows.append(np.concatenate((x, world.theta.ravel(), [world.reward(x, a) - world.mean_reward(x, a)], world.ids)))
        world.advance()
    return rows


@pytest.mark.parametrize(
    "changes", [Wandering(9), [Seasons(5), Sudden([4], share=0.5)], [Wandering(9, 0.5), Turnover(7, 3)]]
)
def test_one_seed_goes_the_same_way_whatever_is_chosen(changes: Any) -> None:
    """Contexts, parameters, ids and even the noise of rewards."""
    one, two = small(changes=changes), small(changes=changes)
    first = played(one, lambda t: 0)
    np.testing.assert_allclose(first, played(two, lambda t: t % 12), atol=1e-12)
    np.testing.assert_allclose(first, played(two.replay(3), lambda t: 5), atol=1e-12)  # from the beginning again
    other = played(small(changes=changes, seed=4), lambda t: 0)
    assert not np.allclose(first[0][:4], other[0][:4])


def test_a_replay_has_the_same_drift_and_contexts_of_its_own_also_without_a_seed() -> None:
    world = small(seed=None)
    again = world.replay(77)
    assert not np.array_equal(world.contexts(3), again.contexts(3))
    np.testing.assert_array_equal(own_parts(world, 5), own_parts(again, 5))
    assert not np.array_equal(small(seed=None).theta, small(seed=None).theta)


def test_chunks_do_not_matter_and_a_second_call_goes_on() -> None:
    def run(chunk: int, *rounds: int) -> np.ndarray:
        world = small(changes=[Wandering(9), Turnover(4, 2)])
        agent = ma.meTS(world.prior(), seed=1)
        return np.concatenate([simulate_drifting(world, agent, n, chunk=chunk).regret for n in rounds])

    np.testing.assert_array_equal(run(7, 30), run(1000, 30))
    np.testing.assert_array_equal(run(7, 30), run(1000, 11, 19))


# ---- turnover ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("kind", ["prior", "action_prior", "hierarchical_prior"])
def test_turnover_keeps_agents_of_every_prior_in_step(structure: Any, kind: str) -> None:
    world = small(structure=structure, changes=[Wandering(30), Turnover(every=3, number=4)])
    make = {"MixedEffectPrior": ma.meTS, "HierarchicalPrior": ma.HierTS, "ActionPrior": ma.LinTS}
    prior = getattr(world, kind)()
    agent: Any = make[type(prior).__name__](prior, seed=0)
    run = simulate_drifting(world, agent, 20)
    assert run.sudden.tolist() == [3, 6, 9, 12, 15, 18]
    assert world.actions == 12 and world.ids.max() == 12 + 6 * 4 - 1
    assert agent.actions == world.actions
    assert len(np.unique(world.ids)) == 12 and np.isfinite(run.regret).all()
    gone = np.setdiff1d(np.arange(36), world.ids)
    with pytest.raises(UnknownAction, match="on offer in round 20"):
        world.reward(world.contexts(1)[0], int(gone[0]))
    for x in world.contexts(50):
        assert agent.decide(x) in world.ids


def test_new_actions_are_drawn_from_the_prior_and_described_by_their_weights() -> None:
    world = small(actions=6, weights=np.arange(18.0).reshape(6, 3), changes=Turnover(1, 2))
    before = world.weights
    news = world.advance()
    assert news is not None and news.added.tolist() == [6, 7] and news.weights is not None
    rows = [world.ids.tolist().index(a) for a in (6, 7)]
    np.testing.assert_array_equal(news.weights, world.weights[rows])
    assert all(
        (row == before).all(axis=1).any() for row in news.weights
    )  # the given weights are the law of the new ones
    np.testing.assert_allclose(news.covariance[:, 0, 0], 1 + 3 * (news.weights**2).sum(axis=1))
    assert world.prior().actions == 6 and np.array_equal(world.prior().weights, before)  # type: ignore[union-attr]
    onehot = small(actions=6, weights="onehot", changes=Turnover(1, 6)).advance()
    assert onehot is not None and onehot.weights is not None and (onehot.weights.sum(axis=1) == 1).all()
    assert set(world.candidates(6)) == set(world.ids)


def test_ids_that_differ_from_the_worlds_are_noticed() -> None:
    world = small(changes=Turnover(2, 1))
    agent = ma.meTS(world.prior(), seed=0)
    agent.add_actions(weights=np.ones((1, 3)))
    with pytest.raises(InvalidInput, match=r"agent: .*the world's"):
        simulate_drifting(world, agent, 5)
    told = []

    def tell(agent: Any, news: Any) -> np.ndarray:
        told.append(news)
        return tell_agent(agent, news)

    world = small(changes=Turnover(2, 1))
    simulate_drifting(world, ma.meTS(world.prior(), seed=0), 5, tell=tell)
    assert len(told) == 2


# ---- what is asked of a run -------------------------------------------------------------------------------------------


def test_regret_after_burn_in_and_recovery() -> None:
    regret = np.concatenate((np.full(100, 0.2), np.full(30, 2.0), np.full(70, 0.2), np.full(50, 2.0)))
    run = DriftingRun(regret, np.zeros(250, dtype=np.int64), np.array([100, 200]), 1.0)
    assert run.regret_a_round(burn_in=200) == pytest.approx(2.0)
    np.testing.assert_allclose(trailing_mean(np.arange(6.0), 3), [0, 0.5, 1, 2, 3, 4])
    # the mean of ten rounds is at most 0.3 first when all ten are behind the 30 bad ones, or nine and one third of a bad one
    assert run.recovery(100, window=10, level=50, factor=1.5) == 40
    assert run.recovery(100, window=10, level=50, factor=2.0) == 39
    assert run.recovery(200, window=10) == 50  # never: as many rounds as there are
    assert run.recovery(100, window=200) == 100  # no window before the next change
    assert "dynamic regret" in str(run) and run.rounds == 250


def test_progress_is_told_after_each_chunk() -> None:
    world, heard = small(), []
    agent = ma.meTS(world.prior(), seed=1)
    run = simulate_drifting(world, agent, 25, chunk=10, progress=lambda n, r: heard.append((n, r)))
    assert [n for n, _ in heard] == [10, 20, 25] and heard[-1][1] == pytest.approx(run.regret.sum())


# ---- bad arguments ----------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no half-life": (lambda: Wandering(0), "half_life"),
    "an endless half-life": (lambda: Wandering(float("inf")), "half_life"),
    "nobody moves": (lambda: Wandering(5, share=0), "share"),
    "more than all move": (lambda: Seasons(5, share=1.5), "share"),
    "a period of one round": (lambda: Seasons(1), "period"),
    "a change before the beginning": (lambda: Sudden([0, 5]), "rounds"),
    "half a round": (lambda: Sudden([1.5]), "rounds"),  # type: ignore[list-item]
    "turnover never": (lambda: Turnover(0, 1), "every"),
    "turnover of nobody": (lambda: Turnover(5, 0), "number"),
    "turnover of more than all": (lambda: small(changes=Turnover(5, 13)), "number: .*at most 12"),
    "a change that is a word": (lambda: small(changes="wandering"), "changes"),
    "a change that is a class": (lambda: small(changes=[Wandering]), "changes"),
    "an unknown structure": (lambda: small(structure="tree"), "structure"),
    "weights without effects": (lambda: small(structure="shared", weights="onehot"), "weights"),
    "weights of another size": (lambda: small(weights=np.ones((3, 3))), "weights"),
    "unknown weights": (lambda: small(weights="twohot"), "weights"),
    "no variance": (lambda: small(action_scale=0), "action_scale"),
    "a negative variance": (lambda: small(effect_scale=-1), "effect_scale"),
    "no noise": (lambda: small(noise=0), "noise"),
    "an unknown reward": (lambda: small(reward="cubic"), "reward"),
    "contexts of another length": (lambda: small(source=Cube(3)), "source: .*length 2"),
    "a source that is an array": (lambda: small(source=np.ones((1, 2))), "source"),
    "too many actions": (lambda: small(actions=MANY), "actions: expected at most"),
    "a seed of text": (lambda: small(seed="0"), "seed"),
    "a world that stands still": (
        lambda: simulate_drifting(ma.worlds.MixedEffect(5, 2, 3), ma.meTS(small().prior()), 5),  # type: ignore[arg-type]
        "world",
    ),
    "no rounds": (lambda: simulate_drifting(small(), ma.meTS(small().prior()), 0), "rounds"),
    "an agent that is a class": (lambda: simulate_drifting(small(), ma.Agent, 5), "agent"),  # type: ignore[arg-type]
    "progress that is no function": (
        lambda: simulate_drifting(small(), ma.meTS(small().prior()), 5, progress=3),  # type: ignore[arg-type]
        "progress",
    ),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_it_is_refused_by_name(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()


def test_unknown_actions_are_refused() -> None:
    world = small()
    for bad in (12, -1, True, 0.5, 2**70):
        with pytest.raises(UnknownAction, match="a:"):
            world.reward([0.1, 0.2], bad)  # type: ignore[call-overload]
    assert world.round == 0 and not world.theta.flags.writeable and not world.ids.flags.writeable
