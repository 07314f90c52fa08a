"""What may be called a certificate, what is refused and why, and what a user is told."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import manyarms as ma
from manyarms import bounds
from manyarms.bounds import Budget, Grid
from manyarms.certificates import Certificate, PolicyPrior, certify, improvement, rows_needed, summarise
from manyarms.certificates.certificate import Improvement
from manyarms.certificates.text import as_data
from manyarms.errors import Contradiction, InvalidInput
from manyarms.evaluation import evaluate
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies import EpsilonMixture, Projection, SoftmaxPolicy
from manyarms.policies.randomised import GaussianPolicy, MixedLogitPolicy
from manyarms.weights import ClipPropensities, ExponentialAlpha

KL_PRIOR = 1.0


@pytest.fixture
def log(world, rng):
    return world.log(2000, rng, event_ids=[f"event {i}" for i in range(2000)])


@pytest.fixture
def prior(world):
    return PolicyPrior(world.start, KL_PRIOR)


def test_a_certificate_is_the_best_of_what_was_declared_and_paid_for(log, learned, prior):
    made = certify(learned, log, prior=prior, delta=0.1, bound="es", grid=Grid(lambdas=(0.02, 0.1), alphas=(0.6, 0.9)))
    kl = prior.divergence(learned)
    points = [bounds.Unified(ExponentialAlpha(a), l) for a in (0.6, 0.9) for l in (0.02, 0.1)]
    summary = summarise(learned, log, [ExponentialAlpha(0.6), ExponentialAlpha(0.9)])
    budget = Budget(0.1, 2, 4)
    assert made.kl == kl and made.rows == 2000
    assert made.lower == pytest.approx(max(one.lower(summary, kl, budget).end for one in points), abs=1e-5)
    assert made.upper == pytest.approx(min(1.0, *(one.upper(summary, kl, budget).end for one in points)), abs=1e-5)
    assert made.lower < max(one.lower(summary, kl, Budget(0.1)).end for one in points)
    assert made.candidates[0].lower == pytest.approx(made.value - sum(made.terms.values()))
    assert made.grid == {"lambdas": (0.02, 0.1), "alphas": (0.6, 0.9)}
    lower_only = certify(learned, log, prior=prior, delta=0.1, bound="ls", two_sided=False)
    assert (
        lower_only.upper == 1.0 and lower_only.lower > certify(learned, log, prior=prior, delta=0.1, bound="ls").lower
    )
    both = certify(learned, log, prior=prior)
    assert [one.family for one in both.candidates] == ["es", "ls"]
    assert both.lower == max(one.lower for one in both.candidates)
    assert both.upper == min(1.0, *(one.upper for one in both.candidates))


def test_only_certify_makes_certificates(log, learned, prior):
    made = certify(learned, log, prior=prior)
    with pytest.raises(InvalidInput, match="constructed directly"):
        replace(made, lower=1.0, token=None)
    with pytest.raises(InvalidInput, match="constructed directly"):
        Certificate(0, 1, 0.5, {}, "", 0.05, {}, 0.0, 1, 2, 0.0, 1.0, True, False, (), ())
    with pytest.raises(InvalidInput, match="constructed directly"):
        Improvement(1.0, 1.0, 0.0, 0.05, 0.1, 10, None, ())


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_delta(log, learned, prior, delta):
    with pytest.raises(InvalidInput, match="delta"):
        certify(learned, log, prior=prior, delta=delta)
    with pytest.raises(InvalidInput, match="delta"):
        improvement(learned, log, prior=prior, delta=delta)


def test_parameters_out_of_range():
    for options in (
        {"alphas": (1.2,)}, {"alphas": (-0.1,)}, {"taus": (0.0,)}, {"taus": (1.5,)}, {"lambdas": (0.0,)},
        {"smoothings": (-1.0,)}, {"gammas": (math.inf,)}, {"alphas": ()},
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            Grid(**options)


def test_rows_of_the_prior_are_refused(world, rng, learned):
    whole = world.log(400, rng, event_ids=[f"event {i}" for i in range(400)])
    first, rest = whole.split(0.3, seed=1)
    made = certify(learned, rest, prior=PolicyPrior(world.start, 1.0, learned_from=first))
    assert not any("nothing was said" in note for note in made.notes)
    with pytest.raises(InvalidInput, match=r"shares rows .* event id"):
        certify(learned, whole, prior=PolicyPrior(world.start, 1.0, learned_from=first))
    with pytest.raises(InvalidInput, match="shares rows"):
        certify(SoftmaxPolicy(world.start), rest, learned_from=rest.rows(slice(0, 5)))


def test_rows_without_event_ids_are_known_all_the_same(world, rng, learned):
    whole = world.log(300, rng)
    other = replace(whole, contexts=whole.contexts + 1e-9 * rng.standard_normal(whole.contexts.shape), logging=None)
    first, rest = other.split(0.5, seed=1)
    prior = PolicyPrior(world.start, 1.0, learned_from=first)
    assert certify(learned, rest, prior=prior).lower >= 0
    with pytest.raises(InvalidInput, match=r"shares rows .*50.0% of its rows"):
        certify(learned, other, prior=prior)
    times = np.datetime64("2024-01-01") + np.arange(300).astype("timedelta64[s]")
    alike = replace(whole, timestamps=times)  # few contexts: rounds look alike, times tell them apart
    early, late = alike.rows(slice(0, 100)), alike.rows(slice(100, 300))
    assert certify(learned, late, prior=PolicyPrior(world.start, learned_from=early)).rows == 200
    with pytest.raises(InvalidInput, match=r"shares rows .*33.3% of its rows"):
        certify(learned, alike, prior=PolicyPrior(world.start, learned_from=early))


@pytest.mark.parametrize("name", ["es", "ips", "clip", "ix", "any-lambda", "any-alpha", "sakhi-2"])
def test_without_the_logging_policy(world, rng, learned, prior, name):
    log = world.log(300, rng, whole=False)
    with pytest.raises(InvalidInput, match=f"bound '{name}' .*all actions"):
        certify(learned, log, prior=prior, bound=name)


def test_what_is_left_without_the_logging_policy(world, rng, learned, prior):
    log = world.log(300, rng, whole=False)
    made = certify(learned, log, prior=prior, bound=("ls", "london", "sakhi-1", "ix-tail"))
    assert len(made.candidates) == 4
    assert [one.family for one in certify(learned, log, prior=prior).candidates] == ["ls"]


def test_other_refusals(world, rng, log, learned, prior):
    with pytest.raises(InvalidInput, match=r"rewards: .*from 0 to .* 1 .*got 2 at row"):
        certify(learned, world.log(100, rng, scale=2.0), prior=prior)
    with pytest.raises(InvalidInput, match="GaussianPolicy"):
        certify(SoftmaxPolicy(world.start), log, prior=prior)
    with pytest.raises(InvalidInput, match=r"bound: expected one of .*es, ips"):
        certify(learned, log, prior=prior, bound="none")
    with pytest.raises(InvalidInput, match="fixed beforehand"):
        certify(learned, log, prior=prior, bound="bernstein")
    with pytest.raises(InvalidInput, match="softmax parameters"):
        certify(learned, log, prior=prior, bound="harmonic")
    with pytest.raises(InvalidInput, match="rows in groups"):
        certify(learned, replace(log, groups=np.arange(2000) // 2), prior=prior)
    assert certify(learned, replace(log, groups=np.arange(2000)), prior=prior, independent=True).rows == 2000
    with pytest.raises(InvalidInput, match="the policy that wrote the log"):
        certify(learned, replace(log, propensities=np.full(2000, 0.5)), prior=prior)
    with pytest.raises(InvalidInput, match="encoder"):
        certify(GaussianPolicy(world.start, 1.0, Projection(np.eye(3))), log, prior=prior)
    assert certify(
        GaussianPolicy(world.start, 1.0, Projection(np.eye(3))),
        log,
        prior=PolicyPrior(world.start, 1.0, Projection(np.eye(3))),
    ).kl == pytest.approx(0)
    with pytest.raises(InvalidInput, match="shape"):
        certify(GaussianPolicy(world.start[:, :2], 1.0), log, prior=prior)


def test_rewards_up_to_b(world, learned, prior):
    plain = certify(learned, world.log(800, np.random.default_rng(1)), prior=prior)
    large = certify(learned, world.log(800, np.random.default_rng(1), scale=5.0), prior=prior, largest_reward=5.0)
    assert (large.lower, large.upper, large.value) == tuple(
        pytest.approx(5 * x) for x in (plain.lower, plain.upper, plain.value)
    )
    assert large.logged == pytest.approx(5 * plain.logged)
    assert {name: pytest.approx(5 * cost) for name, cost in plain.terms.items()} == large.terms


def test_estimated_propensities_are_refused_or_noted(log, learned, prior):
    estimated = replace(log, propensities_are_estimates=True)
    with pytest.raises(InvalidInput, match="propensities that are estimates"):
        certify(learned, estimated, prior=prior)
    made = certify(learned, estimated, prior=prior, trust_estimates=True)
    assert any("estimates" in note for note in made.notes)
    assert not any("estimates" in note for note in certify(learned, log, prior=prior).notes)


def test_vacuous_is_said(world, rng, log, learned, prior):
    made = certify(learned, log, prior=prior)
    assert not made.vacuous and "vacuous" not in str(made)
    few = certify(learned, world.log(10, rng), prior=prior)
    assert few.vacuous and few.lower == 0.0 and few.upper == 1.0 and "vacuous" in str(few)
    # sigma towards 0: an ever larger divergence, and in the end nothing is said
    narrow = certify(GaussianPolicy(world.start, 1e-40), log, prior=prior)
    assert narrow.vacuous and narrow.kl > 500
    json.dumps(as_data(narrow), allow_nan=False)
    # from below only: an upper end that was not asked for is not missed
    assert not certify(learned, log, prior=prior, bound="any-alpha", two_sided=False).vacuous_below


def test_monte_carlo_is_drawn_anew_and_paid_for(world, log, prior):
    policy = MixedLogitPolicy(world.start, 0.5, draws=16)
    made = certify(policy, log, prior=prior, bound="ls", draws=512)
    more = certify(policy, log, prior=prior, bound="ls", draws=8192)
    assert made.terms["simulation"] > more.terms["simulation"] > 0
    assert any("512 draws" in note for note in made.notes)
    general = certify(policy, log, prior=prior, bound="harmonic")
    assert general.candidates[0].terms["simulation"] > 0
    exact = certify(GaussianPolicy(world.start, 0.5), log, prior=prior, bound="ls")
    assert 0 < exact.terms["quadrature"] < 1e-5


def test_improvement(world, rng):
    best = np.zeros((5, 3))
    better = GaussianPolicy(3 * best + world.start, 1.0)
    log = world.log(4000, rng)
    ours = SoftmaxPolicy(world.start * 0.0)
    gain = improvement(ours, log)
    truth = world.value(ours) - world.logged_value
    assert gain.lower <= truth
    assert gain.certified == (gain.lower > 0) and gain.logged == pytest.approx(log.rewards.mean())
    # the logging policy against itself: no gain, and hardly any noise either
    same = improvement(SoftmaxPolicy(world.start), log)
    assert not same.certified and -0.02 < same.lower <= 0 and same.rows_needed is None
    words = " ".join(str(same).split())  # the lines of the table are as wide as the terminal
    assert "not certified" in words and "No number of rows" in words
    assert improvement(better, log, prior=PolicyPrior(world.start, 1.0)).lower < gain.lower + 1


def test_a_true_improvement_is_certified_in_words(world, rng):
    """Actions ranked by their true means: the bound must find that out with enough rows."""
    fitted = np.linalg.lstsq(world.contexts, world.means, rcond=None)[0].T
    policy = SoftmaxPolicy(12 * fitted)
    log = world.log(6000, rng)
    gain = improvement(policy, log)
    assert world.value(policy) > world.logged_value + 0.05
    assert gain.certified and "is certified" in str(gain)
    few = improvement(policy, log.rows(slice(0, 60)))
    assert not few.certified and few.rows_needed is not None and few.rows_needed > 60
    assert f"About {few.rows_needed:,} rows" in str(few)


BOUNDS = {
    "es": [bounds.Unified(ExponentialAlpha(a), 0.05) for a in (0.8, 1.0)],
    "gain": [bounds.Gain(l) for l in (0.02, 0.1)],
    "ls": [bounds.LogSmoothingBound(0.001)],
    "sakhi-1": [bounds.Sakhi1(ClipPropensities(0.01))],
}


@pytest.mark.parametrize("name", BOUNDS)
def test_rows_needed_is_the_smallest_number(world, rng, name):
    fitted = np.linalg.lstsq(world.contexts, world.means, rcond=None)[0].T
    policy, log = SoftmaxPolicy(12 * fitted), world.log(1000, rng)
    some = BOUNDS[name]
    summary = summarise(policy, log, [s for one in some for s in one.statistics])
    kl, delta, x = 2.0, 0.05, 0.01
    n = rows_needed(summary, kl, x, delta, some)
    assert n is not None and n > 1

    def shown(rows):
        paired = name == "gain"
        budget = Budget(delta if paired else delta / 2, 1, len(some))
        best = max(one.resized(1000, rows).lower(summary.at(rows), kl, budget).end for one in some)
        return best - (0 if paired else bounds.chernoff_upper(summary.logged, rows, delta / 2))

    assert shown(n) >= x > shown(n - 1)
    assert rows_needed(summary, kl, 0.9, delta, some) is None
    assert rows_needed(summary, math.inf, x, delta, some) is None
    assert rows_needed(summary, kl + 5, x, delta, some) > n
    with pytest.raises(InvalidInput, match="bounds"):
        rows_needed(summary, kl, x, delta, [])
    with pytest.raises(InvalidInput, match="delta"):
        rows_needed(summary, kl, x, 1.5, some)


def test_the_mean_reward_from_above():
    """kl(mean, q) = log(1/delta) / n at the end."""
    end = bounds.chernoff_upper(0.3, 100, 0.05)
    kl = 0.3 * math.log(0.3 / end) + 0.7 * math.log(0.7 / (1 - end))
    assert end > 0.3 and kl == pytest.approx(math.log(20) / 100)
    assert bounds.chernoff_upper(0.0, 50, 0.05) == pytest.approx(1 - 0.05 ** (1 / 50))
    assert bounds.chernoff_upper(1.0, 50, 0.05) == 1.0


def test_pages_and_data(log, learned, prior, tmp_path):
    made = certify(learned, log, prior=prior)
    gain = improvement(learned, log, prior=prior)
    page = made.report(tmp_path / "page.html", gain).read_text()
    for words in ("KL divergence", "variance", "What it rests on", "<svg", "logging policy", str(gain)[:30]):
        assert words in page
    data = json.loads(json.dumps(as_data(made, gain), allow_nan=False))
    assert data["lower"] == made.lower and data["improvement"]["certified"] == gain.certified
    assert "lower" in str(made) and "note:" in str(made)


def test_a_policy_carries_the_rows_that_it_was_learned_from(world, rng, tmp_path):
    """Pure noise: what was learned from these rows looks better on them, and must not be certified on them."""
    log = world.log(300, rng)
    first, rest = log.split(0.5)
    policy = SoftmaxPolicy(world.start)
    policy.training_rows = RowSketch.of(first)
    policy.save(tmp_path / "policy")
    back = ma.load(tmp_path / "policy")
    for one in (policy, back, EpsilonMixture(back, 0.1)):
        assert certify(one, rest, bound="ls").rows == 150
        for rows in (log, first, replace(first, notes=("read again",))):
            with pytest.raises(InvalidInput, match=r"policy: .*log.split .*\(prior=\), got .*shares rows"):
                certify(one, rows, bound="ls")
        assert not evaluate(one, rest).warnings or "LEARNED" not in evaluate(one, rest).warnings[0]
        assert "THE POLICY WAS LEARNED FROM THIS LOG" in evaluate(one, log).warnings[0]
    with pytest.raises(InvalidInput, match=r"prior.learned_from: .*shares rows"):
        certify(GaussianPolicy(world.start, 0.8), first, prior=PolicyPrior.of(back), bound="ls")


def test_ends_that_cross_are_no_interval(world, rng):
    """Propensities far too small: weights are too large, and rewards of 1 cannot be had more than once a round."""
    log = world.log(400, rng)
    wrong = replace(log, rewards=np.ones(400), propensities=log.propensities / 50, logging=None)
    with pytest.raises(Contradiction, match=r"at least .* at most .*cannot be.*propensities.*probability at most 0.05"):
        certify(SoftmaxPolicy(world.start), wrong, bound="ls")
    with pytest.raises(Contradiction, match="gain of at least"):
        improvement(SoftmaxPolicy(world.start), replace(wrong, propensities=log.propensities / 5000))


def test_contradictions_show_where_one_end_was_asked_for(world, rng):
    """Propensities that are too small make every policy look better: one-sided statements must not hide it."""
    log = world.log(3000, rng)
    small = replace(log, propensities=log.propensities * 0.6, logging=None)
    policy = SoftmaxPolicy(world.start)
    for statement in (
        lambda: certify(policy, small, bound="ls", two_sided=False),
        lambda: improvement(policy, small),
    ):
        with pytest.raises(Contradiction, match=r"at least .* at most"):
            statement()
    assert improvement(policy, replace(log, logging=None)).lower < 0.2


def test_both_what_the_policy_carries_and_what_is_said_are_checked(world, rng):
    log, other = world.log(100, rng), world.log(100, rng)
    policy = SoftmaxPolicy(world.start)
    policy.training_rows = RowSketch.of(log)
    with pytest.raises(InvalidInput, match=r"^policy"):
        certify(policy, log, bound="ls", learned_from=other)
