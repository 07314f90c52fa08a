"""A log that lists pi0 of all that may be played is as good as one with the policy itself: values, gradients, certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from manyarms.errors import InvalidInput
from manyarms.estimators import ES, IPS, IX, Heuristic, Objective, PACBayes, cIPS
from manyarms.learning import learn
from manyarms.learning.loop import TrainingRun
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import Policy, SoftmaxPolicy, TopSoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.weights import Harmonic

K, D, ROWS, DELTA = 7, 3, 600, 0.1
VECTORS = np.random.default_rng(1).standard_normal((K, D))
START = np.random.default_rng(2).standard_normal((K, D))
SGD = TrainingSettings(optimiser="sgd", precision="fp64")


def logs(logging: Policy, listed: int) -> tuple[LoggedData, LoggedData]:
    """The same rounds with the policy that wrote them, and with what it could have played, in any order."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, D))
    actions = logging.sample(X, rng)
    rewards = (rng.random(ROWS) < np.where(actions == (X @ VECTORS.T).argmax(1), 0.9, 0.2)).astype(float)
    told = LoggedData(X, actions, rewards, K, logging.probabilities_of(X, actions), logging=logging)
    everything = np.argsort(rng.random((ROWS, K)), axis=1)
    p = logging.probabilities_of_many(X, everything)
    if listed < K:  # the most probable first, which are all that it plays
        order = np.argsort(-p, axis=1)[:, :listed]
        everything, p = np.take_along_axis(everything, order, axis=1), np.take_along_axis(p, order, axis=1)
    return told, replace(told, logging=None, support=everything, support_probabilities=p)


WRITERS: dict[str, tuple[Policy, int]] = {
    "plays everything": (SoftmaxPolicy(VECTORS / 2), K),
    "plays three": (TopSoftmaxPolicy(VECTORS, 3), 3),
    "plays three, lists five": (TopSoftmaxPolicy(VECTORS, 3), 5),
}
OBJECTIVES: dict[str, Objective] = {
    "es": PACBayes(ES(0.8), DELTA),
    "es-adaptive": PACBayes(ES("adaptive"), DELTA),
    "es-lambda": PACBayes(ES(0.8), DELTA, lam=0.1),
    "ips": PACBayes(IPS(), DELTA),
    "clip": PACBayes(cIPS(0.1), DELTA),
    "ix": PACBayes(IX(0.1), DELTA),
    "sakhi-2": PACBayes(cIPS(0.1), DELTA, "sakhi-2"),
    "any-lambda": PACBayes(ES(0.8), DELTA, "any-lambda"),
    "heuristic": Heuristic(ES(0.8), variance=0.1, bias=0.1),
    "general": PACBayes(IPS(Harmonic(0.2)), DELTA, "general"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_step_is_the_one_with_the_policy(name: str, writer: str) -> None:
    """In float64, where sums in another order differ by 1e-15 of numbers below 100: values and both gradients."""
    found = []
    policy: GaussianPolicy | MixedLogitPolicy = GaussianPolicy(START, 0.8)
    if name == "general":
        policy = MixedLogitPolicy(START, 0.8, draws=8)
    for log in logs(*WRITERS[writer]):
        run = TrainingRun(log, policy, OBJECTIVES[name], SGD, torch.device("cpu"))
        before = run.trainable.parameters()
        value = float(run.step_on(np.arange(50, 200), rate=1.0))
        after = run.trainable.parameters()
        found.append((value, before["beta"] - after["beta"], before["log_sigma"] - after["log_sigma"]))
    with_policy, listed = found
    assert listed[0] == pytest.approx(with_policy[0], rel=1e-10)
    assert np.abs(with_policy[1]).max() > 1e-4
    np.testing.assert_allclose(listed[1], with_policy[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(listed[2], with_policy[2], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["es-adaptive", "sakhi-2"])
def test_policy_and_certificate_are_those_with_the_policy(name: str, writer: str) -> None:
    made = [
        learn(log, GaussianPolicy(0.1 * START), OBJECTIVES[name], epochs=2, batch=128, learning_rate=0.05, device="cpu",
              precision="fp64")
        for log in logs(*WRITERS[writer])
    ]  # fmt: skip
    with_policy, listed = made
    np.testing.assert_allclose(listed.policy.actions, with_policy.policy.actions, rtol=1e-6, atol=1e-8)
    assert with_policy.certificate is not None and listed.certificate is not None
    assert [one.family for one in listed.certificate.candidates] == ["es", "ls"]
    for ours, theirs in zip(listed.certificate.candidates, with_policy.certificate.candidates, strict=True):
        assert (ours.lower, ours.upper) == pytest.approx((theirs.lower, theirs.upper), rel=1e-6)


def test_lists_that_leave_something_out_are_refused() -> None:
    _, log = logs(*WRITERS["plays everything"])
    assert log.support is not None and log.support_probabilities is not None
    most = np.argsort(-log.support_probabilities, axis=1)[:, :4]
    short = replace(
        log, support=np.take_along_axis(log.support, most, axis=1),
        support_probabilities=np.take_along_axis(log.support_probabilities, most, axis=1),
    )  # fmt: skip
    for name in ("es", "sakhi-2", "heuristic"):
        with pytest.raises(InvalidInput, match="listed support has probability 0"):
            learn(short, GaussianPolicy(START), OBJECTIVES[name], device="cpu")
    only = replace(log, support=None, support_probabilities=None)
    with pytest.raises(InvalidInput, match="propensities of the logged actions only"):
        learn(only, GaussianPolicy(START), OBJECTIVES["es"], device="cpu")
