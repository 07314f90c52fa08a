"""True of every statistic: batches are their elements, a saved one goes on as if nothing had been, nonsense is refused."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms import sequential
from manyarms.errors import InvalidInput

N = 300


@dataclass
class Case:
    """A statistic, rounds for it, and rounds that it must refuse."""

    make: Callable[[], Any]
    rounds: tuple[np.ndarray, ...]
    refused: list[tuple[Any, ...]]


def cases() -> dict[str, Case]:
    rng = np.random.default_rng(3)
    weights, rewards = rng.exponential(size=N) ** 3, rng.random(N)
    greedy = rng.random(N) < 0.7
    pairs: list[tuple[Any, ...]] = [
        (-1.0, 0.5), (np.nan, 0.5), (np.inf, 0.5), (1.0, 1.1), (1.0, -1e-9), (1.0, np.nan), ([1.0, 2.0], [0.5]), ("1", 0.5),
        ([[1.0]], [[0.5]]), ([1.0, -1.0], [0.5, 0.5]), (1.0, None),
    ]  # fmt: skip
    numbers: list[tuple[Any, ...]] = [
        (-1.0,),
        (np.nan,),
        ([0.5, np.inf],),
        ([[0.5]],),
        ("a",),
        (None,),
        ([0.5, -1e-300],),
    ]
    outside: list[tuple[Any, ...]] = [(np.nan,), ([0.1, 1.5],), (-0.1,), (None,), ([[0.5]],), (1j,)]
    routed: list[tuple[Any, ...]] = [
        (1, 0.5),
        (True, 2.0),
        ([True], [0.5, 0.5]),
        (None, 0.5),
        (0.5, 0.5),
        (True, np.nan),
    ]
    played: list[tuple[Any, ...]] = [
        (0.0, True),
        (-0.5, True),
        (1.5, True),
        (np.nan, True),
        (0.5, 1.0),
        ([0.5], [True, False]),
    ]
    return {
        "RunningValue": Case(sequential.RunningValue, (weights,), numbers),
        "RunningValue(rho)": Case(lambda: sequential.RunningValue(rho=30.0), (weights,), numbers),
        "ValueInterval": Case(sequential.ValueInterval, (weights, rewards), pairs),
        "ValueInterval(range)": Case(
            lambda: sequential.ValueInterval((-2.0, 3.0)), (weights, 5 * rewards - 2), [(1.0, -2.1), (1.0, 3.1)]
        ),
        "PairedGain": Case(sequential.PairedGain, (weights, rewards), pairs),
        "PairedGain(range)": Case(lambda: sequential.PairedGain((-1.0, 1.0)), (weights, 2 * rewards - 1), [(1.0, 1.1)]),
        "Lift": Case(lambda: sequential.Lift(0.3), (greedy, rewards), routed),
        "PropensityCheck": Case(sequential.PropensityCheck, (np.full(N, 0.3), greedy), played),
        "PropensityCheck(both)": Case(
            lambda: sequential.PropensityCheck(least_propensity=0.9),
            (np.where(greedy, 0.95, 0.05), greedy), [*played, (0.5, True)],
        ),
        "EDetector": Case(lambda: sequential.EDetector(0.7, 50), (rewards,), outside),
        "EDetector(restart)": Case(lambda: sequential.EDetector(0.7, 50, restart=True), (rewards,), outside),
        "ResidualDetector": Case(
            lambda: sequential.ResidualDetector(50, restart=True), (rng.normal(size=N) + 0.5,), [(np.nan,), (1e60,), (None,)]
        ),
        "DriftAlarm": Case(
            lambda: sequential.DriftAlarm(20, actions=4), (rng.integers(9, size=N), rng.normal(size=N) + 0.5, rewards),
            [(0, np.nan, 0.5), (0, 1e60, 0.5), (0.5, 0.0, 0.5), (-1, 0.0, 0.5), (0, 0.0, np.inf), ([0, 1], [0.0], [0.5])],
        ),
        "DriftAlarm(range)": Case(
            lambda: sequential.DriftAlarm(20, False, (0.0, 1.0)),
            (rng.integers(9, size=N), rng.normal(size=N), np.full(N, 0.6), rewards), [(0, 0.0, 0.5), (0, 0.0, 0.5, 1.1)],
        ),
        "SampleRatio": Case(
            lambda: sequential.SampleRatio([0.2, 0.3, 0.5]), (rng.integers(3, size=N),),
            [(3,), (-1,), (0.5,), (True,), (None,), ([0, 3],), ([[0]],), ("a",)],
        ),
    }  # fmt: skip


CASES = cases()


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def test_every_public_statistic_is_held_to_this() -> None:
    held = {name.partition("(")[0] for name in CASES}
    assert held == {name for name in sequential.__all__ if isinstance(getattr(sequential, name), type)}
    assert ma.sequential is sequential


def singles(thing: Any, rounds: tuple[np.ndarray, ...]) -> Any:
    for row in zip(*(one.tolist() for one in rounds), strict=True):
        thing.update(*row)
    return thing


def test_batches_are_their_elements_to_the_last_bit(case: Case) -> None:
    alone = singles(case.make(), case.rounds).spec()
    whole = case.make()
    whole.update(*case.rounds)
    assert whole.spec() == alone
    rng = np.random.default_rng(0)
    for _ in range(5):
        cuts = [0, *np.sort(rng.integers(0, N + 1, 6)), N]
        parts = case.make()
        for low, high in itertools.pairwise(cuts):
            parts.update(*(one[low:high] for one in case.rounds))  # some are empty
        assert parts.spec() == alone


def test_a_saved_one_goes_on_as_if_nothing_had_been(case: Case) -> None:
    for cut in (0, 1, 137):
        first = case.make()
        first.update(*(one[:cut] for one in case.rounds))
        text = json.dumps(first.spec(), allow_nan=False)
        again = type(first).restored(json.loads(text))
        assert json.dumps(again.spec()) == text and repr(again) == repr(first)
        for one in (first, again):
            one.update(*(rows[cut:] for rows in case.rounds))
        assert again.spec() == first.spec()


def test_what_is_kept_is_nobody_elses(case: Case) -> None:
    thing = singles(case.make(), tuple(one[:20] for one in case.rounds))
    spec = thing.spec()
    held = copy.deepcopy(spec)
    again = type(thing).restored(spec)
    again.update(*(one[20:40] for one in case.rounds))
    assert spec == held == thing.spec()


def test_nonsense_is_refused_and_changes_nothing(case: Case) -> None:
    thing = singles(case.make(), tuple(one[:50] for one in case.rounds))
    before = json.dumps(thing.spec())
    for wrong in case.refused:
        with pytest.raises(InvalidInput):
            thing.update(*wrong)
        assert json.dumps(thing.spec()) == before, wrong


def leaves(spec: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = spec.items() if isinstance(spec, dict) else enumerate(spec) if isinstance(spec, list) else []
    return [*([path] if path else []), *(one for key, value in items for one in leaves(value, (*path, key)))]


def test_a_damaged_state_is_refused(case: Case) -> None:
    thing = singles(case.make(), tuple(one[:50] for one in case.rounds))
    restored, spec = type(thing).restored, thing.spec()
    for whole in (None, 3, [], {}, {**spec, "more": 1}, {**spec, "kind": "another"}):
        with pytest.raises(InvalidInput):
            restored(whole)
    for path in leaves(spec):
        for bad in (float("nan"), "x", {"a": 1}, -1e200):
            broken = copy.deepcopy(spec)
            at = broken
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = bad
            with pytest.raises(InvalidInput):
                restored(broken)
        if isinstance(path[-1], str):
            broken = copy.deepcopy(spec)
            at = broken
            for key in path[:-1]:
                at = at[key]
            del at[path[-1]]
            with pytest.raises(InvalidInput):
                restored(broken)


def test_it_says_in_a_line_what_it_knows(case: Case) -> None:
    thing = case.make()
    assert repr(thing).startswith(type(thing).__name__) and len(repr(thing)) < 120
    thing.update(*case.rounds)
    assert f"{N} " in repr(thing) and "nan" not in repr(thing) and len(repr(thing)) < 120


@pytest.mark.parametrize(
    "make",
    [
        lambda: sequential.RunningValue(0.0), lambda: sequential.RunningValue(float("nan")), lambda: sequential.Lift(0.0),
        lambda: sequential.Lift(1.0), lambda: sequential.Lift(0.1, (1.0, 0.0)), lambda: sequential.PairedGain((0.0,)),
        lambda: sequential.PropensityCheck(0.0), lambda: sequential.PropensityCheck(0.1, 1.0),
        lambda: sequential.PropensityCheck(0.1, 0.0), lambda: sequential.EDetector(0.0), lambda: sequential.EDetector(1.0),
        lambda: sequential.EDetector(0.5, 0.5), lambda: sequential.EDetector(0.5, bets=[]),
        lambda: sequential.EDetector(0.5, bets=[1.1]), lambda: sequential.EDetector(0.5, restart=1),
        lambda: sequential.ResidualDetector(shifts=[0.0]), lambda: sequential.SampleRatio([1.0]),
        lambda: sequential.SampleRatio([0.5, 0.6]), lambda: sequential.SampleRatio([1.0, 0.0]),
        lambda: sequential.SampleRatio([0.5, 0.5], concentration=0), lambda: sequential.spent_alpha(0.05, 0),
        lambda: sequential.spent_alpha(1.0, 1),
        lambda: sequential.RunningValue().lower(0), lambda: sequential.RunningValue().lower(1),
        lambda: sequential.RunningValue().log_e(-1), lambda: sequential.PairedGain().certified(0.05, float("inf")),
        lambda: sequential.ValueInterval().interval(2.0),
    ],
)  # fmt: skip
def test_arguments_without_meaning(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidInput):
        make()
