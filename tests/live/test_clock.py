"""Clocks that jump: the log's times never fall, no default comes early, and the lease passes on all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import manyarms as ma
from live.making import Clock, X, a_live, an_agent, from_origin
from manyarms.live import Live, lease
from manyarms.live.stores.opening import open_database
from manyarms.live.stores.steady_clock import SteadyClock

HOUR = 3600.0


class Time:
    """The system's clock, which can be set, and one that measures what passes."""

    def __init__(self) -> None:
        self.wall, self.passing = Clock(10_000.0), Clock(5.0)
        self.clock = SteadyClock(self.wall, self.passing)

    def pass_by(self, seconds: float) -> None:
        self.wall.now += seconds
        self.passing.now += seconds


def a_store(path: Path, clock: SteadyClock) -> Live:
    return ma.live.open(open_database(path, clock=clock), an_agent(), background=False, default=-0.5, wait=100.0)


def times(live: Live) -> list[float]:
    """Of everything in the log, in its order."""
    rows = live.database.read(
        "SELECT position, at FROM decisions UNION ALL SELECT position, at FROM rewards UNION ALL SELECT upto, at FROM chunks"
    )
    return [at for _, at in sorted(rows)]


def test_time_goes_on_when_the_clock_is_set_back() -> None:
    time = Time()
    assert time.clock() == 10_000.0
    time.pass_by(2.0)
    assert time.clock() == 10_002.0
    time.wall.now -= HOUR
    assert time.clock() == 10_002.0
    time.pass_by(3.0)
    assert time.clock() == 10_005.0
    assert time.clock.after(9_000.0) == 10_005.0
    time.wall.now += HOUR
    assert time.clock() == 10_005.0
    time.wall.now += HOUR
    assert time.clock() == 10_005.0 + HOUR
    assert time.clock.after(20_000.0) == 20_000.0  # somebody else knows better
    time.pass_by(1.0)
    assert time.clock() == 20_001.0


def test_an_hour_back_and_forward_again_gives_no_default_early_and_none_late(tmp_path: Path) -> None:
    time = Time()
    with a_store(tmp_path / "live.db", time.clock) as live:
        live.decide(X, id="first")
        time.wall.now -= HOUR
        time.pass_by(60.0)
        live.decide(X, id="second")
        assert live.event("second").at == 10_060.0
        time.pass_by(30.0)
        time.wall.now += HOUR
        live.decide(X, id="third")
        live.learn()
        assert live.status()["learned"] == 0  # none has waited for 100 s
        time.wall.now -= HOUR  # and back again
        for passed, learned in ((9.0, 0), (1.0, 1), (59.0, 1), (1.0, 2), (29.0, 2), (1.0, 3)):
            time.pass_by(passed)
            live.learn()
            assert live.status()["learned"] == learned
        assert times(live) == sorted(times(live))
        assert live.state_bytes() == from_origin(live)


def test_a_process_whose_clock_is_behind_goes_on_from_the_log(tmp_path: Path) -> None:
    first, second = Time(), Time()
    second.wall.now -= HOUR
    second.clock = SteadyClock(second.wall, second.passing)
    with a_store(tmp_path / "live.db", first.clock) as one:
        one.decide(X, id="one")
    with a_store(tmp_path / "live.db", second.clock) as two:  # started when the clock had been set back
        two.decide(X, id="two")
        assert two.event("two").at == 10_000.0
        second.pass_by(60.0)
        two.decide(X, id="three")
        assert two.event("three").at == 10_060.0
        second.wall.now += HOUR  # the clock is right again
        second.pass_by(39.0)
        two.learn()
        assert two.status()["learned"] == 0
        second.pass_by(1.0)
        two.learn()
        assert two.status()["learned"] == 2


def test_the_lease_passes_on_while_the_logs_time_stands_still(tmp_path: Path) -> None:
    clock, passing = Clock(10_000.0), Clock(0.0)
    path = tmp_path / "live.db"
    one, two = a_live(clock=clock, path=path), a_live(clock=clock, path=path)
    two._learner._sighting = lease.Sighting(passing)
    one.decide(X)
    one.learn()
    clock.now -= HOUR  # and `one` is never heard of again
    two.decide(X)
    two.learn()
    assert not two.status()["learner"]
    passing.now += lease.SECONDS - 0.5
    two.learn()
    assert not two.status()["learner"]
    one._learner._renewed = -float("inf")  # but it was
    one.learn()
    passing.now += lease.SECONDS - 0.5
    two.learn()
    assert not two.status()["learner"]
    passing.now += lease.SECONDS
    two.decide(X)
    two.learn()
    assert two.status()["learner"]
    assert two.status()["waiting"] == 0
    one._learner._renewed = float("inf")
    two.decide(X)
    one.learn()
    assert not one.status()["learner"]
    tokens = [token for (token,) in two.database.read("SELECT token FROM chunks ORDER BY version")]
    assert tokens == [1, 1, 2]
    for live in (one, two):
        live.close()


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_plain_clock_that_jumps_does_no_harm(jump: float) -> None:
    clock = Clock(10_000.0)
    with a_live(clock=clock, default=-0.5, wait=10.0) as live:
        for step in range(6):
            clock.now += jump if step % 2 else -jump
            live.decide(X, id=str(step))
            if step % 3 == 0:
                live.reward(str(step), 1.0)
            live.learn()
        assert times(live) == sorted(times(live))
        assert live.state_bytes() == from_origin(live)
