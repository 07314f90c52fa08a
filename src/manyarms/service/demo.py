"""A made-up shop, for `manyarms serve --demo`: a catalogue, visitors who come by themselves, and forty minutes of history.

Visitors have a device, a part of the day and an age: which kinds of items they like follows from these, and a little from items.
The visitors are a thread of this process that calls the service over HTTP, as anybody would.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import manyarms as ma
from manyarms.agents import Agent
from manyarms.live import Live
from manyarms.live.stores.opening import prepare
from manyarms.live.stores.sqlite import SQLite

ITEMS, KINDS = 10_000, 24
DEVICES, PARTS = ("phone", "tablet", "desktop"), ("morning", "day", "evening")
RATE = 2.0  # visitors a second
WAIT = 20.0  # seconds that an event waits for its reward
HISTORY, SPACING = 600, 4.0  # events before the start, and seconds between two of them


class Shop:
    """Items, visitors and what they click."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        kinds = self._rng.integers(KINDS, size=ITEMS)
        self.items = ma.Catalogue(
            {"sku": [f"SKU-{i:05d}" for i in range(ITEMS)], "kind": [f"kind {k:02d}" for k in kinds]}
        )
        self._kind = {f"SKU-{i:05d}": int(kind) for i, kind in enumerate(kinds)}
        self._likes = self._rng.normal(0.0, 1.1, (KINDS, len(DEVICES), len(PARTS)))
        self._own = self._rng.normal(0.0, 0.3, ITEMS)

    def visitor(self) -> dict[str, Any]:
        """The next one."""
        age = int(self._rng.integers(18, 80))
        return {"device": str(self._rng.choice(DEVICES)), "part": str(self._rng.choice(PARTS)), "age": age}

    def clicks(self, visitor: Mapping[str, Any], sku: str) -> float | None:
        """1.0 for a click; None where nothing comes back, which counts as the default once the wait is over."""
        kind = self._kind[sku]
        likes = self._likes[kind, DEVICES.index(visitor["device"]), PARTS.index(visitor["part"])]
        score = -2.2 + likes + self._own[int(sku[4:])] - 0.01 * (visitor["age"] - 45)
        return 1.0 if self._rng.random() < 1.0 / (1.0 + np.exp(-score)) else None

    def delay(self) -> float:
        """Seconds until a click."""
        return float(self._rng.uniform(0.2, 5.0))

    def agents(self) -> tuple[Agent, Agent]:
        """One that learns, structured by kinds, and one that shows anything, for the hold-out."""
        known = [self.visitor() for _ in range(300)]
        encoder = ma.logs.Encoding().fit({name: [one[name] for one in known] for name in known[0]}, list(known[0]))
        prior = self.items.prior(encoder.dim, "kind")
        belief = ma.beliefs.belief_of(prior, ma.Linear(0.4))
        learning = Agent(belief, ma.agents.EpsilonGreedy(0.1), 0, "shop", self.items, encoder)
        flat = ma.ActionPrior(ITEMS, np.zeros(encoder.dim), np.eye(encoder.dim))
        anything = Agent(ma.beliefs.belief_of(flat, ma.Linear(0.4)), ma.agents.Uniform(), 1, "anything")
        return learning, anything


class _Clock:
    """A clock that is set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def make_store(path: Path, shop: Shop) -> None:
    """A store with forty minutes of history, as if it had run since then."""
    clock = _Clock(time.time() - HISTORY * SPACING - WAIT)
    database = SQLite(path, clock=clock)
    prepare(database)
    learning, anything = shop.agents()
    with ma.live.open(
        database, learning, name="shop", default=0.0, wait=WAIT, reward_range=(0.0, 1.0), background=False
    ) as live:
        live.add_arm("anything", anything, learns=False)
        live.deploy({"shop": 1.0}, holdout=0.1, holdout_arm="anything")
        _live_on(live, shop, clock)
        live.learn()
        live.snapshot()
    database.close()


def _live_on(live: Live, shop: Shop, clock: _Clock) -> None:
    for number in range(HISTORY):
        clock.now += SPACING
        visitor = shop.visitor()
        decision = live.decide(visitor)
        clicked = shop.clicks(visitor, str(decision.action))
        if clicked is not None:
            live.reward(decision.id, clicked)
        if number % 20 == 19:
            live.learn()


class Visitors:
    """Visitors of a shop, in a thread: they ask the service what to show, and click or not."""

    def __init__(self, shop: Shop, address: str, rate: float = RATE) -> None:
        parts = urlsplit(address)
        self._host, self._port, self._rate = parts.hostname or "localhost", parts.port, rate
        self._shop = shop
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._come, name="manyarms-visitors", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nobody comes any more."""
        self._end.set()
        self._thread.join(10.0)

    def _come(self) -> None:
        rng = np.random.default_rng()
        waiting: list[tuple[float, str]] = []  # when, and of which event
        connection: http.client.HTTPConnection | None = None
        while not self._end.wait(float(rng.exponential(1.0 / self._rate))):
            try:
                connection = connection or http.client.HTTPConnection(self._host, self._port, timeout=10.0)
                visitor = self._shop.visitor()
                answer = _posted(connection, "/v1/decide", {"context": visitor})
                if self._shop.clicks(visitor, answer["action"]):
                    waiting.append((time.monotonic() + self._shop.delay(), answer["id"]))
                for when, event in list(waiting):
                    if when <= time.monotonic():
                        waiting.remove((when, event))
                        _posted(connection, "/v1/reward", {"event": event, "value": 1.0})
            except (OSError, http.client.HTTPException, KeyError, ValueError):  # not ready yet, or stopping
                if connection is not None:
                    connection.close()
                connection = None


def _posted(connection: http.client.HTTPConnection, path: str, body: Any) -> Any:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    if response.status >= 400:
        raise ValueError(f"{path}: {response.status}")
    return json.loads(content) if content else None


def run_demo(options: Mapping[str, Any], say: Callable[[str], None]) -> None:
    """Serve the shop, on a store of its own that is removed at the end, until it is stopped. say: told what goes on."""
    from manyarms.service.app import create_app
    from manyarms.service.config import make_config
    from manyarms.service.request_log import start_logging
    from manyarms.service.running import run
    from manyarms.service.runtime import one_thread_each, open_service

    one_thread_each()
    with tempfile.TemporaryDirectory(prefix="manyarms-demo-") as folder:
        store = Path(folder) / "shop.db"
        shop = Shop()
        say(f"making a shop of {ITEMS:,} items, and forty minutes of history (a few seconds)")
        make_store(store, shop)
        given = {name: value for name, value in options.items() if name == "port" and value is not None}
        folders = {"edge": Path(folder) / "edge", "backups": Path(folder) / "backups"}
        config = make_config(
            {},
            {"store": str(store), "log_level": "warning", "log_format": "text", **folders, **given},
            "manyarms serve",
        )
        start_logging(config.log_format, config.log_level)
        app = create_app(open_service(config))
        visitors: list[Visitors] = []

        def ready(address: str) -> None:
            visitors.append(Visitors(shop, address))
            say(f"dashboard:  {address}/   (Ctrl-C ends it)")
            say(f"a decision: curl -X POST {address}/v1/decide -H 'Content-Type: application/json' \\")
            say("""              -d '{"context": {"device": "phone", "part": "evening", "age": 31}}'""")

        try:
            run(app, config, ready)
        finally:
            for one in visitors:
                one.close()


__all__ = ["Shop", "Visitors", "make_store", "run_demo"]
