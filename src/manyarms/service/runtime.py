"""A service that runs: a live store, the threads that decide, and what watches over them. Routes ask it for everything.

The event loop reads requests and writes answers. A decision is computed by a thread and goes into the store with
whatever else waits (group commit); nothing waits for the disk but the answer itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
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
from manyarms.service.limits import RateLimit
from manyarms.service.metrics import Metrics
from manyarms.service.request_log import logger
from manyarms.service.retention import Retention
from manyarms.service.statistics import Statistics

SHORT = 0.005  # seconds of a processor: decisions that take less are made one after the other
WORKERS = 4  # threads for everything but decisions: reading events, changing the catalogue, ...
Told = TypeVar("Told")


class Service(Shown):
    """What is behind the routes. `start` and `close` are called by the application's lifespan."""

    def __init__(self, live: Live, config: Config, *, keys: Keys | None = None, owned: bool = True) -> None:
        """owned: whether the store is closed with the service."""
        self.live, self.config, self.keys = live, config, keys
        self.metrics = Metrics(self.status)
        self.statistics = Statistics(live)
        self.stopping = False
        self.retention: Retention | None = None
        self._owned = owned
        self._access = Access(config, keys, RateLimit(config.rate, config.burst))
        self._one = ThreadPoolExecutor(1, "manyarms-decide")
        self._several = ThreadPoolExecutor(config.threads, "manyarms-decide-large")
        self._workers = ThreadPoolExecutor(WORKERS, "manyarms-work")
        self._under_way = 0
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
        self._one.shutdown()
        self._several.shutdown()
        self._workers.shutdown()
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
        found["failures"] = {**found["failures"], **{name: str(text) for name, text in own.items() if text}}
        return found

    def _table(self) -> Table:
        rows: list[tuple[str, Cell]] = [
            ("store", store_shown(self.config.store)),
            ("keys", 0 if self.keys is None else len(self.keys)),
            ("arms", ", ".join(self.live.arms)),
            ("requests under way", self._under_way),
        ]
        return Table(f"{'stopping' if self.stopping else 'open'}, version {self.live.version:,}", rows=rows)

    # ---- who may

    def admit(self, request: Request, scope: str, cost: int = 1) -> Caller:
        """The caller, if it may: refused without this scope, and where it asks for more than it may. cost: in requests."""
        return self._access.check(request, scope, cost)

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
        pool = self._one if self._pace < SHORT else self._several
        return await self._in_thread(pool, partial(self._timed, **arguments))

    def _timed(self, **arguments: Any) -> Future[LiveDecision]:
        """A decision on its way to the store, and how much of a processor's time it took to make."""
        began = time.thread_time()
        try:
            return self.live.submit_decision(**arguments)
        finally:
            self._pace += 0.05 * (time.thread_time() - began - self._pace)

    async def decide_many(self, questions: list[dict[str, Any]]) -> list[LiveDecision | Exception]:
        """Each as `decide`, in one go of one thread; what was refused is its exception."""

        def all_of_them() -> Future[list[Future[LiveDecision] | Exception]]:
            found: list[Future[LiveDecision] | Exception] = []
            for arguments in questions:
                try:
                    found.append(self.live.submit_decision(**arguments))
                except ma.ManyArmsError as error:
                    found.append(error)
            told: Future[list[Future[LiveDecision] | Exception]] = Future()
            told.set_result(found)
            return told

        pending = await self._in_thread(self._several, all_of_them)
        waiting = [_never(one) if isinstance(one, Exception) else asyncio.wrap_future(one) for one in pending]
        found: list[LiveDecision | Exception] = await asyncio.gather(*waiting, return_exceptions=True)
        return found

    async def reward(self, event: str, value: float = 1.0, action: Any = None, id: str = "") -> None:
        """`live.reward`, answered when it is in the store."""
        if action is not None:  # an action that is not known here may be known to the store
            return await self._in_thread(
                self._workers, partial(self.live.submit_reward, event, value, action=action, id=id)
            )
        self._check_open()
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

        def done() -> Future[Told]:
            told: Future[Told] = Future()
            told.set_result(function(*arguments, **options))
            return told

        return await self._in_thread(self._workers, done)

    async def _in_thread(self, pool: ThreadPoolExecutor, begin: Callable[[], Future[Told]]) -> Told:
        """What a future that `begin` makes in a thread comes to: the loop is woken once, when it is there."""
        self._check_open()
        if self._under_way >= self.config.most_waiting:
            raise Overloaded(f"{self._under_way} requests are under way: try again later")
        loop = asyncio.get_running_loop()
        told: asyncio.Future[Told] = loop.create_future()

        def tell(found: Future[Told]) -> None:
            loop.call_soon_threadsafe(_settle, told, found)

        def go() -> None:
            try:
                begin().add_done_callback(tell)
            except BaseException as error:
                failed: Future[Told] = Future()
                failed.set_exception(error)
                tell(failed)

        self._under_way += 1
        try:
            pool.submit(go)
            return await told
        finally:
            self._under_way -= 1

    def _check_open(self) -> None:
        if self.stopping:
            raise Overloaded("the service is stopping")


def _settle(told: asyncio.Future[Told], found: Future[Told]) -> None:
    if told.done():  # the client went away
        return
    error = found.exception()
    if error is None:
        told.set_result(found.result())
    else:
        told.set_exception(error)


def _never(error: Exception) -> Awaitable[Any]:
    async def refused() -> Any:
        raise error

    return refused()


def _compacted(found: object) -> None:
    if isinstance(found, Exception):
        logger().warning("compaction failed", extra={"reason": f"{type(found).__name__}: {found}"})
        return
    logger().info("compacted", extra={"result": str(found)})


def open_service(config: Config) -> Service:
    """Open the store and the keys that the settings name, in a process that serves and does nothing else."""
    instance("config", config, Config, "the settings of a service")
    one_thread_each()
    keys = None if config.keys is None else Keys.open(config.keys)
    return Service(open_live(config), config, keys=keys)


def one_thread_each() -> None:
    """Products of matrices take one thread each: decisions are many and small, and pools of threads that spin are in the way."""
    threadpool_limits(limits=1)


def open_live(config: Config) -> Live:
    """The store, made with the agent where it is new."""
    options: dict[str, Any] = {
        "fold_every": config.fold_every,
        "snapshot_every": config.snapshot_every,
        "most_waiting": config.most_waiting,
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
