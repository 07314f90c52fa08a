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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st

import manyarms as ma
from live import tortured
from manyarms.client import in_process
from manyarms.service import Service, create_app, read_config
from manyarms.service.keys import SCOPES, Keys
from manyarms.service.personalizer import default_agent
from service.fuzz_bodies import Known, meaningful
from service.fuzz_checks import wrong_with
from service.server import Server, save_agent

A_STORE = 5_000  # requests; then a new one
KINDS: tuple[dict[str, bool], ...] = ({}, {"personalizer": True}, {"keys": True})
A_BATCH = 250  # requests made in one go: hypothesis remembers what it has made
AGAIN = (
    4  # each is sent so often, about other events, actions and arms: making one takes longer than all of its answers
)
MEANT = 0.4  # of the bodies: those that mean something, and are not made up
KNOWN = 0.7  # of the ids, contexts and the like: those that are known take the place of made-up ones
PLACES = {
    "id": "events",
    "event": "events",
    "action": "actions",
    "baseline": "actions",
    "name": "arms",
    "agent": "arms",
}
PLACES |= {"arm": "arms", "holdout_arm": "arms", "eventId": "events", "evaluationId": "evaluations"}
LISTS = {"candidates": "actions", "exclude": "actions", "actions": "actions", "shadows": "arms"}


def schemathesis() -> Any:
    """The package, imported without what it warns of in its own dependencies."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import schemathesis as package
        import schemathesis.checks
        import schemathesis.specs.openapi.checks
    return package


class Fuzz:
    """Requests from a description, sent by a client; what was wrong with their answers."""

    def __init__(self, client: httpx.Client, key: str | None = None) -> None:
        self.client, self.key = client, key
        self.rng = random.Random(0)
        self.known = Known()
        self.failures: dict[str, str] = {}
        self.statuses: Counter[str] = Counter()
        self.unsent = 0
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

    def run(self, requests: int, seconds: float = float("inf")) -> int:
        """So many requests, or as many as fit into the time; how many there were."""
        began, sent = time.monotonic(), 0
        for name in tortured.OTHERS:  # before there are actions that these do not know
            self.client.post("/v1/agents", json={"name": name, "folder": name}, headers=self._with_key())
        while sent < requests and time.monotonic() - began < seconds:
            sent += self._batch(min(A_BATCH, requests - sent))
        return sent

    def _batch(self, number: int) -> int:
        before = self.statuses.total() + self.unsent

        @seed(self.rng.randrange(2**63))
        @settings(
            max_examples=-(-number // AGAIN), database=None, deadline=None, phases=[Phase.generate], verbosity=Verbosity.quiet,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(st.sampled_from(self._ways).flatmap(lambda way: way))
        def requests(case: Any) -> None:
            for _ in range(AGAIN):
                if self.statuses.total() + self.unsent - before < number:
                    self.send(case)

        requests()
        return self.statuses.total() + self.unsent - before

    def _of(self, operation: Any) -> list[Any]:
        """Ways to make requests of an operation: what is allowed, and in one of three what is not."""
        allowed = operation.as_strategy()
        if not (operation.body or operation.query or operation.path_parameters):
            return [allowed]
        return [allowed, allowed, operation.as_strategy(generation_mode=self._negative)]

    def _fit(self, made: Any) -> Any:
        """A request with what is known in the place of what was made up."""
        places: dict[str, Any] = {}
        for place in ("path_parameters", "query"):
            found = places[place] = dict(getattr(made, place) or {})
            for name in found:
                if name in PLACES and self.rng.random() < KNOWN:
                    found[name] = str(self.known.one(PLACES[name], self.rng))
                elif name == "api-version" and self.rng.random() < KNOWN:
                    found[name] = "2022-09-01-preview"
        body = meaningful(made.method, made.operation.path)
        if body is not None and self.rng.random() < MEANT:
            places |= {"body": body(self.known, self.rng), "media_type": "application/json"}
        else:
            places |= {"body": self._fitted(made.body), "media_type": made.media_type}
        return made.operation.Case(method=made.method, headers=made.headers, cookies=made.cookies, **places)

    def _fitted(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._fitted(one, str(key)) for key, one in value.items()}
        if self.rng.random() < KNOWN and name in PLACES and not (name == "id" and self.rng.random() < 0.7):
            return self.known.one(PLACES[name], self.rng)
        if isinstance(value, list):
            if name in LISTS and self.rng.random() < KNOWN:
                return [self.known.one(LISTS[name], self.rng) for _ in range(self.rng.randrange(1, 4))]
            return [self._fitted(one) for one in value]
        return value

    # ---- sending them

    def send(self, made: Any) -> None:
        """One request, and all checks of its answer."""
        from requests import Request

        case = self._fit(made)
        prepared = Request(**_plain(case.as_transport_kwargs(base_url=str(self.client.base_url)))).prepare()
        told = {name: str(value).strip() for name, value in prepared.headers.items()}
        if self.rng.random() < 0.95:
            told |= self._with_key()
        headers = {
            name.encode("latin-1", "replace"): value.encode("latin-1", "replace") for name, value in told.items()
        }
        content = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
        try:
            request = httpx.Request(str(prepared.method), str(prepared.url), headers=headers, content=content)  # type: ignore[arg-type]
        except (httpx.InvalidURL, ValueError, TypeError):  # it cannot even be written
            self.unsent += 1
            return
        try:
            response = self.client.send(request)
            response.elapsed = timedelta(0)  # a transport without a socket tells none
        except httpx.LocalProtocolError:  # nor can this
            self.unsent += 1
            return
        except httpx.HTTPError as error:
            self.fail(f"{case.method} {case.operation.path}: {type(error).__name__}", request)
            self.unsent += 1
            return
        self.statuses[f"{case.method.upper()} {case.operation.path} {response.status_code}"] += 1
        self.check(case, request, response)

    def _with_key(self) -> dict[str, str]:
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

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


@contextmanager
def within(folder: Path, *, personalizer: bool = False, keys: bool = False) -> Iterator[Fuzz]:
    """A service in this process. personalizer: with Personalizer's paths, and its kind of agent; keys: it asks for one."""
    agent = default_agent() if personalizer else tortured.fresh_agent()
    config = read_config(_config(folder, personalizer), store=str(folder / "live.db"))
    rewards: dict[str, Any] = {"aggregate": "sum", "default": 0.0, "wait": 3600.0, "reward_range": config.reward_range}
    with ma.live.open(folder / "live.db", agent, fold_every=config.fold_every, **rewards) as live:
        known, key = _keys(folder) if keys else (None, None)
        app = create_app(Service(live, config, keys=known, owned=False))
        with httpx.Client(transport=in_process(app), base_url="http://localhost", timeout=60.0) as client:
            yield Fuzz(client, key)


