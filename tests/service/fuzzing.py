"""Requests that mean no good, over the whole API: in tests/, python -m service.fuzzing --requests 100000 --seed 0.

Schemathesis makes requests from the API's own description (/openapi.json): some that it allows, some that it does not. They are
about something: ids of events that were decided, of actions and of arms take the place of made-up ones, so that events are
decided, rewarded, activated, looked at, explained and erased, actions added, changed, retired and reinstated, arms loaded,
deployed, promoted and removed, in whatever order comes. Every answer is checked (`service.fuzz_checks`, and the description's
statuses, types and forms); afterwards the store must replay. Each distinct failure is told once, with a command that repeats it.
The exit code is 1 where there was any.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

import manyarms as ma
from live import tortured
from manyarms.client import in_process
from manyarms.service import Service, create_app, make_config
from service.fuzz_checks import SECRET, SECRET_NUMBER, wrong_with
from service.server import Server, save_agent

A_BATCH = 250  # requests made in one go: hypothesis remembers what it has made
KNOWN = 0.7  # of the ids, contexts and the like: those that are known take the place of made-up ones
PLACES = {
    "id": "events",
    "event": "events",
    "action": "actions",
    "baseline": "actions",
    "name": "arms",
    "agent": "arms",
}
PLACES |= {"arm": "arms", "holdout_arm": "arms", "eventId": "events"}
LISTS = {"candidates": "actions", "exclude": "actions", "actions": "actions", "shadows": "arms"}


def schemathesis() -> Any:
    """The package, imported without what it warns of in its own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis as package
        import schemathesis.checks
        import schemathesis.specs.openapi.checks
    return package


@dataclass
class Known:
    """What there is: ids of events, actions and arms, the newest at the end."""

    events: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=lambda: list(range(tortured.ACTIONS)))
    arms: list[Any] = field(default_factory=lambda: ["agent", *tortured.OTHERS])

    def one(self, what: str, rng: random.Random) -> Any:
        """One of them, more likely a new one."""
        known = getattr(self, what)[-rng.choice([3, 30, 300]) :]
        return rng.choice(known) if known else "nothing"

    def learn(self, told: Any) -> None:
        """Ids of an answer."""
        if isinstance(told, dict):
            if isinstance(told.get("id") or told.get("eventId"), str) and {"actions", "ranking", "slots"} & set(told):
                self.events.append(told.get("id") or told["eventId"])
            for one in told.get("decisions") or ():
                self.learn(one)
            self.actions += [one for one in told.get("ids") or () if isinstance(one, int | str)]


