"""A service with Personalizer's paths, called in this process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from live.making import Clock, database
from manyarms.live import Live
from manyarms.service import create_app
from manyarms.service.config import make_config
from manyarms.service.personalizer import default_agent, open_store
from manyarms.service.runtime import Service

STABLE, PREVIEW = "/personalizer/v1.0", "/personalizer"
VERSION = {"api-version": "2022-09-01-preview"}
PATIENCE = 60.0  # seconds


@contextmanager
def serving(agent: Any = None, clock: Clock | None = None, keys: Any = None, **options: Any) -> Iterator[Personalizer]:
    """A service on a new store in memory, with a clock of ours; learning happens when a test asks for it."""
    usual = {"background": False, "propensities": False}
    told = {name: options.pop(name) for name in ("rate", "burst") if name in options}
    store = database(clock=clock or Clock(1.8e9))
    with (
        open_store(store, agent or default_agent(seed=0, dim=64), **(usual | options)) as live,
        calling(live, keys, **told) as found,
    ):
        yield found


@contextmanager
def calling(live: Live, keys: Any = None, **told: Any) -> Iterator[Personalizer]:
    """The service of a store, called in this process."""
    config = make_config({}, {"store": "in this process", "personalizer": True, **told})
    app = create_app(Service(live, config, keys=keys, owned=False))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_started(app)) as client:
        yield Personalizer(client, portal, live)


@asynccontextmanager
async def _started(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
    ):
        yield client


class Personalizer:
    """Calls as an application makes them."""

    def __init__(self, client: httpx.AsyncClient, portal: BlockingPortal, live: Live) -> None:
        self._client, self._portal, self.live = client, portal, live

    def request(self, method: str, address: str, **options: Any) -> httpx.Response:
        """Any request."""
        return self._portal.call(partial(self._client.request, method, address, **options))

    def call(self, method: str, path: str, body: Any = None, preview: bool = False, **options: Any) -> Any:
        """The answer of a path, in the stable version or in the preview."""
        base, params = (
            (PREVIEW, VERSION | options.pop("params", {})) if preview else (STABLE, options.pop("params", {}))
        )
        given = {} if body is None else {"json": body}
        return self.request(method, base + path, params=params, **given, **options)

    def rank(self, body: Any, preview: bool = False) -> dict[str, Any]:
        """The answer of a rank call that is fine."""
        answer = self.call("POST", "/rank", body, preview)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def reward(self, event: str, value: float, preview: bool = False) -> None:
        """A reward that is fine."""
        answer = self.call("POST", f"/events/{event}/reward", {"value": value}, preview)
        assert (answer.status_code, answer.content) == (204, b""), answer.text

    def configure(self, **changes: Any) -> dict[str, Any]:
        """Change some of the configuration."""
        now = self.call("GET", "/configurations/service", preview=True).json()
        wanted = {name: value for name, value in now.items() if value is not None} | changes
        answer = self.call("PUT", "/configurations/service", wanted, preview=True)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def learned(self) -> int:
        """How many rows have been learned, all that could be."""
        self.live.sync()
        return int(self.live.status()["learned"])  # type: ignore[arg-type]


def asking(*names: str, **more: Any) -> dict[str, Any]:
    """A small rank call about these actions."""
    actions = [{"id": name, "features": [{"kind": name[0]}]} for name in names or ("pasta", "salad", "soup")]
    return {"actions": actions, "contextFeatures": [{"user": {"device": "mobile"}}], **more}


def until(true: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def chances(answer: dict[str, Any]) -> dict[str, float]:
    """The probabilities of a rank's answer."""
    return {one["id"]: one["probability"] for one in answer["ranking"]}
