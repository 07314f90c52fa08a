"""On finite problems the stated best policies are the best: objectives are maximised in the mean over all logs.

A log in which everything happens as often as its probability says turns an objective into its own mean.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from dense_answers import dense_answers
from manyarms.errors import InvalidInput
from manyarms.estimators import (
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    PWLL,
    SNIPS,
    ESBeta,
    FiniteProblem,
    OffCEM,
    RegKL,
    RegKLLinear,
    cIPS,
    cLPI,
)  # fmt: skip
from manyarms.policies import TwoStagePolicy
from manyarms.rewards.linear import LinearModel
from manyarms.weights import ClipWeights

NX, K, TENTHS, FIFTHS = 3, 5, 10, 5
ROUNDS = 4 * TENTHS * FIFTHS


def problem_of(seed, *, everywhere=False):
    """Three contexts (a table: one-hot), five actions, some never played."""
    rng = np.random.default_rng(seed)
    least = int(everywhere)
    logging = (least + rng.multinomial(TENTHS - least * K, np.full(K, 1 / K), size=NX)) / TENTHS
    rewards = rng.integers(0, FIFTHS + 1, size=(NX, K)) / FIFTHS
    problem = FiniteProblem(np.eye(NX), np.array([0.25, 0.25, 0.5]), logging, rewards)
    return problem, LinearModel(rng.random((K, NX))), np.array([0, 0, 1, 1, 2]), rng.standard_normal((K, 2))


def mean_value(objective, problem):
    """The objective's mean over all logs, as a function of log pi (NX, K)."""
    log = problem.log(ROUNDS)
    rows = objective.prepare(log).computed(len(log))
    at = log.contexts.argmax(axis=1)
    return lambda log_pi: objective.value(*dense_answers(rows, log, log_pi[at]))


def logs(policy):
    return torch.as_tensor(policy).log()


LINEAR = {
    "ips": lambda model, labels, near: IPS(),
    "cips": lambda model, labels, near: cIPS(0.2),
    "es": lambda model, labels, near: ES(0.6),
    "ix": lambda model, labels, near: IX(0.2),
    "ls": lambda model, labels, near: LS(0.7),
    "dm": lambda model, labels, near: DM(model),
    "dr": lambda model, labels, near: DR(model),
    "dr, clipped": lambda model, labels, near: DR(model, tau=0.3),
    "mips": lambda model, labels, near: MIPS(labels),
    "offcem": lambda model, labels, near: OffCEM(labels, model),
    "pc, k": lambda model, labels, near: PC(near, k=2),  # the second nearest: being near is not mutual
    "pc, radius": lambda model, labels, near: PC(near, radius=1.2),
    "regkl-lin": lambda model, labels, near: RegKLLinear(0.5),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LINEAR)
def test_the_oracle_of_a_linear_objective_beats_every_policy(name, seed):
    """A linear function has its maximum at a corner, so that the best of all deterministic policies is the best of all."""
    problem, model, labels, near = problem_of(seed)
    objective = LINEAR[name](model, labels, near)
    value, oracle = mean_value(objective, problem), objective.oracle(problem)
    np.testing.assert_allclose(oracle.sum(axis=1), 1, atol=1e-12)
    best = value(logs(oracle)).item()
    corners = [np.eye(K)[list(choice)] for choice in itertools.product(range(K), repeat=NX)]
    values = np.array([value(logs(corner)).item() for corner in corners])
    np.testing.assert_allclose(best, values.max(), rtol=1e-10)
    winners = [corner for corner, v in zip(corners, values, strict=True) if v > values.max() - 1e-9]
    if len(winners) == 1:
        np.testing.assert_array_equal(oracle, winners[0])
    # all that the oracle plays is played by some winner
    assert (oracle[np.all([w == 0 for w in winners], axis=0)] == 0).all()
    inside = np.random.default_rng(seed).dirichlet(np.ones(K), size=(20, NX))
    assert all(value(logs(policy)).item() <= best + 1e-12 for policy in inside)


