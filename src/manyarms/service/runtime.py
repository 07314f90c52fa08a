"""A service that runs: a live store, the threads that decide, and what watches over them. Routes ask it for everything.

The event loop reads requests and writes answers. A decision is computed by a thread and goes into the store with
whatever else waits (group commit); nothing waits for the disk but the answer itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from threadpoolctl import threadpool_limits

import manyarms as ma
from manyarms._base.tables import Cell, Shown, Table
from manyarms._base.validate import instance
from manyarms.errors import LiveError, Overloaded
from manyarms.live import Live, LiveDecision
from manyarms.service.access import Access, Caller
from manyarms.service.config import Config, store_shown
from manyarms.service.keys import Keys
from manyarms.service.lanes import Lane
from manyarms.service.limits import RateLimit
from manyarms.service.metrics import Metrics
from manyarms.service.places import without_paths
from manyarms.service.request_log import logger
from manyarms.service.retention import Retention
from manyarms.service.statistics import Statistics

SHORT = 0.005  # seconds of a processor: decisions that take less are made one after the other
SEEN_EVERY = 16  # decisions
WORKERS = 4  # threads for everything but decisions: reading events, changing the catalogue, ...
SLOW = 2  # threads for what may take seconds: old versions, bundles and what was decided by them, searches
MOST_SLOW = 32  # of that under way
MOST_MAINTAINING = 8  # copies and compactions under way, one after the other: each may take minutes
SLICE = 0.05  # seconds after which a batch lets others decide
Told = TypeVar("Told")


class Service(Shown):
    """What is behind the routes. `start` and `close` are called by the application's lifespan."""

    def __init__(
        self, live: Live, config: Config, *, keys: Keys | None = None, owned: bool = True, replica: str | None = None
    ) -> None:
        """owned: whether the store is closed with the service. replica: its name among several at one address."""
        self.live, self.config, self.keys = live, config, keys
        self.metrics = Metrics(self.status, replica)
        self.statistics = Statistics(live, status=self.status)
        self.stopping = False
        self.retention: Retention | None = None
        self._owned = owned
        self._access = Access(config, keys, RateLimit(config.rate, config.burst))
        most = config.most_waiting
        self._one = Lane(1, most, "manyarms-decide")
        self._several = Lane(config.threads, most, "manyarms-decide-large")
        self._workers = Lane(WORKERS, most, "manyarms-work")
        self._slow = Lane(SLOW, MOST_SLOW, "manyarms-slow")
        self._maintaining = Lane(1, MOST_MAINTAINING, "manyarms-maintain")
        self._looking = Lane(1, most, "manyarms-look")
        self._lanes = (self._one, self._several, self._workers, self._slow, self._maintaining, self._looking)
        self._made = 0
        self._pace = 2 * SHORT  # seconds that a decision takes, lately

    # ---- its life

    def start(self) -> None:
        """Begin what goes on in the background."""
        self.statistics.start()
        if self.config.keep is not None:
            self.retention = Retention(self.live, self.config.keep, self.config.keep_every, _compacted)

    def close(self) -> None:
        """Finish what was accepted, and let the store go."""
        self.stopping = True
        for lane in self._lanes:
            lane.close(drop=lane in (self._slow, self._maintaining))
        if self.retention is not None:
            self.retention.close()
        self.statistics.close()
        if self._owned:
            self.live.close()

    def status(self) -> dict[str, Any]:
        """`live.status`, with what fails in the service itself."""
        found: dict[str, Any] = dict(self.live.status())
        own = {
            "keys": None if self.keys is None else self.keys.failure,
            "retention": None if self.retention is None else self.retention.failure,
        }
        failures = found["failures"] | {name: text for name, text in own.items() if text}
        found["failures"] = {
            name: without_paths(str(text), self.live.database, self.keys) for name, text in failures.items()
        }
        return found

    def _table(self) -> Table:
        rows: list[tuple[str, Cell]] = [
            ("store", store_shown(self.config.store)),
            ("keys", 0 if self.keys is None else len(self.keys)),
            ("arms", ", ".join(self.live.arms)),
            ("requests under way", sum(lane.under_way for lane in self._lanes)),
        ]
        return Table(f"{'stopping' if self.stopping else 'open'}, version {self.live.version:,}", rows=rows)

    # ---- who may

    def admit(self, request: Request, scope: str, cost: int = 1) -> Caller:
        """The caller, if it may: refused without this scope, and where it asks for more than it may. cost: in requests."""
        return self._access.check(request, scope, cost)

    def recognise(self, request: Request) -> None:
        """Refuse a stranger, whatever is asked for."""
        self._access.recognise(request)

    def access(self, scope: str) -> Callable[[Request], Coroutine[Any, Any, Caller]]:
        """`admit` as a dependency of routes."""

        async def admitted(request: Request) -> Caller:
            return self.admit(request, scope)

        return admitted

    # ---- what is asked every day

    async def decide(self, **arguments: Any) -> LiveDecision:
        """`live.decide`, computed by a thread, answered when it is in the store.

        Decisions that are quickly made are made by one thread, one after the other: two would only wait for each other, as most
        of the work needs the interpreter. Others, most of which is products of large matrices, are made by several at once.
        """
        self._check_open()
        lane = self._one if self._pace < SHORT else self._several
        return await lane.begin(partial(self._timed, **arguments))

    def _timed(self, **arguments: Any) -> Future[LiveDecision]:
        """A decision on its way to the store. How much of a processor's time one takes is measured now and then: asking for
        that time costs as much as a good part of a decision on some machines."""
        self._made += 1
        if self._made % SEEN_EVERY:
            return self.live.submit_decision(**arguments)
        began = time.thread_time()
        try:
            return self.live.submit_decision(**arguments)
        finally:
            self._pace += 0.3 * (time.thread_time() - began - self._pace)

    async def decide_many(self, questions: list[dict[str, Any]]) -> list[LiveDecision | Exception]:
        """Each as `decide`, one after the other in a thread, which others get in between; what was refused is its exception."""
        self._check_open()
        pending: list[Future[LiveDecision] | Exception] = []
        while len(pending) < len(questions):
            pending += await self._several.call(self._some_of, questions[len(pending) :], further=bool(pending))
        waiting = [_never(one) if isinstance(one, Exception) else asyncio.wrap_future(one) for one in pending]
        found: list[LiveDecision | Exception] = await asyncio.gather(*waiting, return_exceptions=True)
        return found

    def _some_of(self, questions: list[dict[str, Any]]) -> list[Future[LiveDecision] | Exception]:
        """The first of them, as many as there is time for."""
        found: list[Future[LiveDecision] | Exception] = []
        end = time.monotonic() + SLICE
        for arguments in questions:
            try:
                found.append(self.live.submit_decision(**arguments))
            except ma.ManyArmsError as error:
                found.append(error)
            if time.monotonic() > end:
                break
        return found

    async def reward(self, event: str, value: float = 1.0, action: Any = None, id: str = "") -> None:
        """`live.reward`, answered when it is in the store."""
        self._check_open()
        if action is not None:  # an action that is not known here may be known to the store
            return await self._workers.begin(partial(self.live.submit_reward, event, value, action=action, id=id))
        return await asyncio.wrap_future(self.live.submit_reward(event, value, id=id))

    async def reward_many(self, rewards: list[tuple[str, float, Any, str]]) -> list[Exception | None]:
        """Each as `reward`, in one go; what was refused is its exception."""

        async def one(event: str, value: float, action: Any, id: str) -> None:
            await self.reward(event, value, action, id)

        found = await asyncio.gather(*(one(*told) for told in rewards), return_exceptions=True)
        for error in found:
            if isinstance(error, BaseException) and not isinstance(error, Exception):
                raise error
        return found  # type: ignore[return-value]

    async def activate(self, event: str) -> None:
        """`live.activate`, answered when it is in the store."""
        self._check_open()
        await asyncio.wrap_future(self.live.submit_activation(event))

    async def work(self, function: Callable[..., Told], *arguments: Any, **options: Any) -> Told:
        """Any other call that waits for the store, in a thread."""
        self._check_open()
        return await self._workers.call(function, *arguments, **options)

    async def labour(self, function: Callable[..., Told], *arguments: Any, **options: Any) -> Told:
        """The same of a call that may take seconds: nobody but others of its kind waits for it."""
        self._check_open()
        return await self._slow.call(function, *arguments, **options)

    async def maintain(self, function: Callable[..., Told], *arguments: Any, **options: Any) -> Told:
        """The same of a call that goes through the whole store, and may take minutes."""
        self._check_open()
        return await self._maintaining.call(function, *arguments, **options)

    async def look(self, function: Callable[..., Told], *arguments: Any, **options: Any) -> Told:
        """The same of a look at how the service is, which is answered whatever else goes on."""
        self._check_open()
        return await self._looking.call(function, *arguments, **options)

    def _check_open(self) -> None:
        if self.stopping:
            raise Overloaded("the service is stopping")


