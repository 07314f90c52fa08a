"""A Ray cluster as an engine: Ray's tasks, objects and Train; no scheduler of our own.

A task that is lost with its worker is run again by Ray, and gives the same again; what is common to all pieces is one object that
every machine fetches once; outcomes are combined by tasks where they are, and only the last comes here. Files that pieces read,
and folders that training writes, must have the same path on every machine.

A cluster that runs already inherits nothing from this process: the folders that its environment names go with every task, and
one thread for each, as workers on this machine have it (`environment`).
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata, util
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms.engine.base import FAILURES, NO_COMMON, Engine, NoCommon, Outcome, Piece, Tree, WorkerDied
from manyarms.engine.local import THREAD_VARIABLES, cores, tell_through
from manyarms.engine.mailbox import Way, listening
from manyarms.errors import ClusterError, ManyArmsError, MissingExtra

TIMES_AGAIN = 3  # that a task is run again whose worker has died
SECONDS_TO_ANSWER = 10.0
CLIENTS = 10001  # the port of a head's client server, unless it was told another
_HOST_AND_PORT = re.compile(r"(?:ray://)?(?P<host>[^/\s:]+)(?::(?P<port>\d{1,5}))?/?", re.ASCII)
FOLDERS = ("MANYARMS_DATA", "MANYARMS_CACHE")  # variables that work reads; no others are shown to a cluster


def require_ray() -> Any:
    """The package, or what to install."""
    if util.find_spec("ray") is None:
        raise MissingExtra("ray", "ray", "working on a cluster")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")
    import ray

    return ray


def environment() -> dict[str, str]:
    """Variables of every task: one thread, so that outcomes do not depend on a machine's cores, and folders as named here."""
    named = {name: os.environ.get(name) for name in FOLDERS}
    folders = {name: os.path.abspath(folder) if folder else "" for name, folder in named.items()}
    return {**dict.fromkeys(THREAD_VARIABLES, "1"), **folders}


class Cluster(Engine):
    """The cluster that this process is connected to; `cluster` connects and leaves.

    known: the variables that all work of this connection has already.
    """

    def __init__(
        self,
        ray: Any,
        address: str,
        hear: Callable[[Any], None] | None = None,
        known: dict[str, str] | None = None,
    ) -> None:
        self._ray, self.address, self._hear, self._known = ray, address, hear, known
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def map(
        self, function: Callable[..., Outcome], pieces: Sequence[Piece], *, common: Any = NO_COMMON
    ) -> Iterator[tuple[Piece, Outcome]]:
        with self._listening() as mailbox:
            more = self._shared(common)
            task = self._task(_call)
            places = {task.remote(function, piece, more, mailbox): place for place, piece in enumerate(pieces)}
            try:
                while places:
                    ready, _ = self._ray.wait(list(places))
                    for reference in ready:
                        yield pieces[places.pop(reference)], self._got(reference)
            finally:
                for reference in places:
                    self._ray.cancel(reference)

    def reduce_parts(
        self,
        function: Callable[..., Sequence[Outcome]],
        pieces: Sequence[Piece],
        combine: Callable[[Outcome, Outcome], Outcome],
        parts: int,
        *,
        common: Any = NO_COMMON,
    ) -> Iterator[Outcome]:
        with self._listening() as mailbox:
            more = self._shared(common)
            task, pair = self._task(_call_parts, num_returns=parts), self._task(_combine)
            trees = [Tree(len(pieces), lambda one, other: pair.remote(combine, one, other)) for _ in range(parts)]
            for place, piece in enumerate(pieces):
                found = task.remote(function, piece, more, mailbox)
                for tree, part in zip(trees, found if parts > 1 else [found], strict=True):
                    tree.add(place, part)
            while trees:
                yield self._got(trees.pop(0).top)

    def train(
        self,
        function: Callable[..., Outcome],
        workers: int,
        *,
        common: Any = NO_COMMON,
        failures: int = FAILURES,
        hear: Callable[[Any], None] | None = None,
    ) -> Outcome:
        from manyarms.engine.cluster_training import train

        with listening(self._ray, hear or self._hear) as mailbox:
            outcome: Outcome = train(
                function,
                validate.count("workers", workers),
                self._shared(common),
                failures,
                mailbox,
                engine=self,
                surroundings=self._surroundings(),
            )
        return outcome

    # ---- how

    def _task(self, function: Callable[..., Any], **options: Any) -> Any:
        return self._ray.remote(max_retries=TIMES_AGAIN, num_cpus=1, runtime_env=self._surroundings(), **options)(
            function
        )

    def _surroundings(self) -> dict[str, Any] | None:
        """What tasks are told of the environment; nothing new, where workers that are there already have it."""
        wanted = environment()
        return None if wanted == self._known else {"env_vars": wanted}

    def _shared(self, common: Any) -> Any:
        return NO_COMMON if isinstance(common, NoCommon) else [self._ray.put(common)]  # in a list it stays a reference

    def _got(self, reference: Any) -> Any:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ManyArmsError):
                raise error.cause from None
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            raise WorkerDied(
                f"work on {self.address} was lost {TIMES_AGAIN + 1} times with its worker ({first_line(error)}); often: "
                "not enough memory"
            ) from error

    @contextmanager
    def _listening(self) -> Iterator[Any]:
        """The way of messages from workers to `hear`, while a block lasts; None where nobody listens."""
        if self._hear is None:
            yield None
            return
        with listening(self._ray, self._hear) as mailbox:
            yield mailbox