@contextmanager
def served(folder: Path, *, personalizer: bool = False, keys: bool = False) -> Iterator[Fuzz]:
    """The same as a server of its own."""
    known, key = _keys(folder) if keys else (None, None)
    options = ["--config", str(_config(folder, personalizer))]
    with (
        Server(folder, agent=not personalizer, options=options, keys=folder / "keys.json" if known else None) as server,
        httpx.Client(base_url=server.address, timeout=60.0) as client,
    ):
        yield Fuzz(client, key)


def _keys(folder: Path) -> tuple[Keys, str]:
    keys = Keys.open(folder / "keys.json", make=True)
    return keys, keys.add("everything", SCOPES)


def _config(folder: Path, personalizer: bool) -> Path:
    """Settings of a service in which every call can be done."""
    for name in tortured.OTHERS:
        save_agent(folder / "agents" / name, thompson=name == "third")
    file = folder / "service.toml"
    file.write_text(f"""
        agent.others = "agents"
        backups.folder = "backups"
        edge.folder = "edge"
        limits.body = 100000
        learning.fold_every = 0.05
        logs.requests = false
        rewards = {{ default = 0.0, wait = "1h", aggregate = "sum", range = [-1e6, 1e6] }}
        personalizer.enabled = {str(personalizer).lower()}
    """)
    return file


def replays(folder: Path) -> list[str]:
    """What replaying the store of a folder finds wrong."""
    found = ma.live.replay(folder / "live.db")
    return [] if found.ok else [f"replay: {found}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Requests to servers of its own: one store after the other, some with keys, some with Personalizer's calls."""
    parser = argparse.ArgumentParser(description="Fuzz the API of the decision service.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no new requests after so long")
    parser.add_argument("--in-process", action="store_true", help="the application in this process, without a socket")
    options = parser.parse_args(arguments)
    began, good, sent = time.monotonic(), True, 0
    statuses: Counter[str] = Counter()
    failures: dict[str, str] = {}
    print(f"seed {options.seed}:", flush=True)
    for number in count():
        left = options.seconds - (time.monotonic() - began)
        if sent >= options.requests or left <= 0:
            break
        kind = KINDS[number % len(KINDS)]
        with tempfile.TemporaryDirectory(prefix="fuzzing-") as name:
            folder = Path(name)
            with (within if options.in_process else served)(folder, **kind) as fuzz:
                fuzz.rng.seed(f"{options.seed} {number}")
                sent += fuzz.run(min(A_STORE, options.requests - sent), left)
            wrong = replays(folder)
        for text in wrong:
            print(f"WRONG ({kind}): {text}", flush=True)
        good = good and not wrong
        statuses += fuzz.statuses
        failures = {**fuzz.failures, **failures}
        seconds = time.monotonic() - began
        print(
            f"  {sent:,} requests in {seconds:.0f} s, {sent / seconds:.0f} a second; {len(failures)} failures",
            flush=True,
        )
    print(report(statuses, failures))
    if sent < options.requests:
        print(f"  the time was over after {sent:,} of {options.requests:,} requests")
    good = good and not failures
    print("every answer was as it should be, and the stores replay" if good else "something did not hold")
    return int(not good)


def report(statuses: Counter[str], failures: dict[str, str]) -> str:
    """What requests were answered, what was never done, and what was wrong."""
    by_status: Counter[str] = Counter()
    for what, number in statuses.items():
        by_status[what.rpartition(" ")[2]] += number
    lines = ["  " + ", ".join(f"{number:,} of {status}" for status, number in sorted(by_status.items()))]
    good = {what.rpartition(" ")[0] for what in statuses if what.rpartition(" ")[2] < "400"}
    never = sorted({what.rpartition(" ")[0] for what in statuses} - good)
    lines += [f"  never done: {', '.join(never)}"] if never else []
    return "\n".join([*lines, *(f"WRONG: {what}\n    {how}" for what, how in failures.items())])


if __name__ == "__main__":
    sys.exit(main())
