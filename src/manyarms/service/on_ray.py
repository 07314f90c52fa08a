"""The service as an application of Ray Serve: replicas that decide on snapshots and write to one store.

Each replica is the whole service in a process of its own: it opens the store and the keys by the same settings. One of them
learns, by the lease in the store (`live/lease.py`), and the others follow; when it goes, another one takes the lease. Serve's
proxy takes the requests and chooses a replica; one that shall go gets no new ones, and answers those that it has.

Settings reach a replica as arguments of its constructor: neither `user_config` nor the environment of a deployment, both of which
Ray's dashboard and Serve's status show. The address of a store, which may hold a password, is in no `repr` of them.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from manyarms.engine.cluster import Cluster, cluster, require_ray
from manyarms.errors import ClusterError, InvalidInput, MissingExtra
from manyarms.service.app import Application, create_app
from manyarms.service.config import Config, is_loopback
from manyarms.service.replicas import Replicas, check_on_cluster, for_replicas, is_shared
from manyarms.service.request_log import start_logging
from manyarms.service.running import bound, settle
from manyarms.service.runtime import open_live, open_service

NAME = "manyarms"
DEPLOYMENT = "service"
AT_ONCE = 256  # requests in one replica: they share commits, so that many at once cost little more than a few
BUSY = 8  # requests under way in a replica, on average, above which one more is started
LOOK_EVERY = 1.0  # seconds between two looks whether the application is still there
AFTER_DRAINING = 10.0  # seconds beside `server.shutdown` for a replica to close its store
QUIET = {"enable_access_log": False, "log_level": "WARNING"}
"""Of Serve's own: paths hold ids of events, and the service logs its requests itself."""


class Replica:
    """One process of the service. Ray Serve makes it, and asks it for its application."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def __serve_build_asgi_app__(self) -> Application:
        from ray import serve

        start_logging(self._config.log_format, self._config.log_level)
        app = create_app(open_service(self._config, replica=serve.get_replica_context().replica_id.unique_id))
        settle()
        return app


def run_on_ray(config: Config, replicas: Replicas, on: str = "ray", ready: Callable[[str], None] | None = None) -> None:
    """Serve on the cluster that `on` names until SIGTERM or SIGINT; then the application goes, and a runtime of our own too.

    ready: told the address when all replicas can decide.
    """
    check_on_cluster(config, replicas, on)
    require_serve()
    # signals last: Ray has handlers of its own, which it sets when it connects
    with (
        cluster(None if on == "ray" else on) as engine,
        _asked_to_end() as ended,
        serving(engine, config, replicas) as address,
    ):
        if ready is not None:
            ready(address)
        while not ended.wait(LOOK_EVERY):
            _require_running(engine)


def require_serve() -> Any:
    """`ray.serve`, or what to install."""
    require_ray()
    try:
        from ray import serve
    except ImportError as error:
        raise MissingExtra(error.name or "ray[serve]", "ray", "serving on a cluster") from None
    return serve


@contextmanager
def serving(engine: Cluster, config: Config, replicas: Replicas) -> Iterator[str]:
    """The application on a cluster, for the length of a block; its address."""
    serve = require_serve()
    _check_machines(engine, config)
    before = _running_there()
    if before and NAME in serve.status().applications:
        raise ClusterError(
            f"{engine.address}: Ray Serve has an application {NAME!r} there already; end it first, by stopping the command that "
            "started it or with `serve shutdown`"
        )
    told = _with_a_port(for_replicas(config))
    # once, before all: a store that is new is made by one process, and what is wrong with it is told in its own words
    for _ in engine.map(prepare, [told]):
        pass
    try:
        _start_proxy(serve, engine, told)
        serve.run(
            application(told, replicas, share_of(engine, replicas)),
            name=NAME,
            route_prefix="/",
            logging_config=dict(QUIET),
        )
        host = f"[{told.host}]" if ":" in told.host and not told.host.startswith("[") else told.host
        yield f"http://{host}:{told.port}"
    except RuntimeError as error:
        raise ClusterError(f"{engine.address}: Ray Serve does not run the service ({error})") from None
    finally:
        if before:
            serve.delete(NAME)
        else:
            serve.shutdown()


def share_of(engine: Cluster, replicas: Replicas) -> float:
    """Of a core, for one replica: all of it where there are enough; fewer cores run them all the same, and they take turns."""
    return min(1.0, 0.9 * engine.workers / replicas.most)


def application(config: Config, replicas: Replicas, share: float = 1.0) -> Any:
    """What Serve runs: a class, its settings, and how many there are. share: of a core, for each."""
    from ray import serve

    number: dict[str, Any] = {"num_replicas": replicas.least}
    if not replicas.fixed:
        scaling = {"min_replicas": replicas.least, "max_replicas": replicas.most, "target_ongoing_requests": BUSY}
        number = {"autoscaling_config": scaling}
    deployment = serve.deployment(
        name=DEPLOYMENT,
        ray_actor_options={"num_cpus": share},
        max_ongoing_requests=AT_ONCE,
        max_queued_requests=config.most_waiting,
        graceful_shutdown_timeout_s=config.shutdown + AFTER_DRAINING,
        graceful_shutdown_wait_loop_s=0.2,
        **number,
    )
    return deployment(serve.ingress()(Replica)).bind(config)


def prepare(config: Config) -> None:
    """Open the store as a replica will, and close it: made where it is new, refused where it cannot be used."""
    open_live(config).close()


def _with_a_port(config: Config) -> Config:
    """Serve's proxy takes a port that it is told; for 0, one that is free here now."""
    with bound(config.host, config.port) if is_loopback(config.host) or config.port == 0 else socket.socket() as free:
        return config if config.port else replace(config, port=free.getsockname()[1])


