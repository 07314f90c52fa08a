"""Erasing events that were decided before the origin: what the origin has learned from cannot be taken back, the rest can."""

from __future__ import annotations

import pytest

from live.making import Clock, X, a_live, agent_of, an_agent, from_origin, same_belief
from manyarms.errors import UnknownEvent


def test_what_the_origin_has_learned_from_cannot_be_erased_and_the_rest_can() -> None:
    clock = Clock()
    with a_live(clock=clock, aggregate="sum", default=0.0, wait=1000.0) as live:
        first = live.decide(X, id="learned")
        live.decide(X, id="waits")
        live.reward("learned", 0.5)
        live.learn()
        clock.now += 100.0
        live.reward("learned", 0.25, id="another")  # so that compaction leaves its record
        live.learn()
        assert live.compact(50.0).version == 1
        with pytest.raises(UnknownEvent, match="can no longer be taken back"):
            live.erase("learned")
        live.erase("waits")
        assert live.event("waits").erased
        assert live.status()["learned"] == 1
        clock.now += 2000.0  # nothing becomes of the one that waited
        live.learn()
        live.reward("learned", 0.125, id="a third")
        live.sync()
        expected = an_agent()
        expected.observe(X[None], [first.action], [0.875])
        same_belief(agent_of(live), expected)
        assert live.state_bytes() == from_origin(live)
        live.decide(X, id="later")
        live.reward("later", 1.0)
        live.sync()
        live.erase("later")
        same_belief(agent_of(live), expected)