def ascent(value):
    """The best table of softmax scores, by LBFGS."""
    scores = torch.zeros((NX, K), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([scores], max_iter=300, tolerance_grad=1e-10, tolerance_change=0.0,
                                  history_size=30, line_search_fn="strong_wolfe")  # fmt: skip

    def closure():
        optimiser.zero_grad()
        loss = -value(scores.log_softmax(1))
        loss.backward()
        return loss

    optimiser.step(closure)
    return scores.detach().softmax(1).numpy()


SMOOTH = {
    "lpi": LPI,
    "clpi": lambda: cLPI(0.2),
    "es-lpi": lambda: ESLPI(0.6),
    "regkl": lambda: RegKL(0.5),
    "pwll": lambda: PWLL(lambda r, p: (1 + r) / (0.1 + p)),
    "es-beta": lambda: ESBeta(0.5),
    "es-beta, steep": lambda: ESBeta(0.9),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SMOOTH)
def test_ascent_reaches_the_oracle_of_a_smooth_objective(name, seed):
    problem, *_ = problem_of(seed)
    objective = SMOOTH[name]()
    value, oracle = mean_value(objective, problem), objective.oracle(problem)
    reached = ascent(value)
    # what has no probability is approached and never reached, and the slower the flatter the objective is there
    np.testing.assert_allclose(reached, oracle, atol=1e-2)
    floor = torch.as_tensor(np.maximum(oracle, 1e-300)).log()  # 0 log 0 counts as 0
    assert -1e-9 <= value(floor).item() - value(logs(reached)).item() < 1e-3


def test_a_zero_weight_everywhere_leaves_the_uniform_policy():
    problem = FiniteProblem(np.eye(1), np.ones(1), np.array([[0.5, 0.5]]), np.zeros((1, 2)))
    np.testing.assert_array_equal(LPI().oracle(problem), [[0.5, 0.5]])


@pytest.mark.parametrize("seed", range(4))
def test_two_stages_contain_the_oracle_of_offcem(seed):
    """POTEC: the best cluster, and its best action by the model, is OffCEM's best policy (thesis, Appendix D.1.1)."""
    problem, model, labels, _ = problem_of(seed)
    objective = OffCEM(labels, model)
    value, oracle = mean_value(objective, problem), objective.oracle(problem)
    policy = TwoStagePolicy(np.zeros((3, NX)), labels, model.parameters)
    ids, predicted = policy.best_actions(problem.contexts)
    np.testing.assert_allclose(predicted, np.take_along_axis(problem.contexts @ model.parameters.T, ids, 1), rtol=1e-12)
    choices = [ids[np.arange(NX), list(choice)] for choice in itertools.product(range(3), repeat=NX)]
    values = [value(logs(np.eye(K)[choice])).item() for choice in choices]
    np.testing.assert_array_equal(np.eye(K)[choices[int(np.argmax(values))]], oracle)


def test_snips_is_ips_where_everything_is_played():
    problem, *_ = problem_of(3, everywhere=True)
    oracle = SNIPS().oracle(problem)
    np.testing.assert_array_equal(oracle, IPS().oracle(problem))
    value = mean_value(SNIPS(), problem)
    policies = np.random.default_rng(0).dirichlet(np.full(K, 0.2), size=(200, NX))
    assert all(value(logs(policy)).item() <= value(logs(oracle)).item() + 1e-12 for policy in policies)
    partial, *_ = problem_of(0)
    assert partial.logging.min() == 0
    with pytest.raises(InvalidInput, match="never played"):
        SNIPS().oracle(partial)


def test_the_objectives_own_clusters_and_model_give_way_to_the_problems():
    problem, model, labels, near = problem_of(1)
    other = np.array([0, 1, 0, 1, 1])
    near_table = np.eye(K, dtype=bool)
    told = FiniteProblem(
        problem.contexts, problem.context_probabilities, problem.logging, problem.rewards,
        model=model.block(problem.contexts, np.arange(K)), labels=other, neighbours=near_table,
    )  # fmt: skip
    np.testing.assert_array_equal(MIPS(labels).oracle(told), MIPS(other).oracle(problem))
    np.testing.assert_array_equal(PC(near, k=3).oracle(told), IPS().oracle(problem))
    wrong = LinearModel(1 - model.parameters)
    np.testing.assert_array_equal(DM(wrong).oracle(told), DM(model).oracle(problem))


def test_no_closed_form_is_said_and_problems_are_checked():
    problem, *_ = problem_of(0)
    for objective in (IPS(ClipWeights(2.0)), LS(0.5, linear=False)):
        with pytest.raises(InvalidInput, match="closed form"):
            objective.oracle(problem)
    with pytest.raises(InvalidInput, match="an integer"):
        problem.log(37)
    eye, one = np.eye(1), np.ones(1)
    for what, make in {
        "rewards": lambda: FiniteProblem(eye, one, np.array([[1.0, 0.0]]), np.array([[2.0, 0.0]])),
        "logging": lambda: FiniteProblem(eye, one, np.array([[0.7, 0.0]]), np.zeros((1, 2))),
        "context_probabilities": lambda: FiniteProblem(eye, one / 2, np.array([[1.0, 0.0]]), np.zeros((1, 2))),
        "labels": lambda: FiniteProblem(eye, one, np.array([[1.0, 0.0]]), np.zeros((1, 2)), labels=np.zeros(3, int)),
        "neighbours": lambda: FiniteProblem(eye, one, np.array([[1.0, 0.0]]), np.zeros((1, 2)), neighbours=np.eye(3)),
    }.items():
        with pytest.raises(InvalidInput, match=what):
            make()
