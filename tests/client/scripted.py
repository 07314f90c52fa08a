"""A service in memory that keeps what it was told as a live store does, and fails as it is told; and both clients alike."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import httpx

from manyarms.client import AsyncClient, Backoff, Client

URL = "http://localhost"

BEFORE: dict[str, Callable[[httpx.Request], Exception]] = {  # nothing has arrived
    "refused": lambda request: httpx.ConnectError("refused", request=request),
    "no route": lambda request: httpx.ConnectTimeout("no route", request=request),
    "no room": lambda request: httpx.PoolTimeout("no room", request=request),
    "half sent": lambda request: httpx.WriteError("half sent", request=request),
}
AFTER: dict[str, Callable[[httpx.Request], Exception]] = {  # it has arrived and was done, and nobody learns of it
    "broke": lambda request: httpx.ReadError("broke", request=request),
    "late": lambda request: httpx.ReadTimeout("late", request=request),
    "cut": lambda request: httpx.RemoteProtocolError("cut", request=request),
}
NEVER_CONNECTED = ("refused", "no route", "no room")
UNDONE_STATUSES = ("429", "503")
DONE_STATUSES = ("502", "504")
FAILURES = (*BEFORE, *AFTER, *UNDONE_STATUSES, *DONE_STATUSES)
"""Every way in which a try can fail and the next one may not."""


class Scripted:
    """Decisions, rewards and activations, each under its id. failures: what becomes of the first requests; then all goes well."""

    def __init__(self, failures: Iterable[str | None] = ()) -> None:
        self.failures = list(failures)
        self.decisions: dict[str, tuple[str, dict[str, Any]]] = {}
        self.rewards: dict[tuple[str, object, str], float] = {}
        self.active: set[str] = set()
        self.stored: Counter[object] = Counter()  # how often something was written
        self.seen: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        failure = self.failures.pop(0) if self.failures else None
        if failure in BEFORE:
            raise BEFORE[failure](request)
        if failure in UNDONE_STATUSES:
            return httpx.Response(int(failure), headers={"Retry-After": "7"}, json=problem(int(failure), "overloaded"))
        answer = self.done(request)
        if failure in AFTER:
            raise AFTER[failure](request)
        return answer if failure is None else httpx.Response(int(failure), text="<html>a gateway</html>")

    def done(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        match request.url.path:
            case "/v1/decide":
                status, answer = self.decide(body)
                return httpx.Response(status, json=answer)
            case "/v1/decide/batch":
                found = [self.decide(one) for one in body["decisions"]]
                return httpx.Response(200, json={"decisions": [{"status": status, **one} for status, one in found]})
            case "/v1/reward":
                status, answer = self.reward(body)
                return httpx.Response(status, json=answer) if answer else httpx.Response(status)
            case "/v1/reward/batch":
                found = [self.reward(one) for one in body["rewards"]]
                return httpx.Response(200, json={"rewards": [{"status": status, **one} for status, one in found]})
            case "/v1/activate":
                if body["event"] not in self.decisions:
                    return httpx.Response(404, json=problem(404, "unknown-event"))
                self.active.add(body["event"])
                return httpx.Response(204)
        return httpx.Response(404, json=problem(404, None))

    def decide(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        event, question = body["id"], json.dumps({**body, "id": None}, sort_keys=True)
        if event not in self.decisions:
            self.stored["decision", event] += 1
            number = len(self.decisions)  # another answer every time: a second decision would be seen
            self.decisions[event] = question, decision(event, number)
        asked, answer = self.decisions[event]
        return (200, answer) if asked == question else (409, problem(409, "conflict"))

    def reward(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["event"] not in self.decisions:
            return 404, problem(404, "unknown-event")
        key = body["event"], body.get("action"), body.get("id", "")
        if key not in self.rewards:
            self.stored["reward", key] += 1
            self.rewards[key] = body["value"]
        return (204, {}) if self.rewards[key] == body["value"] else (409, problem(409, "conflict"))


def decision(event: str, action: object = 0) -> dict[str, Any]:
    return {
        "id": event, "action": action, "actions": [action, 1000], "propensity": 0.25, "propensity_kind": "exact",
        "arm": "agent", "version": 3, "logged": True, "active": True,
        "learning": {"rows": 12, "lag": 4, "version": 3},
    }  # fmt: skip


def problem(status: int, name: str | None, **extra: object) -> dict[str, Any]:
    kind = "about:blank" if name is None else f"urn:manyarms:problem:{name}"
    return {
        "type": kind,
        "title": "Refused",
        "status": status,
        "detail": "because",
        "instance": "urn:request:7",
        **extra,
    }


class Pauses:
    """What was waited for: nobody waits here."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


class Sync:
    """A `Client`, called by the names of its methods."""

    def __init__(self, handler: Callable[[httpx.Request], httpx.Response], **options: Any) -> None:
        self.pauses = Pauses()
        options.setdefault("backoff", Backoff(sleep=self.pauses, random=lambda: 0.5))
        self.client = Client(options.pop("url", URL), transport=httpx.MockTransport(handler), **options)

    def __call__(self, name: str, *arguments: Any, **given: Any) -> Any:
        found = getattr(self.client, name)(*arguments, **given)
        return list(found) if isinstance(found, Iterator) else found


class Async:
    """An `AsyncClient`, called in the same way."""

    def __init__(self, handler: Callable[[httpx.Request], httpx.Response], **options: Any) -> None:
        self.pauses = Pauses()
        options.setdefault("backoff", Backoff(sleep=self.pauses, random=lambda: 0.5))
        self.client = AsyncClient(options.pop("url", URL), transport=httpx.MockTransport(handler), **options)

    def __call__(self, name: str, *arguments: Any, **given: Any) -> Any:
        async def awaited() -> Any:
            found = getattr(self.client, name)(*arguments, **given)
            return [one async for one in found] if isinstance(found, AsyncIterator) else await found

        return asyncio.run(awaited())


BOTH = (Sync, Async)
