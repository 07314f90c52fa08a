"""A small live store behind the service's application, called without a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import manyarms as ma
from manyarms.client import in_process
from manyarms.live import Live
from manyarms.service import create_app, make_config
from manyarms.service.keys import Keys
from manyarms.service.runtime import Service

SKUS = [f"SKU-{i}" for i in range(20)]


def an_agent(seed: int = 0, *, ids: bool = True, rule: Any = None) -> ma.Agent:
    """An agent with mixing weights, so that actions share something, and exact propensities."""
    weights = np.random.default_rng(3).normal(size=(len(SKUS), 2))
    prior = ma.MixedEffectPrior(weights, np.zeros((2, 3)), np.eye(6), 0.5 * np.eye(3))
    belief = ma.beliefs.belief_of(prior, ma.Linear(0.5))
    return ma.Agent(belief, rule or ma.agents.EpsilonGreedy(0.2), seed, catalogue=SKUS if ids else None)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """A store that learns when it is told to."""
    with ma.live.open(
        tmp_path / "live.db", an_agent(), default=0.0, wait=600.0, reward_range=(0.0, 1.0), background=False
    ) as found:
        yield found


Calling = Callable[..., httpx.Client]


@pytest.fixture
def calling(live: Live) -> Iterator[Calling]:
    """Makes a client of an application on the store, with these settings."""
    with ExitStack() as stack:

        def made(keys: Keys | None = None, base_url: str = "http://localhost", **options: Any) -> httpx.Client:
            service = Service(live, make_config({}, {"store": "here", **options}), keys=keys, owned=False)
            transport = in_process(create_app(service))
            return stack.enter_context(httpx.Client(transport=transport, base_url=base_url, timeout=60.0))

        yield made


@pytest.fixture
def client(calling: Calling) -> httpx.Client:
    """A client without anything special."""
    return calling()


def is_problem(response: httpx.Response, status: int, name: str | None = None) -> dict[str, Any]:
    """The body of a problem, which has all that it should."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == status
    assert body["title"] and body["detail"] and body["instance"].startswith("urn:manyarms:request:")
    assert body["type"] == ("about:blank" if name is None else f"urn:manyarms:problem:{name}")
    return body
