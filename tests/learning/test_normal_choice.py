"""Gaussian and mixed-logit probabilities in torch: the same numbers as in NumPy, with the gradients of what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from manyarms.estimators import IPS
from manyarms.learning import normal_choice
from manyarms.learning.loop import TrainingRun
from manyarms.learning.normal_choice import choice_probabilities, mixed_logit, monte_carlo_choice
from manyarms.learning.settings import TrainingSettings
from manyarms.logs.data import LoggedData
from manyarms.policies import normal_choice as in_numpy
from manyarms.policies.randomised import GaussianPolicy

DOUBLE = torch.float64


def scores(rows, actions, seed=0, spread=1.5, dtype=DOUBLE):
    return spread * torch.randn(rows, actions, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# ---- quadrature


@given(st.integers(1, 6), st.integers(2, 60), st.sampled_from([0.0, 0.5, 4.0, 50.0]), st.sampled_from([32, 64, 80]))
def test_the_same_numbers_as_in_numpy(rows, actions, spread, nodes):
    z = scores(rows, actions, spread=spread)
    gaps = z.numpy().max(axis=1, keepdims=True) - z.numpy()
    at, width = in_numpy.midpoints(*in_numpy.ends(in_numpy.gap_counts(gaps)), nodes)
    plain = in_numpy.masses(at, in_numpy.log_products(at, gaps) + np.log(width)[:, None], gaps)
    np.testing.assert_allclose(choice_probabilities(z, nodes).numpy(), plain, atol=1e-13)


@pytest.mark.parametrize("nodes", [32, 64])
def test_gradcheck(nodes):
    z = torch.cat([scores(4, 7), torch.zeros(1, 7, dtype=DOUBLE), torch.eye(7, dtype=DOUBLE)[:1] * 9]).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: choice_probabilities(z, nodes), (z,), atol=1e-8, rtol=1e-6)


def test_the_gradient_is_that_of_the_integral(rng):
    """By differences of an integral on a fixed fine grid, which knows nothing of nodes that move with the scores."""
    z, g = scores(3, 40, seed=5).numpy(), rng.standard_normal((3, 40))
    t, h = np.linspace(-15, 20, 3001, retstep=True)

    def value(z):
        x = t[:, None, None] - z
        logs = in_numpy.log_ndtr(x)
        p = np.exp(logs.sum(axis=2, keepdims=True) - logs - x**2 / 2).sum(axis=0) * h / np.sqrt(2 * np.pi)
        return (g * p).sum(axis=1)

    ours = torch.as_tensor(z).requires_grad_()
    (choice_probabilities(ours) * torch.as_tensor(g)).sum().backward()
    for a in range(0, 40, 7):
        step = np.zeros((3, 40))
        step[:, a] = 1e-5
        slope = (value(z + step) - value(z - step)) / 2e-5
        np.testing.assert_allclose(ours.grad[:, a].numpy(), slope, atol=1e-9)


def test_the_gradient_of_two_actions_has_a_closed_form():
    z = scores(50, 2, spread=3.0).requires_grad_()
    choice_probabilities(z)[:, 0].sum().backward()
    gap = (z[:, 0] - z[:, 1]).detach()
    density = torch.exp(-(gap**2) / 4) / np.sqrt(4 * np.pi)
    torch.testing.assert_close(z.grad, torch.stack([density, -density], dim=1), atol=1e-9, rtol=0)


@given(st.integers(2, 300), st.sampled_from([0.0, 1.0, 30.0]), st.sampled_from([torch.float32, DOUBLE]))
@settings(max_examples=25)
def test_sums_and_shifts(actions, spread, dtype):
    """Probabilities sum to 1; a shift of all scores changes nothing, so gradients sum to 0."""
    z = scores(3, actions, spread=spread, dtype=dtype).requires_grad_()
    p = choice_probabilities(z)
    exact = 1e-8 if dtype == DOUBLE else 2e-5
    assert (p >= 0).all() and (p.sum(dim=1) - 1).abs().max() <= exact
    (p * torch.linspace(-1, 1, actions, dtype=dtype)).sum().backward()
    assert torch.isfinite(z.grad).all()
    assert z.grad.sum(dim=1).abs().max() <= exact


def test_extreme_scores():
    for dtype in (torch.float32, DOUBLE):
        z = torch.tensor([[0.0, -40.0, -40.0], [40.0, 40.0, 0.0], [-1e8, 0.0, 1e8]], dtype=dtype).requires_grad_()
        p = choice_probabilities(z)
        wanted = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]], dtype=dtype)
        torch.testing.assert_close(p, wanted, atol=1e-6 if dtype == torch.float32 else 1e-10, rtol=0)
        p[:, 0].sum().backward()
        slope = 1 / np.sqrt(4 * np.pi)
        wanted = torch.tensor([[0, 0, 0], [slope, -slope, 0], [0, 0, 0]], dtype=dtype)
        torch.testing.assert_close(z.grad, wanted, atol=1e-5 if dtype == torch.float32 else 1e-8, rtol=0)


def test_float32_agrees_with_float64_to_rounding():
    for actions in (10, 3_000):
        results = []
        for dtype in (torch.float32, DOUBLE):
            z = scores(16, actions, dtype=DOUBLE).to(torch.float32).to(dtype).requires_grad_()
            p = choice_probabilities(z)
            (p * torch.linspace(-1, 1, actions, dtype=dtype)).sum().backward()
            results.append((p.detach().double(), z.grad.double()))
        for single, double in zip(*results, strict=True):
            torch.testing.assert_close(single, double, atol=3e-6, rtol=0)


def test_many_rows_and_actions_go_in_blocks(monkeypatch):
    z, g = scores(20, 30), scores(20, 30, seed=1)

    def run():
        at = z.clone().requires_grad_()
        p = choice_probabilities(at)
        (p * g).sum().backward()
        return p.detach(), at.grad

    whole = run()
    monkeypatch.setattr(normal_choice, "NUMBERS", 30 * 64 * 3)  # three rows at a time, and nothing kept
    for one, other in zip(whole, run(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-14, rtol=1e-12)


def test_ten_thousand_actions():
    z = scores(2, 10_000).requires_grad_()
    p = choice_probabilities(z)
    assert (p.sum(dim=1) - 1).abs().max() <= 1e-8
    p.amax(dim=1).sum().backward()
    assert torch.isfinite(z.grad).all() and z.grad.abs().max() > 0.01


# ---- the thesis's estimators


def test_monte_carlo_is_its_formula():
    z, draws = scores(3, 5), scores(1, 7, seed=2)[0]
    normal = torch.distributions.Normal(torch.tensor(0.0, dtype=DOUBLE), 1.0)
    factors = normal.cdf(draws[:, None, None, None] + z[:, :, None] - z[:, None, :])
    factors = factors.masked_fill(torch.eye(5, dtype=torch.bool), 1.0)
    torch.testing.assert_close(monte_carlo_choice(z, draws), factors.prod(dim=3).mean(dim=0), rtol=1e-12, atol=1e-15)


def test_monte_carlo_gradcheck(monkeypatch):
    z, draws = scores(3, 5).requires_grad_(), scores(1, 7, seed=2)[0]
    assert torch.autograd.gradcheck(lambda z: monte_carlo_choice(z, draws), (z,))
    monkeypatch.setattr(normal_choice, "NUMBERS", 160)  # two draws at a time
    assert torch.autograd.gradcheck(lambda z: monte_carlo_choice(z, draws), (z,))


@pytest.mark.parametrize("actions", [2, 10, 120])
def test_monte_carlo_is_unbiased_for_the_quadrature(actions):
    """Its mean over all eps is the quadrature, and 2,000 draws are within their standard error of it.

    The standard error is exact, by integration: at K = 120 rare actions win at draws that 2,000 of them seldom hold.
    """
    z, draws = scores(1, actions, spread=1.0), scores(1, 2_000, seed=9, spread=1.0)[0]
    eps = torch.linspace(-9, 9, 361, dtype=DOUBLE)
    law = 0.05 * torch.exp(-(eps**2) / 2) / np.sqrt(2 * np.pi)
    single = torch.cat([monte_carlo_choice(z, e[None]) for e in eps])
    truth = choice_probabilities(z)[0]
    torch.testing.assert_close(law @ single, truth, atol=1e-9, rtol=0)
    error = ((law @ single**2 - truth**2) / len(draws)).sqrt()
    assert ((monte_carlo_choice(z, draws)[0] - truth).abs() <= 4.5 * error).all()


def test_monte_carlo_does_not_underflow():
    """200 equal scores at a draw of -3: a product of 1e-574, which float32 cannot hold, and a finite gradient."""
    z = torch.zeros(1, 200, dtype=torch.float32).requires_grad_()
    p = monte_carlo_choice(z, torch.tensor([-3.0, 3.0]))
    torch.testing.assert_close(p, torch.full_like(p, 0.5 * 0.99865010**199), rtol=1e-4, atol=0)
    p[0, 0].backward()
    assert torch.isfinite(z.grad).all() and z.grad[0, 0] > 0 > z.grad[0, 1]


def test_mixed_logit_is_a_mean_of_softmaxes(monkeypatch):
    z, spread = scores(4, 6), torch.tensor([0.1, 1.0, 3.0, 0.0], dtype=DOUBLE)
    for noise in (scores(9, 6, seed=4), scores(9, 24, seed=4).reshape(9, 4, 6)):
        full = noise if noise.dim() == 3 else noise[:, None, :]
        truth = torch.softmax(z + spread[:, None] * full, dim=2).mean(dim=0)
        torch.testing.assert_close(mixed_logit(z, spread, noise), truth, rtol=1e-12, atol=0)
        inputs = (z.clone().requires_grad_(), spread.clone().requires_grad_())
        assert torch.autograd.gradcheck(lambda a, b, noise=noise: mixed_logit(a, b, noise), inputs)
        with monkeypatch.context() as patch:
            patch.setattr(normal_choice, "NUMBERS", 50)  # two draws at a time
            assert torch.autograd.gradcheck(lambda a, b, noise=noise: mixed_logit(a, b, noise), inputs)


def test_only_the_gradients_that_are_asked_for():
    """sigma may be held fixed: spread then wants none."""
    z = scores(4, 6).requires_grad_()
    mixed_logit(z, torch.ones(4, dtype=DOUBLE), scores(5, 6)).square().sum().backward()
    assert z.grad is not None and torch.isfinite(z.grad).all()


@pytest.mark.parametrize("nodes", [32, 48, 64, 96])
def test_learning_takes_the_nodes_of_its_policy(nodes):
    """What an objective sees in training is the policy that is learned, to the last node; the result keeps their number."""
    K = 2_000
    start, X, every = np.zeros((K, 1)), np.ones((2, 1)), np.tile(np.arange(K), (2, 1))
    start[0] = 4.0  # one action ahead of many, where few nodes are off by 1e-6
    log = LoggedData(X, [0, 1], [1.0, 1.0], K, [0.5, 0.5])
    policy = GaussianPolicy(start, nodes=nodes)
    run = TrainingRun(log, policy, IPS(), TrainingSettings(precision="fp64"), torch.device("cpu"))
    batch = run.window.batch(np.arange(2), 2, 0, np.random.default_rng(0))
    found = run.trainable.engine.forward(batch, run.window.request).probabilities.detach().numpy()
    np.testing.assert_allclose(found, policy.probabilities_of_many(X, every), atol=1e-11)
    assert run.trainable.policy().nodes == nodes
    if nodes == 32:
        assert np.abs(found - GaussianPolicy(start).probabilities_of_many(X, every)).max() > 1e-8
    marks = {run.checkpoints(GaussianPolicy(start, nodes=n), "folder", 60.0).mark for n in (32, 48, 64)}
    assert len(marks) == 3  # a run is not resumed with other nodes
