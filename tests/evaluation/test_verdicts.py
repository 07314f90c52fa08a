"""One answer on one card: ship, do not ship or cannot tell, by rules that are stated."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import manyarms as ma
from manyarms.errors import InvalidInput
from manyarms.evaluation import difference, evaluate, page, verdict
from manyarms.evaluation.tables import as_data
from manyarms.logs.data import LoggedData
from manyarms.policies import FixedPolicy

GOOD, BAD = FixedPolicy([0.1, 0.9]), FixedPolicy([0.9, 0.1])


def flat_log(n, rng, *, propensities=None, means=(0.3, 0.6), **fields):
    """Two actions alike likely; the second earns more."""
    actions = rng.integers(2, size=n)
    rewards = (rng.random(n) < np.array(means)[actions]).astype(float)
    pi0 = np.full(n, 0.5) if propensities is None else propensities
    return LoggedData(np.ones((n, 1)), actions, rewards, 2, propensities=pi0, **fields)


def improvement(lower, rows_needed=900):
    return SimpleNamespace(
        lower=lower,
        estimate=0.1,
        logged=0.4,
        delta=0.05,
        rows=500,
        rows_needed=rows_needed,
        certified=lower > 0,
        unit="row",
    )


def test_the_three_answers_and_their_numbers(rng):
    log = flat_log(4000, rng)
    ship, do_not = (evaluate(policy, log).verdict() for policy in (GOOD, BAD))
    open_ = evaluate(FixedPolicy([0.5, 0.5]), log).verdict()  # the logging policy itself
    assert ship.verdict == "ship" and ship.low > 0 and ship.needed == ()
    assert do_not.verdict == "do not ship" and do_not.high < 0
    assert open_.verdict == "cannot tell" and open_.low <= 0 <= open_.high and open_.needed
    gain = difference(GOOD, None, log)
    assert (ship.gain, ship.low, ship.high) == pytest.approx(
        (gain.value, gain.interval.low, gain.interval.high), rel=1e-9
    )
    assert "snips" in ship.source and f"{ship.gain:+.4g}" in ship.reason and str(ship).startswith("verdict: SHIP")


def test_rows_that_would_be_needed(rng):
    """An interval shrinks like 1/sqrt(n): so many rows bring its lower end to 0, and twice as many above."""
    for _ in range(200):  # a gain of 0, which seems to be one in every second log
        found = evaluate(GOOD, flat_log(2000, rng, means=(0.5, 0.5)), ["snips"]).verdict()
        if found.verdict == "cannot tell" and found.gain > 0:
            break
    assert found.rows_needed == math.ceil(2000 * ((found.gain - found.low) / found.gain) ** 2) > 2000
    assert any(f"{found.rows_needed:,} rows" in text for text in found.needed)


def test_training_rows_always_leave_it_open(rng):
    log = flat_log(4000, rng)
    policy = ma.SoftmaxPolicy(np.array([[0.0], [3.0]]))
    assert evaluate(policy, log).verdict().verdict == "ship"
    policy.training_rows = ma.logs.row_sketch.RowSketch.of(log)
    found = evaluate(policy, log)
    assert found.on_training_rows and found.verdict().verdict == "cannot tell"
    assert "learned from these rows" in found.verdict().reason and "split" in found.verdict().needed[0]
    worse = ma.SoftmaxPolicy(np.array([[3.0], [0.0]]))
    worse.training_rows = policy.training_rows
    assert evaluate(worse, log).verdict().verdict == "cannot tell"


def test_doubts_forbid_shipping(rng):
    """Each on a log where the lower end is above 0."""
    n = 4000
    actions = (rng.random(n) < 0.01).astype(int)
    few = LoggedData(
        np.ones((n, 1)), actions, (rng.random(n) < np.array([0.1, 0.9])[actions]).astype(float), 2,
        propensities=np.where(actions == 1, 0.01, 0.99),
    )  # fmt: skip
    thin = evaluate(FixedPolicy([0.0, 1.0]), few, ["snips"])
    assert thin["snips"].gain.interval.low > 0
    assert thin.verdict().verdict == "cannot tell" and "effective sample" in thin.verdict().reason
    wrong = evaluate(GOOD, flat_log(n, rng, propensities=np.full(n, 0.3)), ["snips"])
    assert wrong["snips"].gain.interval.low > 0
    assert wrong.verdict().verdict == "cannot tell" and "weights average" in wrong.verdict().reason
    # two of three actions are logged, and the policy plays the third half of the time
    log = flat_log(n, rng)
    three = LoggedData(log.contexts, log.actions, log.rewards, 3, log.propensities, logging=FixedPolicy([0.5, 0.5, 0]))
    unseen = evaluate(FixedPolicy([0.0, 0.5, 0.5]), three, ["snips"]).verdict()
    assert unseen.verdict == "cannot tell" and "never logged" in unseen.reason


def test_heavy_tails_forbid_shipping():
    rng, n = np.random.default_rng(5), 20_000
    heavy = rng.random(n) ** 0.9
    log = LoggedData(np.ones((n, 1)), np.zeros(n, dtype=int), rng.random(n), 2, propensities=heavy)
    found = evaluate(FixedPolicy([0.5, 0.5]), log, ["snips"], replicates=0)
    assert found.overlap.heavy_tailed and found.verdict().verdict != "ship"


def test_a_contradiction_leaves_everything_open(rng):
    log = flat_log(2000, rng, propensities=np.full(2000, 0.05))
    found = evaluate(GOOD, log, ["ips", "snips"])
    assert found["ips"].contradicted and found.verdict().verdict == "cannot tell"
    assert "no value can be" in found.verdict().reason
    assert verdict(found, improvement(0.2)).verdict == "cannot tell"


def test_what_is_certified_decides_on_shipping(rng):
    log = flat_log(4000, rng)
    good, bad = evaluate(GOOD, log), evaluate(BAD, log)
    assert verdict(None, improvement(0.02)).verdict == "ship"
    not_yet = verdict(None, improvement(-0.02))
    assert not_yet.verdict == "cannot tell" and not_yet.rows_needed == 900 and "900 rows" in not_yet.needed[0]
    assert "no number of rows" in verdict(None, improvement(-0.02, None)).needed[0]
    assert verdict(good, improvement(-0.02)).verdict == "cannot tell"  # an interval of its own does not certify
    assert verdict(good, improvement(0.02)).verdict == "ship"
    assert verdict(bad, improvement(-0.02)).verdict == "do not ship"
    trained = replace(good, on_training_rows=True)
    assert verdict(trained, improvement(0.02)).verdict == "ship"  # a certificate with a prior has paid for it
    below = SimpleNamespace(upper=0.2, largest_reward=1.0, two_sided=True, unit="row", delta=0.05)
    assert verdict(None, improvement(-0.3), below).verdict == "do not ship"
    below.two_sided = False
    assert verdict(None, improvement(-0.3), below).verdict == "cannot tell"
    with pytest.raises(InvalidInput, match="evaluation"):
        verdict()


def test_no_estimate_for_the_value(problem, rng):
    log = problem.log(300, rng)
    found = evaluate(problem.policy, log, ["es:0.3"])
    assert found.verdict().verdict == "cannot tell" and "biases" in found.verdict().reason
    assert evaluate(problem.policy, log, ["es:0.3"]).verdict("es").verdict == "cannot tell"
    assert "bias" in found.verdict("es").reason or found.verdict("es").low <= 0
    nothing = evaluate(FixedPolicy([0.0, 1.0]), LoggedData(np.ones((50, 1)), np.zeros(50, int), rng.random(50), 2,
                       np.ones(50)), ["snips"]).verdict()  # fmt: skip
    assert nothing.verdict == "cannot tell" and "never plays" in nothing.reason


def test_a_single_row_cannot_tell():
    one = LoggedData(np.ones((1, 1)), [0], [1.0], 2, propensities=[0.5])
    found = evaluate(GOOD, one)
    assert found.verdict().verdict == "cannot tell"
    json.dumps(as_data(found), allow_nan=False)


def test_the_card_is_on_the_page_and_in_the_data(rng):
    found = evaluate(GOOD, flat_log(4000, rng))
    text = page.html(found)
    assert text.index('class="card good"') < text.index("<figure") < text.index("<table") < text.index("<h2")
    assert as_data(found)["verdict"]["verdict"] == "ship"


def test_how_rows_depend_is_said_once(rng):
    log = flat_log(400, rng)
    alone = evaluate(GOOD, log)
    assert alone.groups is None and sum("independent" in text for text in alone.notes) == 1
    for groups in (np.repeat(np.arange(40), 10), np.repeat([f"u{i}" for i in range(40)], 10)):
        grouped = evaluate(GOOD, flat_log(400, rng, groups=groups))
        assert grouped.groups == 40 and "400 rows in 40 groups" in str(grouped)
        assert any("40 groups" in text for text in grouped.notes)
        assert as_data(grouped)["groups"] == 40 and "in 40 groups" in page.html(grouped)


def test_verdicts_hold_as_often_as_their_level(rng):
    """A policy that is as good as the logging policy: shipped at most as often as 95 % intervals fail on one side."""
    runs, shipped = 300, 0
    for _ in range(runs):
        shipped += (
            evaluate(GOOD, flat_log(400, rng, means=(0.5, 0.5)), ["snips"], replicates=0).verdict().verdict == "ship"
        )
    assert shipped <= 0.025 * runs + 6 * math.sqrt(0.025 * runs)
