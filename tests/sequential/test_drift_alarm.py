"""An alarm for a whole agent: false ones as rarely as stated, whatever the actions; which change it sees, and what a wrong noise
does to it."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from manyarms.errors import InvalidInput
from manyarms.sequential import DriftAlarm, ResidualDetector
from manyarms.sequential.drift_evidence import SCALES, GaussianResiduals, Judged, RangedRewards, SymmetricResiduals
from manyarms.sequential.residual_detector import SHIFTS

CORNERS = (-300, -30, -4, -1, 0, 1, 4, 30, 300)

# ---- evidence


def test_evidence_has_the_mean_one_as_long_as_nothing_has_changed() -> None:
    laws = {
        GaussianResiduals(): [stats.norm()],
        SymmetricResiduals(): [stats.norm(scale=3), stats.t(2), stats.uniform(-4, 8), stats.laplace()],
    }
    for family, null in laws.items():
        for law in null:
            for part in range(family.parts):

                def weighed(z: float, family=family, law=law, part=part) -> float:  # type: ignore[no-untyped-def]
                    found = family.factors(Judged(z, -1.7))[part]
                    assert found is not None
                    return found * law.pdf(z)

                # between the corners of the laws: steps of a quadrature of high order
                mean = math.fsum(integrate.quad(weighed, a, b, limit=200)[0] for a, b in pairwise(CORNERS))
                assert mean == pytest.approx(1.0, abs=1e-4), (family, part)
    for p in (0.0, 0.01, 0.5, 0.99):  # of all laws in [0, 1] with that mean, the one that is furthest out
        family, largest = RangedRewards(), max(p, 1 - p)
        one, none = (np.array(family.factors(Judged(0.0, 2.0, r - p, largest))) for r in (1.0, 0.0))
        assert (np.minimum(one, none) >= 0).all() and np.allclose(p * one + (1 - p) * none, 1.0)


def test_a_side_is_named() -> None:
    for z, side in ((1.5, "higher"), (-1.5, "lower")):
        alarm = DriftAlarm(100)
        alarm.update([0] * 40, [z] * 40, [0.5] * 40)
        assert {(one.by, one.side) for one in alarm.notices} == {("model", side), ("model-free", side)}
    alarm = DriftAlarm(100)
    alarm.update([0] * 60, [2.0, -2.0] * 30, [0.5] * 60)
    assert {(one.by, one.side) for one in alarm.notices} == {("model", "wider")}
    for slope, side in ((1.5, "steeper"), (-1.5, "flatter")):
        alarm = DriftAlarm(100)
        alarm.update([0] * 60, [slope, -slope] * 30, [1.0, 0.0] * 30)
        assert ("model-free", side) in {(one.by, one.side) for one in alarm.notices}


# ---- rates


def rings(mean_time: float, played: np.ndarray, z: np.ndarray, keep: int = 256) -> DriftAlarm:
    alarm = DriftAlarm(mean_time, actions=keep)
    alarm.update(played, z, np.random.default_rng(len(z)).standard_normal(len(z)))
    return alarm


@pytest.mark.parametrize("law", ["one", "many", "one after another", "more than are kept"])
def test_false_alarms_of_all_kinds_together_come_as_rarely_as_stated(law: str) -> None:
    """Seen: 1.3 to 2.3 times as rarely."""
    rng, rows, mean_time = np.random.default_rng(1), 40_000, 200
    actions = {
        "one": np.zeros(rows, dtype=int),
        "many": rng.integers(50, size=rows),
        "one after another": np.arange(rows) // 40,
        "more than are kept": rng.integers(400, size=rows),
    }[law]
    alarm = rings(mean_time, actions, rng.standard_normal(rows), keep=100)
    assert 10 < alarm.total <= rows / mean_time  # it does give some: the statement is not an empty one


def test_who_is_played_may_depend_on_what_was_seen() -> None:
    """Play on with the action whose evidence is largest: the sum over actions grows by 1 a row, however they are chosen."""
    rng, rows, mean_time = np.random.default_rng(2), 15_000, 150
    alarm = DriftAlarm(mean_time, actions=20)
    for z in rng.standard_normal(rows).tolist():
        watched = alarm.watched
        alarm.update(watched[0] if len(watched) == 20 else len(watched), z, rng.standard_normal())
    assert alarm.total <= rows / mean_time


def test_a_wrong_noise_rings_the_alarm_of_the_model_alone() -> None:
    rng, rows = np.random.default_rng(3), 20_000
    actions = rng.integers(10, size=rows)
    for noise in (0.7, 0.9):  # said; it is 1
        alarm = rings(1_000, actions, rng.standard_normal(rows) / noise)
        free = alarm.alarms["model-free"]
        assert alarm.alarms["model"].overall > 1.5 * rows / 1_000  # again and again
        assert free.overall + free.of_actions <= rows / 2_000
    alarm = rings(1_000, actions, rng.standard_t(3, rows))
    assert alarm.alarms["model-free"].overall + alarm.alarms["model-free"].of_actions <= rows / 2_000


def test_rewards_in_a_range_need_no_law() -> None:
    """Clicks of 2 %, whose standardised residuals are far from symmetric: rare alarms, until clicks are 4 %."""
    rng, rows, p = np.random.default_rng(4), 40_000, 0.02
    actions, rewards = rng.integers(10, size=2 * rows), (rng.random(2 * rows) < p).astype(float)
    rewards[rows:] = rng.random(rows) < 2 * p
    z = (rewards - p) / math.sqrt(p * (1 - p))
    alarm = DriftAlarm(2_000, gaussian=False, reward_range=(0, 1))
    alarm.update(actions[:rows], z[:rows], np.full(rows, p), rewards[:rows])
    assert list(alarm.alarms) == ["model-free"] and alarm.total <= rows / 2_000
    before = alarm.total
    alarm.update(actions[rows:], z[rows:], np.full(rows, p), rewards[rows:])
    assert alarm.total > before + 10 and {one.side for one in alarm.notices if one.row > rows} == {"higher"}


# ---- what is seen


def test_one_action_of_many_is_named() -> None:
    rng = np.random.default_rng(5)
    actions, z = rng.integers(50, size=20_000), rng.standard_normal(20_000)
    z[10_000:][actions[10_000:] == 7] += 1.0
    alarm = rings(10_000, actions, z)
    first = alarm.notices[0]
    assert first.action == 7 and first.side == "higher" and 10_000 < first.row < 14_000  # it is played once in 50 rows


def test_wandering_up_and_down_is_seen_though_the_mean_stays() -> None:
    """Half of the actions rise and half of them fall: over all rows, residuals are wider and no higher."""
    rng = np.random.default_rng(6)
    actions = np.arange(6_000) % 3_000  # each comes twice: none of them has evidence of its own
    z = rng.standard_normal(6_000) + np.where(actions % 2, 1.0, -1.0)
    alarm = rings(10_000, actions, z)
    first = alarm.notices[0]
    assert (first.by, first.side, first.action) == ("model", "wider", None) and first.row < 500
    assert not alarm.alarms["model-free"].overall
    plain = ResidualDetector(10_000)
    plain.update(z[: first.row])
    assert plain.alarm is None


def test_what_was_learned_and_is_no_longer_true_is_seen_without_a_model() -> None:
    """θ changes to another one of the same length, contexts are as often x as −x, and the noise may be more than was said."""
    rng, rows = np.random.default_rng(10), 4_000
    X, before, now = rng.standard_normal((rows, 3)), np.array([1.0, 1.0, 0.0]), np.array([1.0, -1.0, 0.0])
    for said, seen in ((1.0, 400), (0.5, 400)):
        z = (X @ (now - before) + rng.standard_normal(rows)) / said
        alarm = DriftAlarm(10_000)
        alarm.update(np.zeros(rows, dtype=int), z, X @ before)
        first = next(one for one in alarm.notices if one.by == "model-free")
        assert first.side == "flatter" and first.row < seen


def test_the_action_with_the_least_evidence_is_forgotten() -> None:
    alarm = DriftAlarm(1_000, actions=2)
    alarm.update([0, 0, 1], [2.0, 2.0, 0.1], [1.0, 1.0, 1.0])
    alarm.update(2, 0.0, 1.0)
    assert sorted(alarm.watched) == [0, 2] and alarm.forgotten == 1
    alarm.update(1, 0.0, 1.0)  # as much evidence as 2, which was played longer ago
    assert sorted(alarm.watched) == [0, 1]
    fresh = DriftAlarm(1_000)
    fresh.update(1, 0.0, 1.0)
    assert alarm.evidence(1) == fresh.evidence(1) and alarm.evidence(2) == DriftAlarm(1_000).evidence()


def test_it_is_the_average_of_the_recursions() -> None:
    z, means = np.random.default_rng(7).standard_normal((2, 300))
    alarm = DriftAlarm(1e6)
    alarm.update(np.zeros(300, dtype=int), z, means)
    delta, scale = np.array(SHIFTS), np.array(SCALES)
    model, free = np.zeros(2 * len(delta) + len(scale)), np.zeros(2 * len(delta))
    for t, one in enumerate(z):
        so_far = means[: t + 1]
        w = np.clip((means[t] - so_far.mean()) / so_far.std(), -2, 2) if t else 0.0
        shifted = np.exp(np.append(delta, delta * w) * one - np.append(delta, delta * w) ** 2 / 2)
        leaning = 1 + np.tanh(np.append(delta, delta * w) * one)
        said = np.append(np.ones(len(delta)), np.full(len(delta), t > 0))  # nothing of slopes in the first row
        model = (np.append(said, np.ones(len(scale))) + model) * np.append(
            shifted, np.exp(one**2 / 2 * (1 - scale**-2.0)) / scale
        )
        free = (said + free) * leaning
    expected = {"model": pytest.approx(model.mean()), "model-free": pytest.approx(free.mean())}
    assert alarm.evidence() == expected and alarm.evidence(0) == expected


# ---- state


def test_batches_and_saving_change_no_bit() -> None:
    rng = np.random.default_rng(8)
    actions, z, r = rng.integers(30, size=2_000), 1.2 * rng.standard_normal(2_000), rng.random(2_000)
    kept = set()
    for size in (1, 7, 2_000):
        alarm = DriftAlarm(50, reward_range=(0, 1), actions=8)
        for start in range(0, 2_000, size):
            some = slice(start, start + size)
            alarm.update(actions[some], z[some], r[some] / 2, r[some])
            if size > 1:
                alarm = DriftAlarm.restored(json.loads(json.dumps(alarm.spec())))
        kept.add(json.dumps(alarm.spec()))
        assert (
            alarm.total > 16 == len(alarm.notices)
            and alarm.notices[0].row < 100
            and len(alarm.watched) == 8
            and str(alarm)
        )
    assert len(kept) == 1


def test_what_is_wrong_is_refused_before_anything_changes() -> None:
    alarm = DriftAlarm(reward_range=(0, 1))
    for bad in (
        ((0, np.nan, 0.5, 0.5), "residual"), ((-1, 0.0, 0.5, 0.5), "action"), ((0.5, 0.0, 0.5, 0.5), "action"),
        ((0, 0.0, 0.5, 2.0), "reward"), ((0, 0.0, 0.5, None), "reward"), ((0, 0.0, None, 0.5), "mean"),
        (([0, 0], [0.0], [0.5], [0.5]), "action"), ((0, 0.0, 0.5, [0.5, 0.5]), "reward"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=bad[1]):
            alarm.update(*bad[0])  # type: ignore[arg-type]
    assert alarm.count == 0 and alarm.spec() == DriftAlarm(reward_range=(0, 1)).spec()
    with pytest.raises(InvalidInput, match="reward_range"):
        DriftAlarm(gaussian=False)
    good = rings(50, np.arange(20), np.full(20, 1.0)).spec()
    for change in (
        {"count": -1}, {"count": 3}, {"overall": [[[0.0]], 0, 0]}, {"of_actions": [[0, 1]]}, {"alarms": {}}, {"actions": 3},
        {"alarms": {"model": [0, 0, [[1, "x", None]]], "model-free": [0, 0, []]}}, {"kind": "other"},
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            DriftAlarm.restored({**good, **change})


@pytest.mark.slow
def test_figures_of_the_documentation() -> None:
    """Rows to the alarm, over all rows, cut at 20,000, of 400 runs; at C = 10,000 for each family alone (docs/drift.md)."""
    rng, runs, cut, enough = np.random.default_rng(9), 400, 20_000, 10_000
    delta, scale = np.array(SHIFTS)[:, None], np.array(SCALES)[:, None]

    def mean_time(family: str, what: str, z) -> float:  # type: ignore[no-untyped-def]
        def factors(one: np.ndarray) -> np.ndarray:
            w = np.clip(rng.standard_normal(one.shape), -2, 2)
            if family == "shifts":
                return np.exp(delta * one - delta**2 / 2)
            both = np.vstack([np.broadcast_to(delta, (len(delta), len(one))), delta * w])
            if family == "model-free":
                return 1 + np.tanh(both * one)
            return np.vstack([np.exp(both * one - both**2 / 2), np.exp(one**2 / 2 * (1 - scale**-2)) / scale])

        m, found = np.zeros((len(factors(np.zeros(1))), runs)), np.full(runs, cut)
        for t in range(cut):
            m = np.minimum((1 + m) * factors(z()), 1e300)
            found[(m.mean(axis=0) >= enough) & (found == cut)] = t + 1
            if (found < cut).all():
                break
        print(f"{family:12s} {what:28s} {found.mean():9.0f} ± {found.std() / runs**0.5:.0f}")  # shown with -s
        return float(found.mean())

    def normal(mean: float = 0.0, sd: float = 1.0):  # type: ignore[no-untyped-def]
        return lambda: rng.normal(mean, sd, runs)

    for family, wrong10, wrong30, wider in (
        ("shifts", (2_500, 4_700), (300, 560), (900, 1_600)),
        ("model", (380, 540), (42, 66), (100, 155)),
        ("model-free", (7_000, cut), (7_000, cut), (7_000, cut)),
    ):
        assert mean_time(family, "nothing changes", normal()) > 7_500
        assert wrong10[0] < mean_time(family, "noise said 10 % too small", normal(sd=1 / 0.9)) < wrong10[1]
        assert wrong30[0] < mean_time(family, "noise said 30 % too small", normal(sd=1 / 0.7)) < wrong30[1]
        assert wider[0] < mean_time(family, "1.25 times as wide", normal(sd=1.25)) < wider[1]
        tails = mean_time(family, "Student's t with 5", lambda: rng.standard_t(5, runs) / math.sqrt(5 / 3))
        assert (tails > 7_500) is (family == "model-free")
        for shift, limit in ((0.25, 290), (0.5, 95), (1.0, 38)):
            assert mean_time(family, f"mean + {shift}", normal(shift)) < limit
            assert mean_time(family, f"mean + {shift}, 30 % too small", normal(shift / 0.7, 1 / 0.7)) < 1.2 * limit