class Fuzz:
    """Requests from a description, sent by a client; what was wrong with their answers."""

    def __init__(self, client: httpx.Client, random_seed: int, key: str | None = None) -> None:
        self.client, self.key = client, key
        self.rng = random.Random(random_seed)
        self.known = Known()
        self.failures: dict[str, str] = {}
        self.statuses: Counter[str] = Counter()
        self.seconds = 0.0
        package = schemathesis()
        self._schema = package.openapi.from_dict(client.get("/openapi.json").json())
        self._checks = [
            package.checks.not_a_server_error,
            package.specs.openapi.checks.status_code_conformance,
            package.specs.openapi.checks.content_type_conformance,
            package.specs.openapi.checks.response_headers_conformance,
            package.specs.openapi.checks.response_schema_conformance,
        ]
        self.operations = [found.ok() for found in self._schema.get_all_operations()]
        self._negative = package.GenerationMode.NEGATIVE
        self._ways = [way for operation in self.operations for way in self._of(operation)]

    # ---- making requests

    def run(self, requests: int, seconds: float = float("inf"), progress: Callable[[int], None] | None = None) -> int:
        """So many requests, or as many as fit into the time; how many there were."""
        began, sent = time.monotonic(), 0
        while sent < requests and time.monotonic() - began < seconds:
            sent += self._batch(min(A_BATCH, requests - sent))
            if progress is not None:
                progress(sent)
        self.seconds += time.monotonic() - began
        return sent

    def _batch(self, number: int) -> int:
        before = self.statuses.total()

        @seed(self.rng.randrange(2**63))
        @settings(
            max_examples=number, database=None, deadline=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(st.sampled_from(self._ways).flatmap(lambda way: way))
        def requests(case: Any) -> None:
            if self.statuses.total() - before < number:
                self.send(case)

        requests()
        return self.statuses.total() - before

    def _of(self, operation: Any) -> list[Any]:
        """Ways to make requests of an operation: what is allowed, and in one of three what is not."""
        allowed = operation.as_strategy()
        if not (operation.body or operation.query or operation.path_parameters):
            return [allowed]
        return [allowed, allowed, operation.as_strategy(generation_mode=self._negative)]

    def _fit(self, case: Any) -> None:
        """Put what is known in the place of what was made up."""
        for parameters in (case.path_parameters, case.query):
            for name in parameters or {}:
                if name in PLACES and self.rng.random() < KNOWN:
                    parameters[name] = str(self.known.one(PLACES[name], self.rng))
        case.body = self._fitted(case.body)

    def _fitted(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._fitted(one, str(key)) for key, one in value.items()}
        if self.rng.random() < KNOWN and name in PLACES and not (name == "id" and self.rng.random() < 0.7):
            return self.known.one(PLACES[name], self.rng)
        if isinstance(value, list):
            if name in LISTS and self.rng.random() < KNOWN:
                return [self.known.one(LISTS[name], self.rng) for _ in range(self.rng.randrange(1, 4))]
            if name == "weights" and self.rng.random() < KNOWN:
                return tortured.weights_of(self.rng.randrange(9))
            return [self._fitted(one) for one in value]
        return value

    def _shape(self, body: Any, path: str) -> Any:
        """Contexts that fit, folders that are there, shares of arms that there are: otherwise hardly anything would be done."""
        if not isinstance(body, dict) or self.rng.random() > KNOWN:
            return body
        several = body.get("decisions")
        for one in [body, *(x for x in (several if isinstance(several, list) else ()) if isinstance(x, dict))]:
            if isinstance(one.get("context"), dict | list) and self.rng.random() < 0.3:  # a context that does not fit
                one["context"] = self.rng.choice(
                    [{"age": SECRET}, {SECRET: 1}, [SECRET], [SECRET_NUMBER], [1, [SECRET], 2]]
                )
            elif "context" in one or path.startswith("/v1/decide"):
                one["context"] = [self.rng.uniform(-1, 1) for _ in range(tortured.DIM)]
                if self.rng.random() < 0.8:
                    one.pop("action_contexts", None)
                    one.pop("baseline", None)
                if isinstance(one.get("k"), int):
                    one["k"] = self.rng.randint(1, 3)
        if "folder" in body:
            body["folder"] = self.rng.choice(tortured.OTHERS)
        if "shares" in body:
            arms = self.rng.sample(self.known.arms[:3], self.rng.randint(1, 2))
            body["shares"] = dict.fromkeys(arms, 1.0 / len(arms))
        return body

    # ---- sending them

    def send(self, case: Any) -> None:
        """One request, and all checks of its answer."""
        from requests import Request

        self._fit(case)
        case.body = self._shape(case.body, case.path)
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        prepared = Request(
            **_plain(case.as_transport_kwargs(base_url=str(self.client.base_url), headers=headers))
        ).prepare()
        content = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
        try:
            request = httpx.Request(
                str(prepared.method), str(prepared.url), headers=list(prepared.headers.items()), content=content
            )
        except (httpx.InvalidURL, ValueError, TypeError):  # what cannot be sent
            return
        try:
            response = self.client.send(request)
            response.elapsed = timedelta(0)  # a transport without a socket tells none
        except httpx.HTTPError as error:
            self.fail(f"{case.method} {case.operation.path}: {type(error).__name__}", request)
            return
        self.statuses[f"{case.method.upper()} {case.operation.path} {response.status_code}"] += 1
        self.check(case, request, response)

    def check(self, case: Any, request: httpx.Request, response: httpx.Response) -> None:
        """All that must hold of an answer."""
        where = f"{case.method.upper()} {case.operation.path}"
        for wrong in wrong_with(response):
            self.fail(f"{where}: {wrong}", request, response)
        try:
            case.validate_response(response, checks=self._checks)
        except (BaseExceptionGroup, AssertionError) as error:
            for one in error.exceptions if isinstance(error, BaseExceptionGroup) else [error]:
                title, _, more = str(one).partition("\n")
                self.fail(f"{where}: {title} ({response.status_code})", request, response, " ".join(more.split())[:300])
        if response.is_success and response.headers.get("content-type") == "application/json":
            self.known.learn(response.json())

    def fail(self, what: str, request: httpx.Request, response: httpx.Response | None = None, more: str = "") -> None:
        """Note a failure, and how it is repeated."""
        if what not in self.failures:
            answer = "" if response is None else f"\n    answered: {response.content[:400]!r}"
            self.failures[what] = as_curl(request) + answer + (f"\n    {more}" if more else "")

    def report(self) -> str:
        """How many requests there were, what they were answered, and what was wrong."""
        number = self.statuses.total()
        lines = [f"{number:,} requests, {number / max(self.seconds, 1e-9):.0f} a second"]
        by_status = Counter[str]()
        for what, count in self.statuses.items():
            by_status[what.rpartition(" ")[2]] += count
        lines += ["  " + ", ".join(f"{count:,} of {status}" for status, count in sorted(by_status.items()))]
        good = {what.rpartition(" ")[0] for what in self.statuses if what.rpartition(" ")[2] < "400"}
        never = sorted({what.rpartition(" ")[0] for what in self.statuses} - good)
        lines += [f"  never done: {', '.join(never)}"] if never else []
        lines += [f"WRONG: {what}\n    {how}" for what, how in self.failures.items()]
        return "\n".join(lines)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """What makes a request of requests."""
    return {
        name: options[name]
        for name in ("method", "url", "headers", "params", "data", "json", "cookies")
        if name in options
    }


def as_curl(request: httpx.Request) -> str:
    """A command that sends a request again."""
    from shlex import quote

    headers = "".join(
        f" -H {quote(f'{name}: {value}')}"
        for name, value in request.headers.items()
        if name not in ("host", "content-length", "accept-encoding", "connection", "user-agent", "accept")
    )
    content = request.read()
    body = f" --data-binary $'{''.join(_escaped(byte) for byte in content)}'" if content else ""
    return f"curl -i -X {request.method}{headers}{body} {quote(str(request.url))}"


def _escaped(byte: int) -> str:
    plain = 32 <= byte < 127 and chr(byte) not in "'\\"
    return chr(byte) if plain else f"\\x{byte:02x}"


# ---- services to be fuzzed


def options_of(folder: Path) -> dict[str, Any]:
    """Settings of a service in which every call can be done."""
    for name in tortured.OTHERS:
        save_agent(folder / "agents" / name, thompson=name == "third")
    return {
        "agents_folder": folder / "agents",
        "backups": folder / "backups",
        "edge": folder / "edge",
        "most_body": 100_000,
    }


@contextmanager
def within(folder: Path, **options: Any) -> Iterator[httpx.Client]:
    """A service in this process."""
    with ma.live.open(
        folder / "live.db",
        tortured.fresh_agent(),
        aggregate="sum",
        default=0.0,
        wait=3600.0,
        reward_range=(-1e6, 1e6),
        fold_every=0.05,
    ) as live:
        told = {"store": str(folder / "live.db"), **options_of(folder), **options}
        app = create_app(Service(live, make_config({}, told), owned=False))
        with httpx.Client(transport=in_process(app), base_url="http://localhost", timeout=60.0) as client:
            yield client


@contextmanager
def served(folder: Path) -> Iterator[httpx.Client]:
    """A server of its own."""
    told = options_of(folder)
    config: dict[str, dict[str, object]] = {
        "agent": {"others": told["agents_folder"]}, "backups": {"folder": told["backups"]}, "edge": {"folder": told["edge"]},
        "limits": {"body": told["most_body"]}, "learning": {"fold_every": 0.05}, "logs": {"requests": False},
        "rewards": {"default": 0.0, "wait": 3600.0, "aggregate": "sum", "range": [-1e6, 1e6]},
    }  # fmt: skip
    with Server(folder, settings=config) as server, httpx.Client(base_url=server.address, timeout=60.0) as client:
        yield client


def replays(folder: Path) -> list[str]:
    """What replaying the store of a folder finds wrong."""
    found = ma.live.replay(folder / "live.db")
    return [] if found.ok else [f"replay: {found}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Requests to a server of its own."""
    parser = argparse.ArgumentParser(description="Fuzz the API of the decision service.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new requests after so long")
    parser.add_argument("--in-process", action="store_true", help="the application in this process, without a socket")
    options = parser.parse_args(arguments)
    began = time.monotonic()

    def progress(sent: int) -> None:
        if sent % (20 * A_BATCH) == 0:
            print(f"  {sent:,} requests in {time.monotonic() - began:.0f} s, {len(fuzz.failures)} failures", flush=True)

    with tempfile.TemporaryDirectory(prefix="fuzzing-") as name:
        folder = Path(name)
        with (within if options.in_process else served)(folder) as client:
            fuzz = Fuzz(client, options.seed)
            fuzz.run(options.requests, options.seconds, progress)
        print(fuzz.report(), flush=True)
        wrong = replays(folder)
    for text in wrong:
        print(f"WRONG: {text}")
    good = not (wrong or fuzz.failures)
    print("every answer was as it should be, and the store replays" if good else "something did not hold")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
