"""Ctrl-C and other signals: a change is whole, or not at all, and an agent never stays locked."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import manyarms as ma
from manyarms.agents import shared_belief
from manyarms.agents.interrupts import HeldBack

pytestmark = pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="signals")
X = np.array([0.5, -1.0])


def agent_of(actions: int = 20) -> ma.Agent:
    return ma.HierTS(ma.HierarchicalPrior(actions, np.zeros(2), np.eye(2), np.eye(2)), seed=0)


@pytest.fixture(autouse=True)
def keyboard() -> Iterator[None]:
    """What a terminal has; a job in the background of a script starts with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """A signal comes in the midst of the next change, once the leaf has learned and the root has not."""
    learn = ma.beliefs.GaussianRoot.observe

    def observe(self: ma.beliefs.GaussianRoot, *evidence: object) -> None:
        monkeypatch.setattr(ma.beliefs.GaussianRoot, "observe", learn)
        signal.raise_signal(number)
        learn(self, *evidence)  # type: ignore[arg-type]

    monkeypatch.setattr(ma.beliefs.GaussianRoot, "observe", observe)


def test_the_keyboard_waits_for_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, other = agent_of(), agent_of()
    before = signal.getsignal(signal.SIGINT)
    interrupted(monkeypatch, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        agent.observe(X, 3, 1.0)
    assert signal.getsignal(signal.SIGINT) is before
    other.observe(X, 3, 1.0)
    assert agent.version == 1 and agent.decide(X, draw=5) == other.decide(X, draw=5)
    for mine, its in zip(agent.posterior(4), other.posterior(4), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_another_handler_that_raises_ends_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a change is there, so that nobody is given the belief any more, and nobody waits for it."""

    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    agent = agent_of()
    frozen = agent.copy().snapshot()
    usual = signal.signal(signal.SIGTERM, stop)
    try:
        interrupted(monkeypatch, signal.SIGTERM)
        with pytest.raises(Stop):
            agent.observe(X, 3, 1.0)
    finally:
        signal.signal(signal.SIGTERM, usual)
    for call in (lambda: agent.decide(X), lambda: agent.observe(X, 1, 0.0), agent.snapshot):
        with pytest.raises(ma.errors.InvalidInput, match=r"broke off half way \(Stop\)"):
            call()
    said: list[str] = []

    def ask() -> None:
        try:
            agent.decide(X)
        except ma.ManyArmsError as error:
            said.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert len(said) == 1 and 0 <= frozen.decide(X) < 20


def test_a_signal_before_the_change_begins_leaves_the_agent_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever on the way to the change it comes: nothing was changed, and the next call goes through."""
    agent = agent_of()

    class Interrupted(shared_belief.Held):
        """Raises when it is asked whether it is pinned: in the midst of the lock."""

        __slots__ = ()

        @property
        def pinned(self) -> bool:
            raise KeyboardInterrupt

    held = agent._belief._published
    agent._belief._published = Interrupted(held.belief, held.version)
    with pytest.raises(KeyboardInterrupt):
        agent.observe(X, 3, 1.0)
    agent._belief._published = held
    agent.observe(X, 3, 1.0)
    assert agent.version == 1


def test_in_other_threads_and_without_a_handler_nothing_is_held_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    HeldBack(-1).release()
    assert signal.getsignal(signal.SIGINT) is before
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        held = HeldBack(threading.get_ident())
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        held.release()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
