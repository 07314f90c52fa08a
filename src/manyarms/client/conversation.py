"""The tries of a call: what is sent, what is waited for, when it ends. Without a socket, a clock or an event loop.

A conversation is a generator. It yields a call to be sent, and is told the answer or the failure; or it yields the
seconds to wait. The clients differ in how they do the two.

**Who is tried again.** Where no connection was made, nothing has happened: any call. Where it broke or took too long, or the
status is 429, 502, 503 or 504: calls that may arrive twice, because they only read or have ids. Everything else is final.

**How long.** Before try n + 1 a uniform draw from [0, min(longest, first · 2ⁿ)], so that many clients do not come back together
(Brooker, "Exponential Backoff and Jitter", 2015); after a Retry-After that long and the draw on top, but at most
`longest_asked` in all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from manyarms._base import validate
from manyarms._base.tables import Shown
from manyarms._base.text import counted
from manyarms.client.call import Answer, Call
from manyarms.client.errors import ServiceError, Unreachable
from manyarms.client.problems import TRANSIENT, error_of, refusal
from manyarms.client.reading import Unreadable
from manyarms.errors import InvalidInput

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Backoff(Shown):
    """How long to wait between tries, in seconds.

    first: at most so long before the second try, twice that before the third, and so on; longest: never longer than that.
    longest_asked: what is waited at most where the service says how long. random: numbers in [0, 1); sleep: waits, for an
    AsyncClient perhaps a coroutine, the usual one unless said; now: the time, for a Retry-After that is a date.
    """

    first: float = 0.1
    longest: float = 5.0
    longest_asked: float = 30.0
    random: Callable[[], float] = field(default=random.random, repr=False)
    sleep: Callable[[float], object] | None = field(default=None, repr=False)
    now: Callable[[], float] = field(default=time.time, repr=False)

    def __post_init__(self) -> None:
        for name in ("first", "longest", "longest_asked"):
            validate.not_negative(name, getattr(self, name))
        for name in ("random", "sleep", "now"):
            given = getattr(self, name)
            if not callable(given) and not (name == "sleep" and given is None):
                raise InvalidInput(name, validate.describe(given), "a function")

    def wait(self, tried: int, asked: float | None) -> float:
        """Seconds to wait after so many tries, where the service asked for so many."""
        drawn = self.random() * min(self.longest, self.first * 2.0 ** min(tried - 1, 60))
        return drawn if asked is None else min(self.longest_asked, asked + drawn)

    def asked(self, answer: Answer) -> float | None:
        """What the service asks for: seconds, or a date; None where it does not, or says nothing that can be read."""
        said = answer.headers.get("retry-after", "").strip()
        if said.isascii() and said.isdigit():
            return float(min(int(said[:12]), 10**9))
        try:
            return max(0.0, parsedate_to_datetime(said).timestamp() - self.now())
        except (TypeError, ValueError, OverflowError):
            return None


@dataclass(frozen=True)
class Failure:
    """No answer. connected: whether there was a connection, so that the call may have arrived. error: what the network said."""

    error: Exception
    connected: bool


@dataclass(frozen=True)
class Wait:
    """Wait so many seconds."""

    seconds: float


def conversation(
    call: Call[T], retries: int, backoff: Backoff
) -> Generator[Call[T] | Wait, Answer | Failure | None, T]:
    """The steps of a call, up to its result or its error."""
    if call.known is not None:
        return call.known
    tried = 0
    while True:
        came = yield call
        tried += 1
        outcome, asked = _outcome(call, came, tried, backoff)
        if tried > retries or not _once_more(call, came, outcome):
            break
        yield Wait(backoff.wait(tried, asked))
    if isinstance(outcome, ServiceError):
        raise outcome from (came.error if isinstance(came, Failure) else None)
    return outcome


def _outcome(
    call: Call[T], came: Answer | Failure | None, tried: int, backoff: Backoff
) -> tuple[T | ServiceError, float | None]:
    """The result or the error that this try gives, and how long the service wants to be left alone."""
    if isinstance(came, Failure):
        after = f" ({counted(tried, 'try', 'tries')})" if tried > 1 else ""
        why = f"{type(came.error).__name__}: {came.error}".rstrip(": ")
        return Unreachable(f"{call.method} {call.path}: no answer{after}: {why}"), None
    assert came is not None
    if not (200 <= came.status < 300 or came.status in call.fine):
        asked = backoff.asked(came)
        return error_of(call, came, asked), asked
    try:
        return call.read(came), None
    except Unreadable as error:
        return refusal(f"{call.method} {call.path}: {error}", came), None


def _once_more(call: Call[T], came: Answer | Failure | None, outcome: T | ServiceError) -> bool:
    if isinstance(came, Failure):
        return call.again or not came.connected
    assert came is not None
    if isinstance(outcome, ServiceError):
        return call.again and came.status in TRANSIENT
    return call.unfinished is not None and call.unfinished(outcome)


__all__ = ["Backoff", "Failure", "Wait", "conversation"]
