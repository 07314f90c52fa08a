"""A belief that threads share: many read it side by side, one at a time changes it, and nobody sees a change half done.

Readers count themselves in and out of the *published* belief, which is not changed while anybody is in. Learning is serial, and
there are three ways to apply a change:

- in place, as long as readers and learners have never met: nobody reads the published belief, and whoever comes waits until the
  change is done. This is all that one thread ever needs, and it costs two short locks.
- on a twin, once they have met. The twin lags behind the published belief by the last change: that is applied to it first, then
  the new one, then the twin is published and the former one becomes the twin. Readers never wait any more. The learner waits
  until the twin's last readers have left, but not longer than a fresh copy of the belief takes; then it makes one, and the old
  twin is left to its readers. Both have seen the same changes in the same order and are equal to the last bit.
- on a fresh copy, where a snapshot holds the published belief: that stays as it is as long as the snapshot lives.

A change in place that breaks off half way (no memory left, a link or a signal handler that raises) leaves a belief that means
nothing. It is not given out any more; snapshots and saves from before are what they were. On a twin or a copy nothing is lost.

What readers derive from a belief and keep in it (a factor, an index) must be replaced whole, in one assignment: two readers may
derive it at the same time, and a copy may be made meanwhile.
"""

from __future__ import annotations

import copy
import time
import weakref
from collections.abc import Callable
from threading import Condition, RLock, get_ident
from typing import Any, TypeVar

import numpy as np

from manyarms.agents.interrupts import HeldBack
from manyarms.beliefs import Belief
from manyarms.errors import InvalidInput

Result = TypeVar("Result")
Change = tuple[Callable[..., Any], tuple[Any, ...]]


class Pin:
    """As long as it lives, the belief it belongs to does not change."""

    __slots__ = ("__weakref__",)


class Held:
    """A belief, how many changes it has seen, and who needs it as it is."""

    __slots__ = ("_pin", "belief", "readers", "version")

    def __init__(self, belief: Belief, version: int) -> None:
        self.belief = belief
        self.version = version
        self.readers = 0
        self._pin: weakref.ref[Pin] | None = None

    def pin(self) -> Pin:
        """One pin for all who want it; it is gone when the last of them is, and nobody has to say so."""
        pin = None if self._pin is None else self._pin()
        if pin is None:
            pin = Pin()
            self._pin = weakref.ref(pin)
        return pin

    @property
    def pinned(self) -> bool:
        """Whether it must never change again."""
        return self._pin is not None and self._pin() is not None


