"""Bad input meets a documented error that names the argument, what came and what was expected; the agent stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents.agent import Agent

K, L, D = 6, 2, 2
X = np.array([0.5, -0.5])
EYE = np.eye(D)
NAN, INF = float("nan"), float("inf")


def mixed(**changes: Any) -> ma.MixedEffectPrior:
    rng = np.random.default_rng(0)
    parts = {
        "weights": rng.uniform(-1, 1, (K, L)),
        "effect_mean": np.zeros((L, D)),
        "effect_covariance": np.eye(L * D),
        "action_covariance": EYE,
    }
    return ma.MixedEffectPrior(**{**parts, **changes})


def linear() -> Agent:
    agent = ma.meTS(mixed(), seed=0)
    agent.observe([X, -X, X], [1, 2, 1], [0.3, 0.1, -0.2])
    agent.retire(5)
    return agent


def clicks() -> Agent:
    agent = ma.meTS(mixed(), ma.Logistic(), seed=0)
    agent.observe([X, -X, X], [1, 2, 1], [1.0, 0.0, 0.0])
    agent.retire(5)
    return agent


def counts() -> Agent:
    agent = ma.agents.GLMTS(ma.ActionPrior(K, np.zeros(D), EYE), ma.beliefs.Poisson(), seed=0)
    agent.observe(X, 1, 3.0)
    agent.retire(5)
    return agent


def own() -> Agent:
    agent = ma.meTS(mixed(action_covariance=np.stack([EYE] * K)), seed=0)
    agent.observe(X, 1, 3.0)
    agent.retire(5)
    return agent


def common() -> Agent:
    agent = ma.LinTS(ma.ActionPrior(K, np.zeros(D), EYE), seed=0)
    agent.observe(X, 1, 3.0)
    agent.retire(5)
    return agent


def apart() -> Agent:
    agent = ma.LinTS(ma.ActionPrior(K, np.zeros(D), np.stack([EYE] * K)), seed=0)
    agent.observe(X, 1, 3.0)
    agent.retire(5)
    return agent


def fingerprint(agent: Agent) -> dict[str, object]:
    """Everything that an agent knows."""
    catalogue = agent.belief.leaves.catalogue
    return {
        **{name: array.tobytes() for name, array in agent.belief.arrays().items()},
        "draws and version": (agent.key, agent.draws, agent.version),
        "catalogue": (catalogue.size, catalogue.alive, list(catalogue.slot_of), catalogue.units.counts.tobytes()),
        "features": agent.belief.leaves.mixing.features is None or agent.belief.leaves.mixing.features.tobytes(),
    }


# what is done, to whom, the argument that the message names, and something of the value that came
CALLS: dict[str, tuple[Callable[[], Agent], Callable[[Agent], object], str, str]] = {
    # contexts
    "decide: a context too long": (linear, lambda a: a.decide([1.0, 2.0, 3.0]), "x", r"shape \(3,\)"),
    "decide: a batch of wrong width": (linear, lambda a: a.decide(np.ones((4, 3))), "x", r"shape \(4, 3\)"),
    "decide: three axes": (linear, lambda a: a.decide(np.ones((1, 1, 2))), "x", r"shape \(1, 1, 2\)"),
    "decide: no contexts": (linear, lambda a: a.decide(np.ones((0, 2))), "x", r"shape \(0, 2\)"),
    "decide: a number": (linear, lambda a: a.decide(1.0), "x", r"shape \(\)"),
    "decide: NaN": (linear, lambda a: a.decide([NAN, 0.0]), "x", "nan at position"),
    "decide: infinite": (linear, lambda a: a.decide([[1.0, 1.0], [0.0, -INF]]), "x", r"-inf at position \(1, 1\)"),
    "decide: infinities that cancel": (linear, lambda a: a.decide([INF, -INF]), "x", "inf at position"),
    "decide: beyond any scale": (linear, lambda a: a.decide([1e200, 0.0]), "x", r"1e\+200"),
    "decide: strings": (linear, lambda a: a.decide(["a", "b"]), "x", "'a', 'b'"),
    "decide: numbers as strings": (linear, lambda a: a.decide(["1", "2"]), "x", "'1', '2'"),
    "decide: complex": (linear, lambda a: a.decide(np.array([1j, 0])), "x", "complex"),
    "decide: nothing": (linear, lambda a: a.decide(None), "x", "None"),
    "decide: ragged": (linear, lambda a: a.decide([[1.0, 2.0], [1.0]]), "x", "1.0"),
    # k, candidates, exclude
    "decide: k too large": (linear, lambda a: a.decide(X, k=6), "k", "6"),
    "decide: k of zero": (linear, lambda a: a.decide(X, k=0), "k", "0"),
    "decide: k not whole": (linear, lambda a: a.decide(X, k=1.5), "k", "1.5"),  # type: ignore[arg-type]
    "decide: k true": (linear, lambda a: a.decide(X, k=True), "k", "True"),
    "decide: k beyond the candidates": (linear, lambda a: a.decide(X, k=3, candidates=[1, 2]), "k", "3"),
    "decide: no candidates": (linear, lambda a: a.decide(X, candidates=[]), "candidates", "empty"),
    "decide: none left": (linear, lambda a: a.decide(X, candidates=[1], exclude=[1]), "candidates", "empty"),
    "decide: all excluded": (linear, lambda a: a.decide(X, exclude=np.arange(6)), "exclude", "all 5 that are not"),
    "decide: all excluded, own contexts": (
        linear,
        lambda a: a.decide(action_contexts=np.ones((K, D)), exclude=np.arange(6)),
        "exclude",
        "all 5 that are not",
    ),
    "decide: an unknown candidate": (linear, lambda a: a.decide(X, candidates=[0, 6]), "candidates", "action 6"),
    "decide: a negative candidate": (linear, lambda a: a.decide(X, candidates=[-1]), "candidates", "action -1"),
    "decide: a retired candidate": (
        linear,
        lambda a: a.decide(X, candidates=[0, 5]),
        "candidates",
        "action 5.*retired",
    ),
    "decide: a candidate twice": (linear, lambda a: a.decide(X, candidates=[0, 3, 0]), "candidates", "action 0 more"),
    "decide: candidates not whole": (linear, lambda a: a.decide(X, candidates=[0.5]), "candidates", "0.5"),
    "decide: a mask": (linear, lambda a: a.decide(X, candidates=[True, False]), "candidates", "True, False"),
    "decide: candidates in a table": (linear, lambda a: a.decide(X, candidates=[[0, 1]]), "candidates", "1 context of"),
    "decide: ragged candidates": (linear, lambda a: a.decide(X, candidates=[[0], [1, 2]]), "candidates", "2 contexts"),
    "decide: half an exclusion": (linear, lambda a: a.decide(X, exclude=[0.5]), "exclude", "0.5"),
    "decide: exclusions not whole": (linear, lambda a: a.decide(X, exclude=["a"]), "exclude", "'a'"),
    "decide: a bad seed": (linear, lambda a: a.decide(X, rng=-1), "rng", "-1"),
    "decide: a negative number": (linear, lambda a: a.decide(X, draw=-1), "draw", "-1"),
    "decide: a number that is none": (linear, lambda a: a.decide(X, draw=1.0), "draw", "1.0"),  # type: ignore[arg-type]
    "decide: a number beyond all": (linear, lambda a: a.decide(X, draw=2**63), "draw", "9223372036854775808"),
    "decide: two sources of chance": (linear, lambda a: a.decide(X, draw=1, rng=0), "draw", "1"),
    "propensity: two sources of chance": (linear, lambda a: a.propensity(X, 1, draw=1, rng=0), "draw", "1"),
    "propensity: a negative number": (linear, lambda a: a.propensity(X, 1, draw=-1), "draw", "-1"),
    # observing
    "observe: NaN context": (linear, lambda a: a.observe([NAN, 1.0], 0, 1.0), "x", "nan"),
    "observe: beyond any scale": (linear, lambda a: a.observe([1e160, 1.0], 0, 1.0), "x", r"1e\+160"),
    "observe: wrong length": (linear, lambda a: a.observe([1.0], 0, 1.0), "x", r"shape \(1,\)"),
    "observe: unknown action": (linear, lambda a: a.observe(X, 6, 1.0), "action", "action 6"),
    "observe: negative action": (linear, lambda a: a.observe(X, -1, 1.0), "action", "action -1"),
    "observe: action not whole": (linear, lambda a: a.observe(X, 1.0, 1.0), "action", "1.0"),
    "observe: NaN reward": (linear, lambda a: a.observe(X, 1, NAN), "reward", "nan"),
    "observe: infinite reward": (linear, lambda a: a.observe(X, 1, INF), "reward", "inf"),
    "observe: two rewards": (linear, lambda a: a.observe(X, 1, [1.0, 2.0]), "reward", r"shape \(2,\)"),
    "observe: reward of words": (linear, lambda a: a.observe(X, 1, "good"), "reward", "good"),
    "observe: batch, an unknown action": (linear, lambda a: a.observe([X, X], [0, 7], [1, 1]), "action", "action 7"),
    "observe: batch, an unknown action beside a retired one": (
        linear,
        lambda a: a.observe([X, X, X], [0, 5, 6], [1, 1, 1]),
        "action",
        "action 6",
    ),
    "observe: batch, too few actions": (linear, lambda a: a.observe([X, X], [0], [1, 1]), "action", "1 actions"),
    "observe: batch, one action": (linear, lambda a: a.observe([X, X], 0, [1, 1]), "action", "0"),
    "observe: batch, too few rewards": (linear, lambda a: a.observe([X, X], [0, 1], [1]), "reward", r"shape \(1,\)"),
    "observe: batch, a NaN at the end": (linear, lambda a: a.observe([X, X], [0, 1], [1, NAN]), "reward", "nan"),
    "observe: 0.3 of a click": (clicks, lambda a: a.observe(X, 0, 0.3), "reward", "0.3"),
    "observe: two clicks": (clicks, lambda a: a.observe([X, X], [0, 1], [1, 2]), "reward", "2"),
    "observe: half a count": (counts, lambda a: a.observe(X, 0, 0.5), "reward", "0.5"),
    "observe: a negative count": (counts, lambda a: a.observe([X, X], [0, 1], [1, -1]), "reward", "-1"),
    # propensity and posterior
    "propensity: a batch": (linear, lambda a: a.propensity([X, X], 0), "x", ""),
    "propensity: retired": (linear, lambda a: a.propensity(X, 5), "action", "action 5.*retired"),
    "propensity: no draws": (linear, lambda a: a.propensity(X, 0, draws=0), "draws", "0"),
    "propensity: k too large": (linear, lambda a: a.propensity(X, 0, k=6), "k", "6"),
    "propensity: empty": (linear, lambda a: a.propensity(X, 0, candidates=[]), "candidates", "empty"),
    "posterior: unknown": (linear, lambda a: a.posterior(17), "action", "action 17"),
    # the catalogue
    "retire: unknown": (linear, lambda a: a.retire(6), "actions", "action 6"),
    "retire: again": (linear, lambda a: a.retire([0, 5]), "actions", "action 5.*retired"),
    "retire: twice": (linear, lambda a: a.retire([0, 1, 0]), "actions", "action 0 more than once"),
    "retire: words": (linear, lambda a: a.retire("all"), "actions", "all"),
    "retire: one that is masked": (linear, lambda a: a.retire(np.ma.array([0, 1], mask=[0, 1])), "actions", "masked"),
    "reinstate: unknown": (linear, lambda a: a.reinstate([5, 6]), "actions", "action 6"),
    "reinstate: not retired": (linear, lambda a: a.reinstate([5, 0]), "actions", "action 0.*not retired"),
    "reinstate: twice": (linear, lambda a: a.reinstate([5, 5]), "actions", "action 5 more than once"),
    "reinstate: words": (linear, lambda a: a.reinstate("all"), "actions", "all"),
    "add: more than can be counted": (common, lambda a: a.add_actions(2**63), "number", str(2**63)),
    "add: more than ids can count": (common, lambda a: a.add_actions(2**63 - 3), "number", str(2**63 - 3)),
    "add: more than there is memory for": (common, lambda a: a.add_actions(2**60), "number", str(2**60)),
    "add: so many own covariances": (apart, lambda a: a.add_actions(2**60, covariance=EYE), "number", str(2**60)),
    "add: no weights": (linear, lambda a: a.add_actions(2), "weights", "None"),
    "add: too many weights": (linear, lambda a: a.add_actions(weights=[[1.0, 2.0, 3.0]]), "weights", r"\(1, 3\)"),
    "add: NaN weights": (linear, lambda a: a.add_actions(weights=[[1.0, NAN]]), "weights", "nan"),
    "add: another number": (linear, lambda a: a.add_actions(2, weights=[[1.0, 2.0]]), "number", "2"),
    "add: ragged weights": (linear, lambda a: a.add_actions(weights=[[1.0], [1.0, 2.0]]), "weights", "1.0"),
    "add: a covariance that is shared": (
        linear,
        lambda a: a.add_actions(weights=[[1.0, 2.0]], covariance=EYE),
        "covariance",
        "array of shape",
    ),
    "add: none": (common, lambda a: a.add_actions(0), "number", "0"),
    "add: weights for nothing": (common, lambda a: a.add_actions(weights=[[1.0]]), "weights", "1.0"),
    "add: no covariance": (own, lambda a: a.add_actions(weights=[[1.0, 2.0]]), "covariance", "None"),
    "add: a bad covariance": (
        own,
        lambda a: a.add_actions(weights=[[1.0, 2.0]], covariance=-EYE),
        "covariance",
        "eigenvalue -1",
    ),
    "add: too many covariances": (
        own,
        lambda a: a.add_actions(weights=[[1.0, 2.0]], covariance=np.stack([EYE, EYE])),
        "covariance",
        "2 matrices",
    ),
}


@pytest.mark.parametrize(("make", "call", "argument", "value"), CALLS.values(), ids=CALLS.keys())
def test_an_agent_refuses_and_stays_as_it_was(
    make: Callable[[], Agent], call: Callable[[Agent], object], argument: str, value: str
) -> None:
    agent = make()
    before = fingerprint(agent)
    with pytest.raises(ma.errors.InvalidInput, match=f"^{argument}: expected .*, got .*{value}") as caught:
        call(agent)
    assert caught.value.argument == argument and caught.value.expected
    assert isinstance(caught.value, ValueError)
    assert fingerprint(agent) == before
    twin = make()
    batch = np.tile(X, (20, 1))
    assert (np.asarray(agent.decide(batch)) == np.asarray(twin.decide(batch))).all()


def test_unknown_actions_have_an_error_of_their_own() -> None:
    agent = linear()
    for call in (
        lambda: agent.observe(X, 6, 1.0),
        lambda: agent.reinstate(0),
        lambda: agent.decide(X, candidates=[0, 0]),
        lambda: agent.retire(5),
        lambda: agent.propensity(X, 99),
    ):
        with pytest.raises(ma.errors.UnknownAction):
            call()


SINGULAR = np.array([[1.0, 1.0], [1.0, 1.0]])
CROOKED = np.array([[1.0, 0.5], [0.0, 1.0]])

PRIORS: dict[str, tuple[Callable[[], object], str, str]] = {
    "no actions": (lambda: ma.ActionPrior(0, np.zeros(D), EYE), "actions", "0"),
    "actions not whole": (lambda: ma.ActionPrior(2.5, np.zeros(D), EYE), "actions", "2.5"),  # type: ignore[arg-type]
    "no dimensions": (lambda: ma.ActionPrior(3, np.zeros(0), np.zeros((0, 0))), "mean", r"\(0,\)"),
    "a mean that is a number": (lambda: ma.ActionPrior(3, 1.0, EYE), "mean", r"shape \(\)"),  # type: ignore[arg-type]
    "NaN mean": (lambda: ma.ActionPrior(3, [0.0, NAN], EYE), "mean", "nan"),  # type: ignore[arg-type]
    "means of other actions": (lambda: ma.ActionPrior(3, np.zeros((4, D)), EYE), "mean", r"\(4, 2\)"),
    "indefinite": (lambda: ma.ActionPrior(3, np.zeros(D), -EYE), "covariance", "eigenvalue -1"),
    "singular": (lambda: ma.ActionPrior(3, np.zeros(D), SINGULAR), "covariance", "eigenvalue"),
    "not symmetric": (lambda: ma.ActionPrior(3, np.zeros(D), CROOKED), "covariance", "not symmetric"),
    "not square": (lambda: ma.ActionPrior(3, np.zeros(D), np.ones((2, 3))), "covariance", r"\(2, 3\)"),
    "of another size": (lambda: ma.ActionPrior(3, np.zeros(D), np.eye(3)), "covariance", r"\(3, 3\)"),
    "NaN covariance": (lambda: ma.ActionPrior(3, np.zeros(D), NAN * EYE), "covariance", "nan"),
    "for other actions": (lambda: ma.ActionPrior(3, np.zeros(D), np.stack([EYE] * 2)), "covariance", "2 matrices"),
    "one of them indefinite": (
        lambda: ma.ActionPrior(2, np.zeros(D), np.stack([EYE, -EYE])),
        "covariance",
        "position 1 with smallest eigenvalue -1",
    ),
    "hierarchical: no actions": (lambda: ma.HierarchicalPrior(0, np.zeros(D), EYE, EYE), "actions", "0"),
    "hierarchical: a stack": (
        lambda: ma.HierarchicalPrior(2, np.zeros(D), np.stack([EYE] * 2), EYE),
        "covariance",
        r"\(2, 2, 2\)",
    ),
    "hierarchical: singular": (lambda: ma.HierarchicalPrior(2, np.zeros(D), EYE, SINGULAR), "action_covariance", ""),
    "mixed: no actions": (lambda: mixed(weights=np.zeros((0, L))), "weights", r"\(0, 2\)"),
    "mixed: no effects": (lambda: mixed(weights=np.zeros((K, 0))), "weights", r"\(6, 0\)"),
    "mixed: other effects": (lambda: mixed(effect_mean=np.zeros((3, D))), "effect_mean", r"\(3, 2\)"),
    "mixed: no dimensions": (lambda: mixed(effect_mean=np.zeros((L, 0))), "effect_mean", r"\(2, 0\)"),
    "mixed: a small covariance": (lambda: mixed(effect_covariance=EYE), "effect_covariance", r"\(2, 2\)"),
    "mixed: infinite weights": (lambda: mixed(weights=np.full((K, L), INF)), "weights", "inf"),
    "mixed: negative scale": (lambda: mixed().scaled(action_covariance=-1.0), "action_covariance", "-1"),
    "negative noise": (lambda: ma.Linear(-1.0), "noise", "-1"),
    "no noise": (lambda: ma.Linear(0.0), "noise", "0"),
    "NaN noise": (lambda: ma.Linear(NAN), "noise", "nan"),
    "noise without a square": (lambda: ma.Linear(1e-200), "noise", "1e-200"),
    "noise of words": (lambda: ma.Linear("loud"), "noise", "loud"),  # type: ignore[arg-type]
    "negative ridge": (lambda: ma.Logistic(-1.0, "mle"), "ridge", "-1"),
    "no ridge": (lambda: ma.beliefs.Poisson(0.0, "mle"), "ridge", "0"),
    "a ridge where the prior takes its place": (lambda: ma.Logistic(0.1), "ridge", "0.1"),
    "an unknown expansion": (lambda: ma.Logistic(expansion="median"), "expansion", "median"),
    "no expansion": (lambda: ma.Logistic(expansion=None), "expansion", "None"),  # type: ignore[arg-type]
    "epsilon above one": (lambda: ma.agents.EpsilonGreedy(1.5), "epsilon", "1.5"),
    "negative width": (lambda: ma.agents.UCB(-1.0), "width", "-1"),
    "NaN width": (lambda: ma.agents.Pessimistic(NAN), "width", "nan"),
    "a width for GLM-UCB": (lambda: ma.agents.GLMUCB(mixed(), width=-2.0), "width", "-2"),
    "a horizon of zero": (lambda: ma.LinUCB(mixed(), horizon=0), "horizon", "0"),
    "a context norm of zero": (lambda: ma.LinUCB(mixed(), context_norm=0.0), "context_norm", "0"),
    "another rule": (lambda: ma.meTS(mixed(), factored="both"), "factored", "both"),
    "meTS of another prior": (
        lambda: ma.meTS(ma.ActionPrior(3, np.zeros(D), EYE)),  # type: ignore[arg-type]
        "prior",
        "ActionPrior",
    ),
    "HierTS of no prior": (lambda: ma.HierTS(None), "prior", "None"),  # type: ignore[arg-type]
    "LinTS of no prior": (lambda: ma.LinTS("x"), "prior", "x"),  # type: ignore[arg-type]
    "UCB-GLM of no prior": (lambda: ma.agents.UCBGLM("x"), "prior", "x"),  # type: ignore[arg-type]
    "greedy of no prior": (lambda: ma.agents.GreedyAgent(3), "prior", "3"),  # type: ignore[arg-type]
    "noise in place of a likelihood": (lambda: ma.meTS(mixed(), 0.5), "likelihood", "0.5"),  # type: ignore[arg-type]
    "uniform over nothing": (lambda: ma.agents.UniformAgent(0, 2), "actions", "0"),
    "uniform without dimensions": (lambda: ma.agents.UniformAgent(2, 0), "dim", "0"),
    "a negative seed": (lambda: ma.LinTS(mixed(), seed=-1), "seed", "-1"),
    "a seed of words": (lambda: ma.LinTS(mixed(), seed="x"), "seed", "x"),  # type: ignore[arg-type]
    "a root of another length": (
        lambda: ma.beliefs.Belief(
            ma.beliefs.KnownRoot(np.zeros(3)), ma.beliefs.Leaves(ma.beliefs.IdentityMixing(), EYE, 4), ma.Linear()
        ),
        "root",
        "length 3",
    ),
    "leaves of unknown number": (lambda: ma.beliefs.Leaves(ma.beliefs.IdentityMixing(), EYE), "actions", "None"),
    "leaves of two numbers": (
        lambda: ma.beliefs.Leaves(ma.beliefs.MixingWeights(np.ones((3, 2))), np.stack([EYE] * 4)),
        "covariance",
        "4 rows",
    ),
    "matrices of another height": (
        lambda: ma.beliefs.Leaves(ma.beliefs.MixingMatrices(np.ones((3, 3, 1))), EYE),
        "matrices",
        "3 x 1",
    ),
    "effects that do not divide": (lambda: ma.beliefs.FactoredRoot(np.zeros(3), np.eye(3), 2), "effects", "2"),
}


@pytest.mark.parametrize(("make", "argument", "value"), PRIORS.values(), ids=PRIORS.keys())
def test_what_cannot_be_built_is_refused(make: Callable[[], object], argument: str, value: str) -> None:
    with pytest.raises(ma.errors.InvalidInput, match=f"^{argument}: expected .*, got .*{value}") as caught:
        make()
    assert caught.value.argument == argument


def test_messages_stay_short() -> None:
    """Even where a whole array came: its shape is told, not its content."""
    with pytest.raises(ma.errors.InvalidInput) as caught:
        linear().decide(np.ones((5, 9999)))
    assert len(str(caught.value)) < 200
    with pytest.raises(ma.errors.InvalidInput) as caught:
        linear().decide(X, candidates=["a long word"] * 1000)
    assert len(str(caught.value)) < 250


def test_priors_and_contexts_are_not_kept_by_reference() -> None:
    """What the caller does to his arrays afterwards changes no agent."""
    mean, covariance, weights = np.zeros(D), np.eye(D), np.ones((3, L))
    agents = [
        ma.LinTS(ma.ActionPrior(3, mean, covariance), seed=0),
        ma.HierTS(ma.HierarchicalPrior(3, mean, covariance, covariance), seed=0),
        ma.meTS(ma.MixedEffectPrior(weights, np.zeros((L, D)), np.eye(L * D), covariance), ma.Logistic(), seed=0),
    ]
    x, r = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([1.0, 0.0])
    for agent in agents:
        agent.observe(x, [0, 1], r)
    before = [fingerprint(agent) for agent in agents]
    for array in (mean, covariance, weights, x, r):
        array[...] = 7.0
    assert [fingerprint(agent) for agent in agents] == before


def test_a_likelihood_takes_its_whole_range() -> None:
    clicks().observe([X, X], [0, 1], [0, 1])
    clicks().observe(X, 0, True)
    counts().observe([X, X], [0, 1], [0, 12])
    linear().observe(X, 0, -3.5)


def test_lengths_that_need_not_be_equal_have_letters_of_their_own() -> None:
    with pytest.raises(ma.errors.InvalidInput, match=r"an array of shape \(n, m\), got"):
        mixed(weights=np.ones(3))
    with pytest.raises(ma.errors.InvalidInput, match=r"an array of shape \(n, m, k\), got"):
        ma.beliefs.MixingMatrices(np.ones((2, 2)))
    with pytest.raises(ma.errors.InvalidInput, match=r"an array of shape \(n, 2\), got"):
        linear().add_actions(weights=np.ones((1, 3)))
