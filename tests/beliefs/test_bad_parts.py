"""Beliefs refuse parts that do not go together, before anything is built of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import manyarms as ma
from manyarms import beliefs
from manyarms.errors import InvalidInput

EYE = np.eye(2)
CHAIN = ma.DiffusionPrior(4, 2, [np.tanh], [1.0, 1.0])
EFFECTS = ma.MixedEffectPrior.isotropic(np.ones((3, 2)), 2)


def leaves(mixing: object = None, dim: int = 2) -> beliefs.Leaves:
    return beliefs.Leaves(beliefs.IdentityMixing() if mixing is None else mixing, np.eye(dim), actions=3)


FACTORED = "^factored: expected False, True, 'mean-field' or 'blockwise', got "

BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no root": (lambda: beliefs.Belief(None, leaves(), ma.Linear()), "root"),
    "a root's class": (lambda: beliefs.Belief(beliefs.GaussianRoot, leaves(), ma.Linear()), "root"),
    "no leaves": (lambda: beliefs.Belief(beliefs.KnownRoot(np.zeros(2)), {}, ma.Linear()), "leaves"),
    "no mixing": (lambda: leaves(3), "mixing"),
    "a mixing's class": (lambda: leaves(beliefs.IdentityMixing), "mixing"),
    "more actions than rows": (
        lambda: beliefs.Leaves(beliefs.MixingWeights(np.ones((3, 2))), EYE, 2**62),
        "weights",
    ),
    "a chain of no prior": (lambda: beliefs.ChainRoot(len), "prior"),
    "a rule that is an array": (lambda: beliefs.ChainRoot(CHAIN, np.zeros(2)), "approximation"),
    "factored by an array": (lambda: beliefs.belief_of(EFFECTS, ma.Linear(), factored=np.zeros(2)), FACTORED),
    "factored by nothing": (lambda: ma.meTS(EFFECTS, factored=""), FACTORED),
    "factored by a number": (lambda: ma.meTS(EFFECTS, factored=5), FACTORED),
    "factored by another word": (lambda: ma.meTS(EFFECTS, factored="block"), FACTORED),
    "a prior that is a number": (lambda: ma.LinTS(5), r"such as ActionPrior\(K, mean, covariance\), got 5"),
    "chains with leaves of another length": (
        lambda: beliefs.IndependentChains(CHAIN, ma.Linear(), "thesis", leaves(dim=3)),
        "leaves",
    ),
    "a cloud behind a matrix": (
        lambda: beliefs.ParticleBelief(np.ones((4, 2)), leaves(beliefs.CommonMixing(2 * EYE)), ma.Linear()),
        "leaves",
    ),
    "a cloud beyond memory": (lambda: beliefs.ParticleBelief.of_prior(CHAIN, ma.Linear(), 10**13), "particles"),
    "contexts beyond memory": (lambda: ma.agents.UniformAgent(10, 10**9), "dim: expected at most"),
    "a horizon that is text": (lambda: ma.agents.UCBGLM(EFFECTS, width=1.0, horizon="a"), "horizon"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD)
def test_it_is_refused_by_name(call: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call()


def test_actions_that_cost_nothing_may_be_any_number() -> None:
    agent = ma.agents.UniformAgent(10**12, 3, seed=0)
    assert 0 <= agent.decide(np.ones(3)) < 10**12


def test_a_common_matrix_is_its_owners() -> None:
    given = EYE.copy()
    mixing = beliefs.CommonMixing(given)
    given[...] = 7.0
    assert np.array_equal(mixing.matrix, EYE)
