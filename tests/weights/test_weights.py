"""Importance-weight corrections against their formulas, and what bounds and biases rely on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyarms import weights
from manyarms.errors import InvalidInput
from manyarms.weights import (
    ClipPropensities,
    ClipWeights,
    ExponentialAlpha,
    ExponentialBeta,
    Harmonic,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
    Shrinkage,
)

# a correction, its formula as the thesis prints it, and the parameter that gives IPS
TABLE = [
    (NoCorrection(), lambda p, q, r: p / q, NoCorrection()),
    (ClipPropensities(0.05), lambda p, q, r: p / max(q, 0.05), ClipPropensities(0.0)),
    (ClipWeights(3.0), lambda p, q, r: min(p / q, 3.0), ClipWeights(math.inf)),
    (ExponentialAlpha(0.7), lambda p, q, r: p / q**0.7, ExponentialAlpha(1.0)),
    (ExponentialBeta(0.7), lambda p, q, r: (p / q) ** 0.7, ExponentialBeta(1.0)),
    (ImplicitExploration(0.03), lambda p, q, r: p / (q + 0.03), ImplicitExploration(0.0)),
    (Harmonic(0.2), lambda p, q, r: (p / q) / (0.8 + 0.2 * p / q), Harmonic(0.0)),
    (Shrinkage(9.0), lambda p, q, r: 9 * (p / q) / (9 + (p / q) ** 2), Shrinkage(math.inf)),
    (LogSmoothing(0.4), lambda p, q, r: math.log(1 + 0.4 * p / q * r) / (0.4 * r), LogSmoothing(0.0)),
    (LinearLogSmoothing(0.4), lambda p, q, r: p / 0.4 * math.log(1 + 0.4 * r / q) / r, LinearLogSmoothing(0.0)),
]
ids = [row[0].name for row in TABLE]
CORRECTIONS = [row[0] for row in TABLE]
TYPES = {kind: name for name, kind in weights.CORRECTIONS.items()}

probability = st.floats(1e-6, 1.0)


@pytest.mark.parametrize(("correction", "formula", "plain"), TABLE, ids=ids)
def test_weights_are_their_formula(correction, formula, plain, rng):
    pi, pi0, r = rng.uniform(0, 1, 200), rng.uniform(1e-3, 1, 200), rng.uniform(0.01, 1, 200)
    wanted = np.array([formula(*row) for row in zip(pi, pi0, r, strict=True)])
    np.testing.assert_allclose(correction.weight(pi, pi0, r), wanted, rtol=1e-12)
    np.testing.assert_allclose(correction.terms(pi, pi0, r), wanted * r, rtol=1e-12)
    np.testing.assert_allclose(plain.weight(pi, pi0, r), pi / pi0, rtol=1e-12)
    assert plain.is_none and (correction.is_none == (correction.name == "ips"))


@pytest.mark.parametrize("correction", CORRECTIONS, ids=ids)
@given(pi=st.floats(0, 1), pi0=probability, reward=st.floats(0, 1))
def test_bounds_and_signs_hold_everywhere(correction, pi, pi0, reward):
    p, q, r = np.array([pi]), np.array([pi0]), np.array([reward])
    term = correction.terms(p, q, r)[0]
    assert 0 <= term < math.inf
    if correction.never_above:
        assert term <= pi / pi0 * reward * (1 + 1e-12) + 1e-300
    for floor in (0.0, pi0, pi0 / 2):
        bound = correction.bound(floor)
        if bound is not None:
            assert term <= bound * (1 + 1e-12) + 1e-300
    np.testing.assert_allclose(
        correction.effective_policy(p, q), q * correction.terms(p, q, np.ones(1)), rtol=1e-12, atol=1e-300
    )
    assert correction.effective_policy(p, np.zeros(1))[0] == 0  # what is never played is never counted
    # what is lost is largest at a reward of 1
    assert pi * reward - pi0 * term <= pi - correction.effective_policy(p, q)[0] + 1e-12 or not correction.never_above


@pytest.mark.parametrize("correction", CORRECTIONS, ids=ids)
def test_what_is_kept_of_a_policy_sums_to_at_most_one(correction, rng):
    """The span of bias terms rests on it: for w^beta by Hoelder's inequality, for the harmonic mean by that of means."""
    for concentration in (0.05, 1.0, 20.0):
        pi, pi0 = rng.dirichlet(np.full(30, concentration), 50), rng.dirichlet(np.full(30, concentration), 50)
        assert (correction.effective_policy(pi, pi0).sum(axis=1) <= 1 + 1e-9).all()


