"""Pessimistic objectives against their formulas written out, and what must be true of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from manyarms.bounds import Averages, Summary, Unified
from manyarms.errors import InvalidInput
from manyarms.estimators import ES, IPS, IX, LS, SNIPS, Answers, Batch, Heuristic, PACBayes, cIPS
from manyarms.estimators.pessimism import ALPHAS, batch_summary
from manyarms.learning import learn
from manyarms.learning.loop import TrainingRun
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy, gaussian_kl
from manyarms.weights import ClipPropensities, ExponentialAlpha, Harmonic, ImplicitExploration

B, K, D, N, DELTA = 12, 5, 3, 400.0, 0.1


def moments(correction, terms, batch, mixture=True):
    """V_hat, B and Var of a batch."""
    found = batch_summary((correction,), terms, batch, mixture=mixture).of(correction)
    return found.value, found.bias + found.overshoot, found.second_moment


def width(correction, kl, bias, variance, lam):
    summary = Summary(int(N), 0.0, {correction: Averages(0.0, 0.0, 0.0, variance, bias)})
    return Unified(correction, lam).width(summary, kl, DELTA)


@pytest.fixture
def made(rng):
    """Terms and a batch of random probabilities, with an action that the logging policy never plays."""
    pi, pi0 = rng.dirichlet(np.ones(K), B), rng.dirichlet(np.ones(K), B)
    pi0[:, 3] = 0.0
    pi0 /= pi0.sum(axis=1, keepdims=True)
    actions = np.array([rng.choice(K, p=row) for row in pi0])
    at = np.arange(B)
    rewards = (rng.random(B) < 0.6).astype(float)
    terms = Answers(torch.tensor(np.log(pi[at, actions]))[:, None])
    terms.probabilities, terms.divergence = torch.tensor(pi), torch.tensor(2.5, dtype=torch.float64)
    columns = {"reward": rewards, "propensity": pi0[at, actions], "rounds": np.full(B, N)}
    batch = Batch({name: torch.tensor(column) for name, column in columns.items()}, B, torch.tensor(pi0))
    return pi, pi0, actions, rewards, terms, batch


@pytest.mark.parametrize(
    ("correction", "h"),
    [
        (ExponentialAlpha(0.7), lambda p: p**0.7),
        (ExponentialAlpha(1.0), lambda p: p),
        (ClipPropensities(0.2), lambda p: max(p, 0.2)),
        (ImplicitExploration(0.1), lambda p: p + 0.1),
    ],
    ids=lambda c: getattr(c, "name", ""),
)
def test_one_implementation_gives_es_clip_and_ix(made, correction, h) -> None:
    """Sums over rows and actions in plain Python (thesis, Section 8.6.1)."""
    pi, pi0, actions, rewards, terms, batch = made
    value = bias = variance = 0.0
    for i in range(B):
        p, own = pi0[i, actions[i]], pi[i, actions[i]]
        value += own / h(p) * rewards[i] / B
        bias += (1 - sum(pi0[i, a] * pi[i, a] / h(pi0[i, a]) for a in range(K) if pi0[i, a] > 0)) / B
        variance += sum(pi0[i, a] * pi[i, a] / h(pi0[i, a]) ** 2 for a in range(K) if pi0[i, a] > 0) / B
        variance += own * rewards[i] ** 2 / h(p) ** 2 / B
    found = [float(x) for x in moments(correction, terms, batch)]
    np.testing.assert_allclose(found, [value, bias, variance], rtol=1e-10)
    kl, lam = 2.5, 0.3
    by_hand = math.sqrt((kl + math.log(4 * math.sqrt(N) / DELTA)) / (2 * N)) + bias
    by_hand += (kl + math.log(4 / DELTA)) / (N * lam) + lam / 2 * variance
    got = width(correction, terms.divergence, torch.tensor(bias), torch.tensor(variance), lam)
    assert float(got) == pytest.approx(by_hand, rel=1e-10)


def test_alpha_one_is_plain_ips_and_bias_and_variance_move_as_stated(made) -> None:
    *_, terms, batch = made
    alphas = np.linspace(0, 1, 11)
    found = np.array([[float(b), float(v)] for _, b, v in (moments(ExponentialAlpha(a), terms, batch) for a in alphas)])
    bias, variance = found[:, 0], found[:, 1]
    assert (np.diff(bias) <= 1e-12).all() and (np.diff(variance) >= -1e-12).all()
    pi = terms.probabilities
    assert bias[-1] == pytest.approx(float((pi * (batch.logging == 0)).sum(1).mean()))  # only what is never played
    plain = PACBayes(IPS(), DELTA).value(terms, batch)
    assert float(PACBayes(ES(1.0), DELTA).value(terms, batch)) == pytest.approx(float(plain))


def test_the_best_lambda_is_the_best(made) -> None:
    *_, terms, batch = made
    best = float(PACBayes(ES(0.7), DELTA).value(terms, batch))
    found = [float(PACBayes(ES(0.7), DELTA, lam=lam).value(terms, batch)) for lam in np.geomspace(1e-3, 10, 400)]
    assert max(found) <= best + 1e-12
    assert max(found) == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("estimate", [ES(0.7), cIPS(0.1), IX(0.1)], ids=lambda e: e.name)
def test_the_lambda_of_the_authors_by_hand(made, estimate) -> None:
    """V_hat - c - B - kl2 / (n l) - l/2 Var at l = 2 sqrt(kl2 Var / n), which is sqrt(2) Var times lambda*; a constant."""
    *_, terms, batch = made
    pi = terms.probabilities.requires_grad_()
    terms.log_probability = pi.gather(1, torch.tensor(made[2])[:, None]).log()
    terms.divergence = torch.tensor(2.5, dtype=torch.float64, requires_grad=True)
    objective = PACBayes(estimate, DELTA, lam="authors")
    found = objective.value(terms, batch)
    value, bias, variance = (one.detach() for one in moments(estimate.correction, terms, batch))
    kl2 = 2.5 + math.log(4 / DELTA)
    lam, best = 2 * math.sqrt(kl2 * float(variance) / N), math.sqrt(2 * kl2 / (N * float(variance)))
    assert lam == pytest.approx(math.sqrt(2) * float(variance) * best)
    fixed = PACBayes(estimate, DELTA, lam=lam)
    contexts = math.sqrt((2.5 + math.log(4 * math.sqrt(N) / DELTA)) / (2 * N))
    by_hand = float(value) - contexts - float(bias) - kl2 / (N * lam) - lam / 2 * float(variance)
    assert float(found.detach()) == pytest.approx(by_hand, rel=1e-10)
    assert float(found.detach()) <= float(PACBayes(estimate, DELTA).value(terms, batch).detach())
    leaves = [pi, terms.divergence]
    for ours, theirs in zip(torch.autograd.grad(found, leaves, retain_graph=True),
                            torch.autograd.grad(fixed.value(terms, batch), leaves), strict=True):  # fmt: skip
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-10)


def test_adaptive_alpha_is_the_best_of_its_grid(made) -> None:
    *_, terms, batch = made
    adaptive = PACBayes(ES("adaptive"), DELTA)
    costs = {}
    for alpha in ALPHAS:
        _, bias, variance = moments(ExponentialAlpha(alpha), terms, batch)
        costs[alpha] = float(width(ExponentialAlpha(alpha), terms.divergence, bias, variance, None))
    best = min(costs, key=costs.get)
    assert float(adaptive.value(terms, batch)) == pytest.approx(float(PACBayes(ES(best), DELTA).value(terms, batch)))


@pytest.mark.parametrize("bound", ["unified", "london", "sakhi1", "sakhi2", "ls"])
def test_a_larger_divergence_loosens_every_bound_and_the_bound_is_below_the_estimate(made, bound) -> None:
    *_, terms, batch = made
    inner = LS(0.1) if bound == "ls" else cIPS(0.1)
    objective = PACBayes(inner, DELTA, bound=bound)
    values = []
    for kl in (0.0, 1.0, 5.0, 30.0):
        terms.divergence = torch.tensor(kl, dtype=torch.float64)
        values.append(float(objective.value(terms, batch)))
    assert (np.diff(values) < 0).all()
    columns = batch.columns
    terms_of = inner.correction.terms(terms.log_probability[:, 0].exp(), columns["propensity"], columns["reward"])
    estimate = float(terms_of.mean())
    assert values[0] < estimate


def test_bounds_of_the_literature_by_hand(made) -> None:
    """Thesis, Appendix E.3.3, with the sign of Sakhi et al. 1 put right; LS by its own derivation."""
    pi, pi0, actions, rewards, terms, batch = made
    at, tau, kl = np.arange(B), 0.1, 2.5
    estimate = float(np.mean(pi[at, actions] / np.maximum(pi0[at, actions], tau) * rewards))
    cost = (kl + math.log(N / DELTA)) / (tau * (N - 1))
    london = estimate - math.sqrt(2 * (1 / tau - estimate) * cost) - 2 * cost
    assert float(PACBayes(cIPS(tau), DELTA, "london").value(terms, batch)) == pytest.approx(london)
    lam = 0.4
    price = (kl + math.log(2 * math.sqrt(N) / DELTA)) / N
    sakhi1 = -(1 - math.exp(tau * lam * estimate - price)) / (tau * (math.exp(lam) - 1))
    assert float(PACBayes(cIPS(tau), DELTA, "sakhi1", lam=lam).value(terms, batch)) == pytest.approx(sakhi1)
    lam = 30.0
    u = lam / (tau * N)
    variance = float(np.mean((pi * pi0 / np.maximum(pi0, tau) ** 2).sum(1)))
    sakhi2 = (
        estimate - math.sqrt((kl + math.log(4 * math.sqrt(N) / DELTA)) / (2 * N)) - (kl + math.log(200 / DELTA)) / lam
    )
    sakhi2 -= lam / N * (math.exp(u) - 1 - u) / u**2 * variance
    assert float(PACBayes(cIPS(tau), DELTA, "sakhi2", lam=lam).value(terms, batch)) == pytest.approx(sakhi2)
    l = 0.2
    smooth = float(np.mean(pi[at, actions] / l * np.log1p(l * rewards / pi0[at, actions])))
    ls = (math.exp(l * smooth - (kl + math.log(1 / DELTA)) / N) - 1) / l
    assert float(PACBayes(LS(l), DELTA).value(terms, batch)) == pytest.approx(ls)


def a_log(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, D))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    logging = SoftmaxPolicy(np.random.default_rng(1).normal(size=(K, D)))
    actions = logging.sample(X, rng)
    rewards = (rng.random(rows) < np.where(actions == X.argmax(1), 0.9, 0.2)).astype(float)
    return LoggedData(X, actions, rewards, K, logging.probabilities_of(X, actions), logging=logging)


def test_a_step_follows_the_dense_gradient_of_bound_and_heuristic() -> None:
    """mu and log sigma against torch's own gradient of the whole expression, KL included."""
    log, index = a_log(), np.arange(40)
    start = np.random.default_rng(2).normal(size=(K, D))
    settings = TrainingSettings(optimiser="sgd", precision="fp64")
    for objective in (PACBayes(ES(0.8), DELTA), PACBayes(cIPS(0.1), DELTA, "sakhi1")):
        run = TrainingRun(log, GaussianPolicy(start, 0.8), objective, settings, torch.device("cpu"))
        run.trainable.engine.log_sigma.beta += 0.3  # away from the prior
        mu = torch.tensor(start, requires_grad=True)
        log_sigma = torch.tensor(math.log(0.8) + 0.3, dtype=torch.float64, requires_grad=True)
        x = torch.tensor(log.contexts[index])
        z = x @ mu.T / log_sigma.exp()
        t = torch.linspace(-12, 12, 4001, dtype=torch.float64)
        gaps = t[:, None, None] - z[None]
        logs = torch.special.log_ndtr(gaps)
        density = torch.exp(-(gaps**2) / 2) / math.sqrt(2 * math.pi)
        pi = (density * (logs.sum(-1, keepdim=True) - logs).exp()).sum(0) * (t[1] - t[0])
        terms = Answers(pi.log().gather(1, torch.tensor(log.actions[index])[:, None]))
        terms.probabilities = pi
        ratio = 2 * (log_sigma - math.log(0.8))
        terms.divergence = ((mu - torch.tensor(start)) ** 2).sum() / (2 * 0.64) + K * D / 2 * (ratio.exp() - 1 - ratio)
        columns = {name: torch.tensor(column[index]) for name, column in run.asked.columns.items()}
        pi0 = torch.softmax(x @ torch.tensor(log.logging.actions).T, 1)
        value = objective.value(terms, Batch(columns, 40, pi0))
        for_mu, for_sigma = torch.autograd.grad(-value, [mu, log_sigma])
        before = run.trainable.parameters()
        got = run.step_on(index, rate=1.0)
        after = run.trainable.parameters()
        assert float(got) == pytest.approx(float(value.detach()), abs=1e-7)
        np.testing.assert_allclose(before["beta"] - after["beta"], for_mu.numpy(), atol=1e-6)
        assert float((before["log_sigma"] - after["log_sigma"])[0, 0]) == pytest.approx(float(for_sigma), abs=1e-6)