def _call(function: Callable[..., Any], piece: Any, common: Any, mailbox: Any) -> Any:
    way = None if mailbox is None else Way(mailbox)
    tell_through(way)
    outcome = function(piece) if isinstance(common, NoCommon) else function(piece, fetched(common))
    if way is not None:
        way.wait()
    return outcome


def _call_parts(function: Callable[..., Sequence[Any]], piece: Any, common: Any, mailbox: Any) -> Any:
    found = _call(function, piece, common, mailbox)
    return found[0] if len(found) == 1 else tuple(found)


_common: tuple[Any, Any] = None, None  # of a worker: the last reference, and what it stands for


def fetched(common: list[Any]) -> Any:
    """What is common, fetched once by each worker."""
    global _common
    import ray

    if _common[0] != common[0]:
        _common = common[0], ray.get(common[0])
    return _common[1]


def _combine(combine: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Objects of Ray's are read-only where they lie; what combining changes is a copy of its own."""
    return combine(_writable(one), other)


def _writable(value: Any) -> Any:
    import copy

    return copy.deepcopy(value)


# ---- connecting


@contextmanager
def cluster(
    address: str | None, workers: int | None = None, hear: Callable[[Any], None] | None = None
) -> Iterator[Cluster]:
    """The cluster at an address; None: the one that RAY_ADDRESS names or that runs here, else one of this machine's own.

    A connection that this process has already is used, and stays. workers: of a cluster that is started here, how many processes.
    """
    ray = require_ray()
    here = address or os.environ.get("RAY_ADDRESS") or "ray"
    ours = not ray.is_initialized()
    known = environment() if ours else None
    if known is not None:
        _connect(ray, address, workers, here, known)
    try:
        _require_same_software(ray, here)
        yield Cluster(ray, here, hear, known)
    finally:
        if ours:
            ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None, here: str, variables: dict[str, str]) -> None:
    told: dict[str, Any] = {"runtime_env": {"env_vars": variables}}
    if not here.startswith("ray://"):
        told |= {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address is not None or os.environ.get("RAY_ADDRESS"):
            _require_answer(here)
            ray.init(address=address, **told)
            return
        count = cores() if workers is None else validate.count("workers", workers)
        try:
            # not address="auto": that also finds a runtime that another process has started for itself, and takes with it
            ray.init(num_cpus=count, include_dashboard=False, **told)
        except ValueError:  # there is one that `ray start` has started, which has as many as it has
            ray.init(**told)
    except ManyArmsError:
        raise
    except Exception as error:
        raise ClusterError(f"{here}: no Ray cluster answers there ({first_line(error)})") from error


def _require_answer(address: str) -> None:
    """Somebody listens there: Ray itself would try for minutes."""
    found = _HOST_AND_PORT.fullmatch(address)
    if found is not None and (found["port"] or address.startswith("ray://")):  # and not "auto" or "local"
        socket.create_connection((found["host"], int(found["port"] or CLIENTS)), SECONDS_TO_ANSWER).close()


def software() -> dict[str, str]:
    """The versions that must agree between this process and those that work for it."""
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "manyarms": metadata.version("manyarms"),
        "numpy": np.__version__,
        "ray": metadata.version("ray"),
    }


def _require_same_software(ray: Any, here: str) -> None:
    """Every machine of the cluster has what this process has: results would differ otherwise, or fail deep inside."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ours = software()
    asked = {
        node["NodeManagerAddress"]: ray.remote(num_cpus=0, max_retries=0)(software)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
        .remote()
        for node in ray.nodes()
        if node["Alive"]
    }
    for machine, reference in asked.items():
        try:
            theirs = ray.get(reference)
        except Exception as error:
            raise ClusterError(
                f"{here}: its machine {machine} cannot run manyarms ({first_line(error)}); install manyarms "
                f"{ours['manyarms']} there"
            ) from error
        for name, version in ours.items():
            if theirs.get(name) != version:
                raise ClusterError(
                    f"{here}: its machine {machine} has {name} {theirs.get(name, 'of no known version')}, and this process "
                    f"{version}; both need the same"
                )


def first_line(error: BaseException) -> str:
    said = [line for line in str(error).splitlines() if line.strip()]
    return said[0].strip() if said else type(error).__name__


__all__ = ["Cluster", "cluster", "environment", "fetched", "first_line", "require_ray", "software"]