class SharedBelief:
    """The published belief, and its twin once there are several threads."""

    def __init__(self, belief: Belief, version: int = 0) -> None:
        """A belief that belongs to another agent is copied: two learners would change it under each other's hands."""
        if belief.taken:
            belief = copy.deepcopy(belief)
        belief.taken = True
        self.learning = RLock()  # held by the one who learns
        # held for moments: counts, and what is published; a signal handler that asks then is not locked out
        self._lock = RLock()
        self._news = Condition(self._lock)  # a change in place is done, or a reader has left the twin
        self._published = Held(belief, version)
        self._changing = 0  # the thread that changes the published belief in place; it stays where that broke off
        self._broken_off = ""  # by what
        self._apart_changing = False  # a twin or a copy is being changed
        self._met = False  # readers and learners have met
        self._twin: Held | None = None
        self._lag: list[Change] = []  # what the twin has not seen
        self._awaited: Held | None = None  # the twin, while a learner waits for its readers
        self._copying = 0.0  # seconds that the last copy took

    @property
    def belief(self) -> Belief:
        """The published belief; it may change after any change."""
        return self._published.belief

    def start_at(self, version: int) -> None:
        """Count changes from here: what was loaded has seen some."""
        self._published.version = version

    # ---- reading ------------------------------------------------------------------------------------------------------

    def enter(self) -> Held:
        """The published belief, which stays as it is until `leave`."""
        with self._lock:
            if self._changing:
                self._wait()
            held = self._published
            held.readers += 1
        return held

    def leave(self, held: Held) -> None:
        """The reader has what it came for."""
        with self._lock:
            held.readers -= 1
            if held is self._awaited and not held.readers:
                self._news.notify_all()

    def _wait(self) -> None:
        if self._changing == get_ident() or self._broken_off:
            raise self._half_changed()
        self._met = True
        while self._changing:
            if self._broken_off:
                raise self._half_changed()
            self._news.wait(0.1)  # for a while: a learner that is interrupted may end without a word

    def frozen(self) -> FrozenBelief:
        """The published belief, never to be changed again while the result lives."""
        with self._lock:
            if self._changing:
                self._wait()
            return FrozenBelief(self._published, self._published.pin())

    # ---- learning -----------------------------------------------------------------------------------------------------

    def change(self, operation: Callable[..., Result], *arguments: Any) -> Result:
        """operation(belief, *arguments), published when it is done. The caller holds `learning`.

        The operation does the same to equal beliefs. What is refused is refused before: an operation that raises, by whatever
        error, has broken off half way.
        """
        me = get_ident()  # asked first: a signal's handler may run wherever something is called
        keyboard = HeldBack(me)
        try:
            return self._change(me, operation, arguments)
        finally:
            keyboard.release()

    def _change(self, me: int, operation: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        now, mine, done, broken_off = self._published, False, 0, ""
        try:
            with self._lock:
                now = self._published
                if self._changing or self._apart_changing:
                    raise self._half_changed()
                self._met = met = self._met or now.readers > 0
                if not met and not now.pinned:
                    self._changing, mine = me, True
            if not mine:
                return self._change_apart(now, met, operation, arguments)
            broken_off = "an exception"
            result = operation(now.belief, *arguments)
            done, broken_off = 1, ""
            return result
        except BaseException as error:  # whatever it was: nobody knows how much of the change is done
            broken_off = broken_off and error.__class__.__name__
            raise
        finally:
            if mine:  # nothing is called until all is set: a handler that raises comes before, or after
                now.version += done
                self._broken_off = broken_off
                if not broken_off:
                    self._changing = 0
                if self._met:
                    with self._lock:
                        self._news.notify_all()

    def _change_apart(
        self, now: Held, met: bool, operation: Callable[..., Result], arguments: tuple[Any, ...]
    ) -> Result:
        self._apart_changing = True
        try:
            kept = tuple(map(_own, arguments))
            held = self._free_twin(now) if met else self._copy_of(now)
            result = operation(held.belief, *kept)
            held.version += 1
            with self._lock:
                self._published = held
            if met:
                self._twin, self._lag = now, [(operation, kept)]
            return result
        finally:
            self._apart_changing = False

    def _half_changed(self) -> InvalidInput:
        """What whoever asks for a belief is told that is half changed, now or for ever."""
        if self._broken_off:
            came = f"one whose learning broke off half way ({self._broken_off})"
            return InvalidInput("agent", came, "a snapshot, a copy or a save of it from before")
        came = "a call from inside its own learning, by a link or a signal handler"
        return InvalidInput("agent", came, "calls from outside: its belief is half changed")

    def _free_twin(self, now: Held) -> Held:
        """A belief equal to the published one that nobody reads; whoever asks for it puts it back."""
        twin, self._twin = self._twin, None  # should a change fail half way, the twin is lost and not used again
        if twin is None or not self._is_left(twin):
            return self._copy_of(now)
        for operation, arguments in self._lag:
            operation(twin.belief, *arguments)
        twin.version = now.version
        return twin

    def _is_left(self, twin: Held) -> bool:
        """Whether nobody needs the twin any more, after a while at most."""
        with self._lock:
            if twin.readers and not twin.pinned:
                self._awaited = twin
                self._news.wait_for(lambda: not twin.readers, self._copying)
                self._awaited = None
            return not twin.readers and not twin.pinned

    def _copy_of(self, held: Held) -> Held:
        start = time.perf_counter()
        twin = Held(copy.deepcopy(held.belief), held.version)
        self._copying = time.perf_counter() - start
        return twin

    # ---- copies -------------------------------------------------------------------------------------------------------

    def _apart(self, memo: dict[int, Any] | None = None) -> tuple[Belief, int]:
        """A copy of what is published, and its version."""
        held = self.enter()
        try:
            belief = copy.deepcopy(held.belief, memo)
            belief.taken = False
            return belief, held.version
        finally:
            self.leave(held)

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedBelief:
        return SharedBelief(*self._apart(memo))

    def __reduce__(self) -> tuple[type[SharedBelief], tuple[Belief, int]]:
        return SharedBelief, self._apart()


class FrozenBelief:
    """A belief that does not change as long as this lives."""

    def __init__(self, held: Held, pin: Pin) -> None:
        self._held = held
        self._pin = pin

    @property
    def belief(self) -> Belief:
        """The belief."""
        return self._held.belief

    def enter(self) -> Held:
        """The belief, to be read."""
        return self._held

    def leave(self, held: Held) -> None:
        """Nothing: no learner waits for it."""

    def frozen(self) -> FrozenBelief:
        """Itself."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenBelief:
        return _frozen(copy.deepcopy(self._held.belief, memo), self._held.version)

    def __reduce__(self) -> tuple[Callable[[Belief, int], FrozenBelief], tuple[Belief, int]]:
        return _frozen, (self._held.belief, self._held.version)


def _frozen(belief: Belief, version: int) -> FrozenBelief:
    held = Held(belief, version)
    return FrozenBelief(held, held.pin())


def _own(argument: Any) -> Any:
    """A copy that the caller cannot change: the twin learns from it later."""
    return argument.copy() if type(argument) is np.ndarray else copy.deepcopy(argument)


__all__ = ["FrozenBelief", "Held", "SharedBelief"]