def test_the_divergence_is_the_exact_gaussian_one() -> None:
    log, start = a_log(), np.random.default_rng(2).normal(size=(K, D))
    run = TrainingRun(
        log, GaussianPolicy(start, 0.8), PACBayes(ES(0.8)), TrainingSettings(precision="fp64"), torch.device("cpu")
    )
    engine = run.trainable.engine
    engine.table.beta += 0.1
    engine.log_sigma.beta -= 0.5
    terms = engine.forward(run.window.batch(np.arange(4), 4, 0, np.random.default_rng(0)), run.window.request)
    sigma = 0.8 * math.exp(-0.5)
    assert float(terms.divergence.detach()) == pytest.approx(gaussian_kl(start + 0.1, sigma, start, 0.8))


@pytest.mark.parametrize("draws", [False, True])
def test_bias_counts_what_is_too_much_as_well_as_what_is_too_little(made, draws) -> None:
    """Harmonic weights are above w for some actions: |pi - pi0 w_hat|, and squares of w_hat (thesis, Section 8.6.1)."""
    pi, pi0, actions, rewards, terms, batch = made
    w = np.where(pi0 > 0, pi / (0.6 * pi0 + 0.4 * pi), 0.0)
    gap = pi - pi0 * w
    assert gap.min() < 0 < gap.max()
    own = w[np.arange(B), actions] * rewards
    if draws:  # the same policy twice
        terms.draws = terms.probabilities[None].expand(2, -1, -1)
        terms.own_draws = terms.log_probability[:, 0].exp()[None].expand(2, -1)
    value, bias, variance = (float(one) for one in moments(Harmonic(0.4), terms, batch, mixture=False))
    assert value == pytest.approx(own.mean())
    assert bias == pytest.approx(np.abs(gap).sum(axis=1).mean())
    assert variance == pytest.approx(((pi0 * w**2).sum(axis=1) + own**2).mean())


