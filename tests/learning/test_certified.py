"""Learning by a bound gives a certificate, and the certificate rests on rows that the prior has not seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyarms.certificates import PolicyPrior, certify
from manyarms.errors import InvalidInput
from manyarms.estimators import ES, IPS, PACBayes, cIPS
from manyarms.learning import TorchEncoder, learn
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.encoders import Layers, Projection
from manyarms.policies.randomised import GaussianPolicy

K, D = 4, 3
TASTE = np.random.default_rng(1).normal(size=(K, D)) * 3


def a_log(rows: int, seed: int) -> LoggedData:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, D))
    logging = SoftmaxPolicy(TASTE / 6)
    actions = logging.sample(X, rng)
    rewards = (rng.random(rows) < np.where(actions == (X @ TASTE.T).argmax(1), 0.9, 0.1)).astype(float)
    return LoggedData(X, actions, rewards, K, logging.probabilities_of(X, actions), logging=logging)


def test_a_bound_gives_a_certificate_that_covers() -> None:
    log, start = a_log(4000, 0), GaussianPolicy(TASTE / 6)
    result = learn(log, start, PACBayes(ES("adaptive"), delta=0.1), epochs=4, learning_rate=0.05, device="cpu",
                   prior_learned_from=a_log(200, 1))  # fmt: skip
    X = a_log(4000, 2).contexts
    right = result.policy.probabilities_of(X, (X @ TASTE.T).argmax(1))
    truth = float(np.mean(0.1 + 0.8 * right))
    certificate = result.certificate
    assert certificate is not None and certificate.delta == 0.1
    assert certificate.lower <= truth <= certificate.upper
    assert certificate.lower > log.rewards.mean()  # and it is of use
    assert certificate.kl == pytest.approx(result.policy.kl(start.actions, 1.0))


def test_no_certificate_unless_there_is_a_bound_and_it_is_wanted() -> None:
    log = a_log(300, 0)
    assert learn(log, SoftmaxPolicy(TASTE), IPS(), epochs=1, device="cpu").certificate is None
    start, objective = GaussianPolicy(TASTE), PACBayes(cIPS(0.1), bound="london")
    assert learn(log, start, objective, epochs=1, device="cpu", certified=False).certificate is None


def test_the_prior_must_not_have_seen_the_rows() -> None:
    log = a_log(300, 0)
    with pytest.raises(InvalidInput, match="prior_learned_from"):
        learn(
            log,
            GaussianPolicy(TASTE),
            PACBayes(ES(0.9)),
            epochs=1,
            device="cpu",
            prior_learned_from=log.rows(slice(0, 10)),
        )


def test_an_encoder_may_not_learn_from_the_rows_of_a_bound() -> None:
    policy = GaussianPolicy(TASTE, encoder=Projection(np.eye(D)))
    with pytest.raises(InvalidInput, match="encoder learns"):
        learn(a_log(300, 0), policy, PACBayes(ES(0.9)), epochs=1, device="cpu")
    learn(a_log(300, 0), policy, PACBayes(ES(0.9)), epochs=1, device="cpu", train="actions")


def an_encoder(kind: str) -> Projection | Layers | TorchEncoder:
    W = np.random.default_rng(4).normal(size=(D, D))  # numbers that float32 does not hold
    if kind == "torch":
        return TorchEncoder(torch.nn.Sequential(torch.nn.Linear(D, D), torch.nn.BatchNorm1d(D)), D, D)
    return Projection(W) if kind == "projection" else Layers([W, W.T], [W[0], W[1]], "tanh")


@pytest.mark.parametrize("kind", ["projection", "layers", "torch"])
def test_an_encoder_that_does_not_learn_stays_what_it_is(kind) -> None:
    """The prior and the learned policy have one encoder, and the certificate counts the actions' parameters alone."""
    encoder = an_encoder(kind)
    start = GaussianPolicy(TASTE / 6, encoder=encoder)
    result = learn(a_log(300, 0), start, PACBayes(ES(0.9)), epochs=1, device="cpu", train="actions")
    assert result.certificate is not None
    assert result.certificate.kl == pytest.approx(result.policy.kl(start.actions, 1.0))
    if isinstance(encoder, TorchEncoder):
        before, after = encoder.module.state_dict(), result.policy.encoder.module.state_dict()
        assert all(torch.equal(before[name], after[name]) for name in before)
    else:
        assert result.policy.encoder is encoder


def test_the_heuristic_of_the_authors_yields_no_certificate() -> None:
    """The policy is worth one by the bounds there are; the heuristic is refused wherever one is asked for by it."""
    log, start = a_log(500, 0), GaussianPolicy(np.zeros((K, D)))
    objective = PACBayes(ES(0.9), lam="authors")
    result = learn(log, start, objective, epochs=1, learning_rate=0.05, device="cpu")
    assert result.certificate is None and "no certificate" in " ".join(result.notes)
    assert "es-authors" in result.objective and "bound of" not in result.objective
    prior = PolicyPrior.of(start)
    assert certify(result.policy, log, prior=prior).lower >= 0
    for declared in ("es-authors", objective, ("ls", "es-authors")):
        with pytest.raises(InvalidInput, match="'es-authors'"):
            certify(result.policy, log, prior=prior, bound=declared)
    same = learn(log, start, PACBayes(ES(0.9)), epochs=1, learning_rate=0.05, device="cpu")
    assert same.certificate is not None and not same.notes