@pytest.mark.parametrize("correction", CORRECTIONS, ids=ids)
def test_linear_in_the_policy_as_stated(correction, rng):
    pi, pi0, r = rng.uniform(0.1, 0.5, 50), rng.uniform(0.01, 1, 50), rng.uniform(0.1, 1, 50)
    linear = np.allclose(correction.terms(2 * pi, pi0, r), 2 * correction.terms(pi, pi0, r), rtol=1e-9)
    assert linear == correction.linear_in_policy


def test_a_bound_is_reached_where_it_can_be():
    one, floor = np.ones(1), np.full(1, 0.01)
    for correction in CORRECTIONS:
        if correction.name != "shrinkage":  # whose largest weight lies elsewhere
            np.testing.assert_allclose(correction.bound(0.01), correction.weight(one, floor, one)[0], rtol=1e-12)
    largest = Shrinkage(9.0).weight(one, np.array([1 / 3]))
    np.testing.assert_allclose(Shrinkage(9.0).bound(), largest[0])
    assert NoCorrection().bound() is None and LogSmoothing(0.1).bound() is None


def test_log_smoothing_without_reward_is_its_limit():
    pi, pi0 = np.array([0.3, 0.2]), np.array([0.1, 0.4])
    np.testing.assert_allclose(LogSmoothing(0.5).weight(pi, pi0, np.zeros(2)), pi / pi0)
    with pytest.raises(InvalidInput, match="reward"):
        LogSmoothing(0.5).weight(pi, pi0)


def test_linear_form_is_below_log_smoothing(rng):
    pi, pi0, r = rng.uniform(0, 1, 100), rng.uniform(0.01, 1, 100), rng.uniform(0, 1, 100)
    assert (LinearLogSmoothing(0.3).terms(pi, pi0, r) <= LogSmoothing(0.3).terms(pi, pi0, r) + 1e-15).all()


@pytest.mark.parametrize("correction", CORRECTIONS, ids=ids)
def test_torch_tensors_work_and_have_gradients(correction):
    torch = pytest.importorskip("torch")
    pi = torch.tensor([0.5, 0.01, 0.2], dtype=torch.float64, requires_grad=True)
    pi0 = torch.tensor([0.02, 0.3, 0.2], dtype=torch.float64)
    r = torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64)
    terms = correction.terms(pi, pi0, r)
    wanted = correction.terms(pi.detach().numpy(), pi0.numpy(), r.numpy())
    np.testing.assert_allclose(terms.detach().numpy(), wanted, rtol=1e-12)
    terms.sum().backward()
    assert bool(torch.isfinite(pi.grad).all())


def test_names_rules_and_grids():
    assert [one.name for one in CORRECTIONS] == [TYPES[type(one)] for one in CORRECTIONS]
    assert set(weights.CORRECTIONS) == {one.name for one in CORRECTIONS}
    assert weights.CORRECTIONS["es"].make(rows=10_000).settings["alpha"] == pytest.approx(0.9)
    assert weights.CORRECTIONS["ips-max"] is ClipPropensities
    for name, kind in weights.CORRECTIONS.items():
        assert kind.name == name and kind.summary
        if kind.parameter is None:
            with pytest.raises(InvalidInput, match="parameter"):
                kind.make(0.1)
            continue
        assert kind.parameter in kind.rule.words
        assert kind.make(rows=10_000) == kind(kind.rule.default(10_000))
        grid = kind.rule.grid(1000)
        assert len(set(grid)) == len(grid) and all(kind.make(p).settings == {kind.parameter: p} for p in grid)
        with pytest.raises(InvalidInput, match=kind.parameter):
            kind.make()


def test_logarithms_of_weights(rng):
    log_pi, pi0 = np.log(rng.uniform(0, 1, 50)), rng.uniform(1e-3, 1, 50)
    for correction in CORRECTIONS:
        if not correction.depends_on_reward:
            wanted = np.log(correction.weight(np.exp(log_pi), pi0))
            np.testing.assert_allclose(correction.log_weight(log_pi, pi0), wanted, rtol=1e-10, atol=1e-12)
        r = rng.uniform(0.1, 1, 50)
        wanted = correction.terms(np.exp(log_pi), pi0, r)
        np.testing.assert_allclose(correction.terms_from_log(log_pi, pi0, r), wanted, rtol=1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClipPropensities(1.5),
        lambda: ClipWeights(0.0),
        lambda: ExponentialAlpha(-0.1),
        lambda: ExponentialBeta(2.0),
        lambda: ImplicitExploration(-1.0),
        lambda: Harmonic(1.1),
        lambda: Shrinkage(math.nan),
        lambda: LogSmoothing(-0.1),
    ],
)
def test_parameters_outside_their_range_are_refused(make):
    with pytest.raises(InvalidInput):
        make()
