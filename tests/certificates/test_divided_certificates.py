"""Certificates of logs that are divided among workers say what one process says, and refuse what one process refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from in_process import Sent
from manyarms.certificates import PolicyPrior, certify, improvement
from manyarms.certificates.certify import certify_with_improvement
from manyarms.errors import InvalidInput
from manyarms.logs import open_log, shards, to_parquet
from manyarms.policies import SoftmaxPolicy
from manyarms.policies.randomised import MixedLogitPolicy

ROWS = 2000


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(shards, "ROWS_EACH", 300)


@pytest.fixture
def log(world, rng):
    return world.log(ROWS, rng)


@pytest.fixture
def prior(world):
    return PolicyPrior(world.start, 1.0)


def same(one, other):
    for name in ("lower", "upper", "value", "kl", "rows"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-9, abs=1e-12), name
    assert [each.family for each in other.candidates] == [each.family for each in one.candidates]


def test_the_same_as_in_one_process(log, learned, prior):
    same(certify(learned, log, prior=prior), certify(learned, log, prior=prior, on=Sent()))
    here, there = (improvement(learned, log, prior=prior, **more) for more in ({}, {"on": Sent()}))
    assert there.lower == pytest.approx(here.lower, rel=1e-9)
    made, gain = certify_with_improvement(learned, log, prior=prior, on=Sent())
    same(certify(learned, log, prior=prior), made)
    assert gain.lower == pytest.approx(here.lower, rel=1e-9)


def test_drawn_parameters_are_the_same_in_every_process(log, world):
    """Probabilities by Monte Carlo, and the general bound's own draws, for a correction that is not linear."""
    policy = MixedLogitPolicy(world.start, 0.5, draws=64)
    around = PolicyPrior(world.start, 0.5)
    for bound in ("ls", "general"):
        how = {"prior": around, "bound": bound, "draws": 64}
        same(certify(policy, log, **how), certify(policy, log, **how, on=Sent()))


def test_a_folder_whose_incomplete_rows_are_left_out(world, rng, tmp_path):
    """The number of rows, which grids follow, is counted by the workers."""
    folder = tmp_path / "rounds"
    folder.mkdir()
    whole = world.log(ROWS, rng)
    for part in range(2):
        to_parquet(whole.rows(slice(1000 * part, 1000 * (part + 1))), folder / f"{part}.parquet", rows_per_group=130)
    policy = SoftmaxPolicy(world.start + rng.standard_normal(world.start.shape))
    for drop in (False, True):
        log = open_log(folder, drop_missing=drop, action_count=whole.action_count)
        same(certify(policy, log, bound="ls"), certify(policy, log, bound="ls", on=Sent()))


def test_the_same_is_refused(world, rng, log, learned, prior):
    fixed = SoftmaxPolicy(world.start)
    with pytest.raises(InvalidInput, match=r"^learned_from: "):
        certify(fixed, log, bound="ls", learned_from=log.rows(slice(1500, None)), on=Sent())
    wrong = log.rewards.copy()
    wrong[1777] = 1.5
    for on in ("local", Sent()):
        with pytest.raises(InvalidInput, match=r"^rewards: .*got 1\.5 at .*1,?777"):
            certify(fixed, replace(log, rewards=wrong), bound="ls", on=on)
    grouped = replace(log, groups=np.arange(ROWS) // 4)
    with pytest.raises(InvalidInput, match=r"^on: .*independent=True"):
        certify(fixed, grouped, bound="ls", on=Sent())
    one = certify(fixed, grouped, bound="ls", independent=True)
    same(one, certify(fixed, grouped, bound="ls", independent=True, on=Sent()))
    with pytest.raises(InvalidInput, match=r"^on: expected"):
        certify(fixed, log, bound="ls", on="spark")