def _never(error: Exception) -> Awaitable[Any]:
    async def refused() -> Any:
        raise error

    return refused()


def _compacted(found: object) -> None:
    if isinstance(found, Exception):
        logger().warning("compaction failed", extra={"reason": f"{type(found).__name__}: {found}"})
        return
    logger().info("compacted", extra={"result": str(found)})


def open_service(config: Config, *, replica: str | None = None) -> Service:
    """Open the store and the keys that the settings name, in a process that serves and does nothing else.

    replica: what its figures are labelled with, where several processes answer at one address.
    """
    instance("config", config, Config, "the settings of a service")
    one_thread_each()
    keys = None if config.keys is None else Keys.open(config.keys)
    return Service(open_live(config), config, keys=keys, replica=replica)


def one_thread_each() -> None:
    """Products of matrices take one thread each: decisions are many and small, and pools of threads that spin are in the way."""
    threadpool_limits(limits=1)


def open_live(config: Config) -> Live:
    """The store, made with the agent where it is new."""
    options: dict[str, Any] = {
        "fold_every": config.fold_every,
        "snapshot_every": config.snapshot_every,
        "most_waiting": config.most_waiting,
        "gather": config.gather,
        "without_store": config.without_store,
        "learner": config.learner,
        "propensities": config.propensities,
        "propensity_share": config.propensity_share,
    }
    told = {
        "default": config.default,
        "reward_range": config.reward_range,
        "wait": config.wait,
        "aggregate": config.aggregate,
    }
    options |= {name: value for name, value in told.items() if value is not None}
    agent = None if config.agent is None else _loaded(config.agent)
    if config.personalizer and agent is None:
        from manyarms.service import personalizer  # which stands on this module

        return personalizer.open_store(config.store, **options)
    return ma.live.open(config.store, agent, name=config.agent_name, **options)


def _loaded(folder: Path) -> Any:
    found: Any = ma.load(folder)
    if not hasattr(found, "decide"):
        raise LiveError(f"{folder}: holds a {type(found).__name__}, expected an agent or a policy")
    return found


__all__ = ["Service", "one_thread_each", "open_live", "open_service"]
