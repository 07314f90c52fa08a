"""A service with a store full of simulated events, for tests of the dashboard: `python dashboard_server.py STORE PORT [KEYS]`.

The store is made, with some hours of history, where there is none. Traffic goes on only if it is asked for over the API.
"""

from __future__ import annotations

import heapq
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import manyarms as ma
from manyarms.live import Live
from manyarms.live.stores.opening import open_database
from manyarms.live.stores.sqlite import SQLite

DEVICES = ("desktop", "phone", "tablet")
HOSTILE = "<img src=x onerror=alert(1)>"
ACTIONS = ["Blue shoes", "Green tea/mint", HOSTILE, *(f"item {number:03d}" for number in range(3, 120))]
HOURS = 3.0


def an_encoder() -> Any:
    """Contexts of an age, a device and the weather."""
    rng = np.random.default_rng(0)
    table: dict[str, Any] = {"age": rng.normal(40, 12, 300), "device": [DEVICES[i % 3] for i in range(300)]}
    return ma.logs.Encoding().fit(table, ["age", "device"])


def an_agent(encoder: Any, seed: int = 0, epsilon: float = 0.1) -> Any:
    """A rule that knows its probabilities, so that there are values, checks and a lift."""
    rng = np.random.default_rng(5)
    d = encoder.dim
    prior = ma.MixedEffectPrior(
        rng.uniform(0, 1, (len(ACTIONS), 3)), np.zeros((3, d)), 0.1 * np.eye(3 * d), 0.05 * np.eye(d)
    )
    belief = ma.beliefs.belief_of(prior, ma.Linear(0.4))
    return ma.Agent(belief, ma.agents.EpsilonGreedy(epsilon), seed, encoder=encoder, catalogue=ACTIONS)


def make(path: Path, events: int) -> None:
    """A store whose events are spread over some hours up to now."""
    end = time.time() - 20.0
    clock = {"now": end - 3600.0 * HOURS}
    SQLite.synchronous = "OFF"  # nothing here has to survive a crash
    encoder = an_encoder()
    agent = an_agent(encoder)
    store = open_database(path, clock=lambda: clock["now"])
    with ma.live.open(store, agent, default=0.0, wait=120.0, reward_range=(0.0, 1.0), background=False) as live:
        live.add_arm("usual", an_agent(encoder, 3, 0.9))
        live.add_arm("candidate", an_agent(encoder, 4, 0.3))
        live.deploy({"agent": 1.0}, holdout=0.2, holdout_arm="usual", shadows=["candidate"])
        live.retire([ACTIONS[-1]])
        simulate(live, clock, events, end)
        live.learn()
        live.snapshot()
    SQLite.synchronous = "FULL"


def simulate(live: Live, clock: dict[str, float], events: int, end: float) -> None:
    """Visitors in waves; some actions earn more, and phones are not tablets."""
    rng = np.random.default_rng(1)
    worth = rng.uniform(0.02, 0.25, len(ACTIONS))
    worth[:10] += 0.35
    gaps = rng.exponential(size=events) * (1.2 + np.sin(np.arange(events) / events * 14))
    times = clock["now"] + np.cumsum(gaps) / gaps.sum() * (end - clock["now"])
    late: list[tuple[float, str]] = []
    for number in range(events):
        clock["now"] = float(times[number])
        device = DEVICES[int(rng.random() < 0.6)]
        context = {"age": float(rng.normal(38, 10)), "device": device}
        made = live.decide(context, id=f"visit-{number:05d}", unit=f"visitor {rng.integers(events)}")
        if rng.random() < worth[ACTIONS.index(str(made.action))] + 0.1 * (device == "phone"):
            heapq.heappush(late, (clock["now"] + rng.exponential(30.0), made.id))
        while late and late[0][0] <= clock["now"]:
            live.reward(heapq.heappop(late)[1], 1.0)
        if number % 40 == 39:
            live.learn()


def main() -> None:
    """Serve until somebody ends the process."""
    import uvicorn

    from manyarms.service.app import create_app

    path, port = Path(sys.argv[1]), int(sys.argv[2])
    options: dict[str, Any] = {"keys": Path(sys.argv[3])} if len(sys.argv) > 3 else {}
    if not path.exists():
        make(path, 1500)
    live = ma.live.open(path)
    service = _service(live, options)
    uvicorn.run(create_app(service), host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=2)


def _service(live: Live, options: dict[str, Any]) -> Any:
    from manyarms.service.config import make_config
    from manyarms.service.keys import Keys
    from manyarms.service.runtime import Service

    keys = Keys.open(options["keys"]) if options else None
    return Service(live, make_config({}, {"store": "in this process", **options}), keys=keys)


if __name__ == "__main__":
    main()