def _check_machines(engine: Cluster, config: Config) -> None:
    """A file is on one machine: refused on a cluster of several, where the next replica may be on another."""
    import ray

    machines = sum(1 for node in ray.nodes() if node["Alive"])
    if machines > 1 and not is_shared(config.store):
        raise InvalidInput(
            "--store",
            "an SQLite file",
            f"--store postgresql://user@host/name: {engine.address} has {machines} machines, and a replica may be on any of them",
        )


def _start_proxy(serve: Any, engine: Cluster, config: Config) -> None:
    from ray.serve.context import _get_global_client

    # a loopback address is asked for on one machine; others stand behind a load balancer that knows all of them
    where = "HeadOnly" if is_loopback(config.host) else "EveryNode"
    serve.start(
        proxy_location=where,
        http_options={"host": config.host.strip("[]"), "port": config.port, "keep_alive_timeout_s": 75},
        logging_config=dict(QUIET),
    )
    found = _get_global_client().http_config  # of the Serve that runs there, which may be somebody else's
    if (found.host, found.port) != (config.host.strip("[]"), config.port):
        raise ClusterError(
            f"{engine.address}: Ray Serve runs there already, and listens on {found.host}, port {found.port}: pass that as "
            "--host and --port, or end it first with `serve shutdown`"
        )


def _running_there() -> bool:
    """Whether somebody has started Serve on the cluster already, who will want it when we are gone."""
    from ray.serve.context import _get_global_client

    return _get_global_client(raise_if_no_controller_running=False) is not None


def _require_running(engine: Cluster) -> None:
    """Refuse to wait for ever for an application that somebody else has deleted."""
    from ray import serve

    if NAME not in serve.status().applications:
        raise ClusterError(f"{engine.address}: the service is not there any more: somebody has deleted it")


@contextmanager
def _asked_to_end() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set. What is being started then is started first: half of it has no clean end."""
    ended = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield ended
        return
    before = {number: signal.signal(number, lambda *_: ended.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


__all__ = ["NAME", "Replica", "application", "prepare", "require_serve", "run_on_ray", "serving", "share_of"]
