"""BPR learns the log-ratio of what was rewarded and its negatives: log(pi0 r) with uniform ones, log r with draws from pi0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from dense_answers import dense_answers
from manyarms.errors import InvalidInput
from manyarms.estimators import BPR, FiniteProblem
from manyarms.learning import learn
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, SupportSoftmaxPolicy, TopSoftmaxPolicy

# pi0 in tenths, so that ten negatives a row can be pi0 itself; the last action is never played in the second context
LOGGING = np.array([[0.6, 0.1, 0.1, 0.2], [0.2, 0.7, 0.1, 0.0]])
REWARDS = np.array([[0.2, 0.9, 0.4, 0.6], [0.8, 0.1, 0.5, 0.7]])
PROBLEM = FiniteProblem(np.eye(2), np.array([0.5, 0.5]), LOGGING, REWARDS)
ROUNDS, K = 200, 4


def centred(scores: np.ndarray) -> np.ndarray:
    """Up to a constant for each context, over the actions that are played there."""
    kept = np.where(LOGGING > 0, scores, np.nan)
    return kept - np.nanmean(kept, axis=1, keepdims=True)


def wanted(negatives: str) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return centred(np.log(REWARDS if negatives == "logging" else LOGGING * REWARDS))


@pytest.mark.parametrize("negatives", ["uniform", "logging"])
def test_the_best_scores_are_the_log_ratio(negatives: str) -> None:
    """On a log, and with negatives, in which everything happens as often as its probability says; no draw is involved."""
    log, every = PROBLEM.log(ROUNDS), np.arange(K)
    context = log.contexts.argmax(axis=1)
    tables = {
        "uniform": np.tile(every, (2, 1)),
        "logging": [np.repeat(every, np.rint(10 * p).astype(int)) for p in LOGGING],
    }
    drawn = np.array(tables[negatives])[context]
    objective = BPR(drawn.shape[1], negatives)
    request = objective.prepare(log)
    assert request.negatives == drawn.shape[1] and (request.draw is not None) == (negatives == "logging")
    scores = torch.zeros((2, K), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [scores], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        at = scores[context]
        value = -objective.value(*dense_answers(request, log, at.log_softmax(1), scores=at, negatives=drawn))
        value.backward()
        return value

    optimiser.step(loss)
    found = scores.detach().numpy()
    seen = ~np.isnan(wanted(negatives))
    np.testing.assert_allclose(centred(found)[seen], wanted(negatives)[seen], atol=1e-4)
    if negatives == "logging":
        assert found[1, 3] == 0.0  # never played: neither rewarded nor a negative, and left where it began
    else:
        assert found[1, 3] < found[1, :3].min() - 1  # a negative alone: driven down without end
    masses = np.exp(centred(found))
    np.testing.assert_allclose(
        objective.oracle(PROBLEM)[seen], (masses / np.nansum(masses, axis=1, keepdims=True))[seen], atol=1e-4
    )


def test_the_two_rank_differently() -> None:
    """The often shown first action of the first context leads with uniform negatives, and is last by what it earns."""
    assert np.argmax(wanted("uniform")[0]) == 0 and np.argmin(wanted("logging")[0]) == 0


@pytest.mark.parametrize("source", ["policy", "support", "restricted policy"])
def test_negatives_have_the_law_of_pi0_at_their_row(source: str) -> None:
    rng, rows, count = np.random.default_rng(0), 4_000, 3
    X = np.eye(2)[rng.integers(2, size=rows)]
    logging = SoftmaxPolicy(np.log(np.maximum(LOGGING, 1e-3)).T)
    if source == "restricted policy":
        logging = TopSoftmaxPolicy(np.log(np.maximum(LOGGING, 1e-3)).T, 2)
    actions = logging.sample(X, rng)
    every = np.tile(np.arange(K), (rows, 1))
    p = logging.probabilities_of_many(X, every)
    log = LoggedData(X, actions, np.ones(rows), K, logging.probabilities_of(X, actions), logging=logging)
    if source == "support":
        turned = every[:, ::-1].copy()
        log = replace(log, logging=None, support=turned, support_probabilities=p[:, ::-1].copy())
    request = BPR(count, "logging").prepare(log)
    index = np.flatnonzero(rng.random(rows) < 0.9)
    drawn = request.drawn(index, K, np.random.default_rng(1))
    assert drawn.shape == (len(index), count)
    part = request.rows(index).drawn(np.arange(len(index)), K, np.random.default_rng(1))
    np.testing.assert_array_equal(part, drawn)
    for context in range(2):
        here = X[index, context] == 1
        seen = np.bincount(drawn[here].ravel(), minlength=K)
        expected = p[index][here][0] * seen.sum()
        assert (seen[expected == 0] == 0).all()
        played = expected > 0
        assert stats.chisquare(seen[played], expected[played] * seen.sum() / expected[played].sum()).pvalue > 1e-6
        together = np.zeros((K, K))  # the negatives of a row are independent of each other
        np.add.at(together, (drawn[here, 0], drawn[here, 1]), 1)
        both = together[played][:, played]
        assert stats.chi2_contingency(both[both.sum(1) > 0][:, both.sum(0) > 0] + 1e-9).pvalue > 1e-6


def test_learning_finds_what_earns_and_not_what_was_shown() -> None:
    """Draws and steps are random: within 0.5, where log r and log(pi0 r) are 1.5 apart."""
    log = PROBLEM.log(4_000)
    start = SoftmaxPolicy(np.zeros((K, 2)))
    for negatives in ("uniform", "logging"):
        made = learn(
            log, start, BPR(4, negatives), epochs=30, batch=500, learning_rate=0.1, schedule="linear", device="cpu",
            precision="fp64",
        ).policy  # fmt: skip
        gap = np.abs(centred(np.asarray(made.actions).T) - wanted(negatives))
        other = np.abs(centred(np.asarray(made.actions).T) - wanted("uniform" if negatives == "logging" else "logging"))
        assert np.nanmax(gap) < 0.5 and np.nanmax(other) > 1.0


def test_a_restricted_support_has_negatives_of_its_own() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((9, 3))
    logging, X = TopSoftmaxPolicy(vectors, 3), rng.standard_normal((200, 3))
    actions = logging.sample(X, rng)
    log = LoggedData(X, actions, np.ones(200), 9, logging.probabilities_of(X, actions), logging=logging)
    learn(log, SupportSoftmaxPolicy(vectors, logging), BPR(2, "logging"), epochs=1, device="cpu")


def test_what_cannot_tell_pi0_is_refused() -> None:
    log = replace(PROBLEM.log(ROUNDS), support=None, support_probabilities=None)
    BPR(2).prepare(log)
    with pytest.raises(InvalidInput, match="propensities of the logged actions only"):
        BPR(2, "logging").prepare(log)
    assert BPR(2).label != BPR(2, "logging").label  # a checkpoint of the one is none of the other
