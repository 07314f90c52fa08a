"""What theory cannot be asked: refused by name; limits where quotients vanish; nothing infinite or NaN comes out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from manyarms import theory
from manyarms.errors import InvalidInput
from manyarms.theory.regret import learning_cost, power

CHAIN = {"T": 100, "K": 10, "d": 4, "sigma": 1.0, "sigmas": [1.0, 0.5, 0.25]}
REGRET = {
    "T": 100,
    "K": 10,
    "L": 2,
    "d": 4,
    "sigma": 1.0,
    "sigma0": 1.0,
    "sigma_psi": 1.0,
    "kappa_x": 1.0,
    "kappa_b": 1.0,
}
EXPLICIT = {"K": 10, "n": 100, "d": 4, "coverage": [0.1], "sigma": 1.0, "sigma0": 1.0, "tau": 1.0, "g": 0.1}


@pytest.mark.parametrize(
    ("function", "usual", "changed"),
    [
        (theory.dts_regret_bound, CHAIN, {"sigmas": "abc"}),
        (theory.dts_regret_bound, CHAIN, {"sigmas": np.ma.array([1.0, 0.5], mask=[True, False])}),
        (theory.dts_regret_bound, CHAIN, {"sigmas": [1.0, math.nan]}),
        (theory.dts_regret_bound, CHAIN, {"sigmas": (s for s in (1.0, 0.5))}),
        (theory.dts_regret_bound, CHAIN, {"active": [4]}),
        (theory.dts_regret_bound, CHAIN, {"active": [0, 1]}),
        (theory.dts_regret_bound, CHAIN, {"active": [4, 5]}),
        (theory.dts_regret_bound, CHAIN, {"active": [1.5, 2.0]}),
        (theory.dts_regret_bound, CHAIN, {"gains": [1.0, -1.0]}),
        (theory.dts_regret_bound, CHAIN, {"gains": [1.0]}),
        (theory.dts_regret_bound, CHAIN, {"tight": np.array([True, False])}),
        (theory.dts_regret_bound, CHAIN, {"first": np.array(["printed", "corrected"])}),
        (theory.mets_regret_bound, REGRET, {"sigma": 10**400}),
        (theory.mets_regret_bound, REGRET, {"T": 10**400}),
        (theory.mets_regret_bound, REGRET, {"delta": 5e-324}),
        (theory.sdm_explicit_bound, EXPLICIT, {"d": 0}),
        (theory.sdm_explicit_bound, EXPLICIT, {"n": 2.5}),
        (theory.sdm_explicit_bound, EXPLICIT, {"coverage": [[0.1]]}),
        (theory.sdm_explicit_bound, EXPLICIT, {"tight": "yes"}),
    ],
)
def test_refused_by_name(function, usual, changed):
    function(**usual)
    with pytest.raises(InvalidInput, match=next(iter(changed))):
        function(**{**usual, **changed})


@pytest.mark.parametrize("prior", [None, "prior", np.eye(2), theory])
def test_no_prior(prior):
    for bound in (theory.mets_regret_bound_of, theory.dts_regret_bound_of):
        with pytest.raises(InvalidInput, match="prior"):
            bound(prior, 10, sigma=1.0, kappa_x=1.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.dts_regret_bound(100, 10, 4, 1e-90, [1e90] * 5),
        lambda: theory.dts_effective_actions(10, [1e90] * 5, 1e-90),
        lambda: theory.dts_rates(100, 10, 4, [1e90] * 5, sigma=1e-90),
        lambda: theory.mets_regret_bound(**{**REGRET, "sigma0": 1e99, "kappa_x": 1e99, "sigma_psi": 1e99}),
        lambda: theory.mets_rates(10, 10, 2, 4, 1e99, 1e99),
        lambda: theory.mets_effective_actions(10, 2, 1e99, 1e99),
        lambda: theory.sdm_explicit_bound(**{**EXPLICIT, "tau": 1e99, "kappa_x": 1e99, "kappa_w": 1e99}),
    ],
)
def test_a_bound_beyond_all_numbers_is_refused(call):
    with pytest.raises(InvalidInput, match="overflow"):
        call()


def test_the_cost_of_learning_next_to_nothing():
    """v / log(1 + v / s) tends to s as v falls, also where v / s is no longer a number above 0."""
    for variance in (1e-10, 1e-100, 1e-300, 5e-324, 0.0):
        for noise in (1e-6, 1.0, 1e6):
            assert learning_cost(variance, noise) == pytest.approx(noise, rel=1e-3)
    assert learning_cost(1e-200, 1e200) == 1e200


def test_powers():
    assert power(3.0, 4) == 81.0
    assert power(1e200, 2) == math.inf


def test_an_amount_of_rows_for_any_gap():
    assert theory.uniform_logging_rows(math.inf, 10, 0.5, 1.0, 0.05) == 1
    for bad in (math.nan, -math.inf, "2", 10**400):
        with pytest.raises(InvalidInput, match="gap"):
            theory.uniform_logging_rows(bad, 10, 0.5, 1.0, 0.05)