@pytest.mark.slow
def test_learning_by_the_bound_improves_on_the_prior_and_resumes(tmp_path) -> None:
    log, start = a_log(3000), 0.1 * np.random.default_rng(2).normal(size=(K, D))
    X = a_log(500, seed=5).contexts
    right = X.argmax(1)
    for policy in (GaussianPolicy(start, 1.0), MixedLogitPolicy(start, 1.0, draws=64)):
        settings = {"epochs": 3, "batch": 128, "learning_rate": 0.05, "device": "cpu"}
        result = learn(log, policy, PACBayes(ES("adaptive")), **settings)
        assert result.policy.probabilities_of(X, right).mean() > policy.probabilities_of(X, right).mean() + 0.1
        assert result.policy.sigma < 1.0
        again = learn(log, policy, PACBayes(ES("adaptive")), folder=tmp_path / type(policy).__name__, **settings)
        np.testing.assert_array_equal(again.policy.actions, result.policy.actions)
    result = learn(log, SoftmaxPolicy(start), Heuristic(ES(0.9)), **settings)
    assert result.policy.probabilities_of(X, right).mean() > 0.3


def test_bad_input() -> None:
    for make, message in (
        (lambda: PACBayes(ES(0.5), delta=1.5), "delta"),
        (lambda: PACBayes(ES(0.5), bound="best"), "bound"),
        (lambda: PACBayes(ES(0.5), bound="london"), "cIPS"),
        (lambda: PACBayes(cIPS(0.0), bound="sakhi1"), "cIPS"),
        (lambda: PACBayes(IPS(Harmonic(0.2))), "general"),
        (lambda: PACBayes(IX(0.1), bound="ls"), "LS"),
        (lambda: PACBayes(SNIPS()), "IPS family"),
        (lambda: PACBayes(IPS("es")), "alpha, a number"),
        (lambda: PACBayes(ES(0.5), lam="best"), "'authors'"),
        (lambda: PACBayes(LS(0.1), lam="authors"), "unified bound"),
        (lambda: PACBayes(cIPS(0.1), bound="sakhi-2", lam="authors"), "unified bound"),
        (lambda: PACBayes(ES(0.5), bound=Unified(ExponentialAlpha(0.5), 0.1), lam="authors"), "unified bound"),
        (lambda: ES("often"), "adaptive"),
        (lambda: ES("adaptive").prepare(a_log()), "PACBayes"),
        (lambda: Heuristic(ES(0.5), variance=-1.0), "variance"),
        (lambda: Heuristic(ES("adaptive")), "PACBayes"),
    ):
        with pytest.raises(InvalidInput, match=message):
            make()
    log = a_log()
    bare = LoggedData(log.contexts, log.actions, log.rewards, K, log.propensities)
    start = GaussianPolicy(np.zeros((K, D)))
    with pytest.raises(InvalidInput, match="logging"):
        learn(bare, start, PACBayes(ES(0.5)), device="cpu")
    learn(bare, start, PACBayes(cIPS(0.1), bound="london"), epochs=1, device="cpu")  # needs the logged ones alone
    with pytest.raises(InvalidInput, match="distribution of parameters"):
        learn(log, SoftmaxPolicy(np.zeros((K, D))), PACBayes(ES(0.5)), device="cpu")
    with pytest.raises(InvalidInput, match="MixedLogit"):
        learn(log, start, PACBayes(IPS(Harmonic(0.2)), bound="general"), device="cpu")
