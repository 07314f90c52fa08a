"""Retention: what is old goes by itself, failures are told, and nothing stands in the way of decisions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from live.small_store import Clock, D, small_agent, small_live, traffic
from live.small_store import quick_disk as quick_disk
from manyarms.errors import InvalidInput
from manyarms.live import Compaction, Live, compact, compaction, replay
from manyarms.service import retention
from manyarms.service.retention import Retention

WITHIN = 60.0


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A store with 20 events that are settled and older than 50 seconds."""
    clock = Clock()
    with small_live(tmp_path / "s.db", clock, small_agent(decision="uniform")) as found:
        traffic(found, clock, 20)
        clock.now += 100
        found.learn()
        clock.now += 100
        yield found


class Reports:
    """What was reported, waited for."""

    def __init__(self) -> None:
        self.told: list[Compaction | Exception] = []
        self._change = threading.Condition()

    def __call__(self, result: Compaction | Exception) -> None:
        with self._change:
            self.told.append(result)
            self._change.notify_all()

    def wait_for(self, number: int) -> list[Compaction | Exception]:
        with self._change:
            assert self._change.wait_for(lambda: len(self.told) >= number, WITHIN)
            return list(self.told)


def test_what_is_old_goes_and_it_is_done_again_and_again(live: Live) -> None:
    reports, before = Reports(), live.state_bytes()
    keeping = Retention(live, 50.0, 0.01, reports)
    try:
        first, second = reports.wait_for(2)[:2]
        assert isinstance(first, Compaction) and isinstance(second, Compaction)
        assert first.decisions == 20 and not first.dry_run and second.decisions == 0
        assert keeping.failure is None and keeping.last is not None and keeping.done is not None
        live.reward(live.decide(np.ones(D), id="new").id, 1.0)
    finally:
        keeping.close()
    assert live.state_bytes() == before and live.event("new").id == "new"
    assert replay(live.database).ok
    assert not [thread for thread in threading.enumerate() if thread.name == "manyarms-retention"]


def test_a_dry_run_deletes_nothing(live: Live) -> None:
    reports = Reports()
    keeping = Retention(live, 50.0, 0.01, reports, dry_run=True)
    try:
        for result in reports.wait_for(2):
            assert isinstance(result, Compaction) and result.dry_run and result.decisions == 20
    finally:
        keeping.close()
    assert live.database.read("SELECT COUNT(*) FROM decisions") == [(20,)]


def test_a_failure_is_kept_and_told_and_the_next_time_may_work(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    reports, made, calls = Reports(), threading.Event(), []

    def fails(*arguments: Any, **options: Any) -> Compaction:
        calls.append(1)
        if len(calls) == 1:
            raise RuntimeError("the disk fails")
        return compact(*arguments, **options)

    seen: list[str | None] = []

    def report(result: Compaction | Exception) -> None:
        assert made.wait(WITHIN)
        seen.append(keeping.failure)
        reports(result)
        if len(seen) == 3:
            raise ValueError("a report that cannot be written")

    monkeypatch.setattr(retention, "compact", fails)
    keeping = Retention(live, 50.0, 0.05, report)
    made.set()
    try:
        first, second = reports.wait_for(4)[:2]
    finally:
        keeping.close()
    assert isinstance(first, RuntimeError) and isinstance(second, Compaction) and second.decisions == 20
    assert seen[:2] == ["RuntimeError: the disk fails", None]


def test_the_end_does_not_wait_for_the_whole_work(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed in the middle of a compaction: it stops at the next step, the store is whole, and the next time goes on."""
    monkeypatch.setattr(compaction, "STEP", 1)
    reached, closing, reports, real = threading.Event(), threading.Event(), Reports(), compaction._delete_some

    def slowly(*arguments: Any) -> Callable[..., Any]:
        reached.set()
        assert closing.wait(WITHIN)
        return real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_delete_some", slowly)
        keeping = Retention(live, 50.0, 0.01, reports)
        assert reached.wait(WITHIN)
        live.decide(np.ones(D), id="meanwhile")  # nobody waits for it
        keeping._stop.set()
        closing.set()
        keeping.close()
    assert not reports.told
    [(left,)] = live.database.read("SELECT COUNT(*) FROM decisions")
    assert left == 20, "one went, and one came"
    assert replay(live.database).ok
    again = Retention(live, 50.0, 0.01, reports)
    reports.wait_for(1)
    again.close()
    assert live.database.read("SELECT id FROM decisions") == [("meanwhile",)]


def test_nonsense_is_refused(live: Live) -> None:
    for keep, every in ((-1.0, 1.0), (1.0, 0.0), (float("nan"), 1.0), ("30d", 1.0)):
        with pytest.raises(InvalidInput):
            Retention(live, keep, every)  # type: ignore[arg-type]
