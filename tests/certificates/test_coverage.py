"""Every certificate covers the truth in at least 1 - delta of repeated logs, for fixed policies and for learned ones.

Coverage is necessary and not sufficient (loose bounds that do not hold cover too): the bounds' docstrings carry the arguments.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from manyarms import bounds
from manyarms.bounds import BOUNDS, Budget, Grid
from manyarms.bounds.log_smoothing import GainTerms
from manyarms.certificates import PolicyPrior, certify, improvement, summarise
from manyarms.certificates.families import families_of
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.theory import pac_bayes as theory
from manyarms.weights import ExponentialAlpha

RUNS, ROWS, DELTA = 200, 250, 0.2


def at_least(held, level, runs=RUNS):
    """Not refuted at 1e-4 by a binomial test."""
    return stats.binomtest(int(held), runs, level, alternative="less").pvalue > 1e-6


def ends(name, summary, kl, grid, rows=ROWS):
    """The best ends of a family over its grid, paid for."""
    (family,) = families_of(name, grid, rows)
    some, budget = family.bounds, Budget(DELTA, 2, family.points)
    return max(b.lower(summary, kl, budget).end for b in some), min(b.upper(summary, kl, budget).end for b in some)


def needs(names, grid):
    """What the bounds of some families read, and the gain."""
    some = [one for family in families_of(names, grid, ROWS) for one in family.bounds]
    return [*(s for one in some for s in one.statistics), *(GainTerms(s) for s in grid.smoothings)]


# a coarse grid keeps 200 logs within seconds; certificates pay for it as for any other
GRID = Grid(
    lambdas=(0.05, 0.2),
    alphas=(0.7, 1.0),
    taus=(0.1, 0.3),
    gammas=(0.03, 0.1),
    smoothings=(0.05, 0.2),
    strengths=(0.1,),
).resolved(ROWS)


@pytest.fixture(scope="module")
def fixed(world):
    """For each of 200 logs and each family the ends for a policy that was fixed beforehand."""
    policy = SoftmaxPolicy(world.start + np.random.default_rng(2).standard_normal(world.start.shape))
    statistics = needs(list(BOUNDS), GRID)
    rng = np.random.default_rng(11)
    found = {name: [] for name in (*BOUNDS, "gain", "direct")}
    direct = bounds.Unified(ExponentialAlpha(0.7), 0.2)
    unit = world.pi0**-0.7
    expectation = (world.table(policy) * world.pi0 * unit * world.means).sum(axis=1).mean()
    square = ((world.table(policy) * unit) ** 2 * world.pi0 * world.means).sum(axis=1).mean()
    for _ in range(RUNS):
        summary = summarise(policy, world.log(ROWS, rng), statistics)
        for name in BOUNDS:
            found[name].append(ends(name, summary, 0.0, GRID))
        found["gain"].append(max(bounds.Gain(s).lower(summary, 0.0, Budget(DELTA, 1, 2)).end for s in GRID.smoothings))
        width = theory.direct_bound_width(direct, summary, 0.0, DELTA, square)
        found["direct"].append(abs(summary.of(direct.correction).value - expectation) <= width)
    return world.value(policy), {name: np.array(rows) for name, rows in found.items()}


@pytest.mark.parametrize("name", BOUNDS)
def test_fixed_policies(fixed, name):
    truth, found = fixed
    low, high = found[name].T
    assert at_least(((low <= truth) & (truth <= high)).sum(), 1 - DELTA)


def test_gain_and_direct_bound(fixed, world):
    truth, found = fixed
    assert at_least((found["gain"] <= truth - world.logged_value).sum(), 1 - DELTA)
    assert at_least(found["direct"].sum(), 1 - DELTA)


@pytest.fixture(scope="module")
def learned_ends(world):
    """The same for the policy, of 40, that looks best on the log itself."""
    rng = np.random.default_rng(12)
    prior = PolicyPrior(world.start, 1.0)
    policies = [GaussianPolicy(world.start + 0.8 * rng.standard_normal(world.start.shape), 0.9) for _ in range(40)]
    tables, values = np.array([world.table(one) for one in policies]), np.array([world.value(one) for one in policies])
    divergences = [prior.divergence(one) for one in policies]
    names = [name for name in BOUNDS if name not in ("bernstein", "harmonic")]
    statistics = needs(names, GRID)
    key = {tuple(x): i for i, x in enumerate(world.contexts.tolist())}
    found = {name: [] for name in (*names, "gain")}
    truths = []
    for _ in range(RUNS):
        log = world.log(ROWS, rng)
        where = np.array([key[tuple(x)] for x in log.contexts.tolist()])
        best = int((tables[:, where, log.actions] * (log.rewards / log.propensities)).sum(axis=1).argmax())
        truths.append(values[best])
        summary = summarise(policies[best], log, statistics)
        for name in names:
            found[name].append(ends(name, summary, divergences[best], GRID))
        found["gain"].append(
            max(bounds.Gain(s).lower(summary, divergences[best], Budget(DELTA, 1, 2)).end for s in GRID.smoothings)
        )
    return np.array(truths), {name: np.array(rows) for name, rows in found.items()}


@pytest.mark.parametrize("name", [name for name in BOUNDS if name not in ("bernstein", "harmonic")])
def test_learned_policies(learned_ends, name):
    truths, found = learned_ends
    low, high = found[name].T
    assert at_least(((low <= truths) & (truths <= high)).sum(), 1 - DELTA)


def test_learned_gain(learned_ends, world):
    truths, found = learned_ends
    assert at_least((found["gain"] <= truths - world.logged_value).sum(), 1 - DELTA)


def test_the_fixed_policys_bounds_fail_for_learned_ones(world):
    """Why a prior is asked for: a policy chosen among many on the rows themselves, judged as if it had been fixed."""
    rng = np.random.default_rng(4)
    rows, many = 40, 4000
    shape = (many, *world.start.shape)
    scores = np.einsum("mld,xd->mxl", 6 * rng.standard_normal(shape), world.contexts)
    tables = np.exp(scores - scores.max(axis=2, keepdims=True))
    tables /= tables.sum(axis=2, keepdims=True)
    values = (tables * world.means).sum(axis=2).mean(axis=1)
    key = {tuple(x): i for i, x in enumerate(world.contexts.tolist())}
    held = 0
    for _ in range(RUNS):
        log = world.log(rows, rng)
        where = np.array([key[tuple(x)] for x in log.contexts.tolist()])
        w = tables[:, where, log.actions] / log.propensities
        smoothed = np.log1p(0.2 * w * log.rewards).mean(axis=1)
        lower = np.expm1(smoothed - np.log(1 / DELTA) / rows) / 0.2
        best = int(lower.argmax())
        held += lower[best] <= values[best]
    assert not at_least(held, 1 - DELTA)


def test_mixed_logit_certificates_cover_with_monte_carlo_paid(world):
    rng = np.random.default_rng(13)
    policy = MixedLogitPolicy(world.start + 0.5 * rng.standard_normal(world.start.shape), 0.7, draws=64)
    truth = world.value(MixedLogitPolicy(policy.actions, policy.sigma, draws=200_000, seed=9))
    prior = PolicyPrior(world.start, 1.0)
    runs, held, gained = 40, 0, 0
    for run in range(runs):
        log = world.log(ROWS, rng)
        options = {"prior": prior, "delta": DELTA, "grid": GRID, "draws": 256, "seed": 100 + run}
        held += truth in certify(policy, log, bound=("es", "ls", "sakhi-2"), **options)
        gained += improvement(policy, log, **options).lower <= truth - world.logged_value
    assert at_least(held, 1 - DELTA, runs) and at_least(gained, 1 - DELTA, runs)


def test_mass_that_is_never_logged_is_covered(new_world):
    world = new_world(3, never=True)
    rng = np.random.default_rng(14)
    policy = GaussianPolicy(world.start, 1.0)
    truth, prior = world.value(policy), PolicyPrior(world.start, 1.0)
    runs = 60
    held = sum(truth in certify(policy, world.log(ROWS, rng), prior=prior, delta=DELTA, grid=GRID) for _ in range(runs))
    assert at_least(held, 1 - DELTA, runs)
