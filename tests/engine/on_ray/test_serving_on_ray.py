"""The service on a real Ray runtime: replicas are killed and replaced under load, and nothing that was answered is lost."""

from __future__ import annotations

import http.client
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from live import tortured
from live.postgres import Server as Postgres
from live.postgres import postgres  # noqa: F401  # a fixture
from manyarms.client import ServiceError
from manyarms.engine.cluster import Cluster
from manyarms.errors import ClusterError
from manyarms.service import Config, make_config
from manyarms.service.keys import SCOPES, Keys
from manyarms.service.replicas import Replicas
from service import clients, kill_checks
from service.clients import PROBLEM, Gone
from service.server import HURRIED, Answer, Server, ask, connect, save_agent

pytest.importorskip("ray")
pytest.importorskip("ray.serve")
pytestmark = pytest.mark.slow

WITHIN = 90.0  # seconds for anything that Serve does on a busy machine
CLIENTS = 4
SHARE = 0.4  # of a core, for each replica: four of them fit on two cores
SECRET = "hush-hush-of-the-database"


class PatientClient(clients.OneClient):
    """Takes an answer of Serve's proxy itself, whose replica has gone, for no answer: what was asked may be done or not."""

    def _look_at(self, method: str, path: str, answer: Answer) -> None:
        if answer.status in (500, 503) and not answer.headers.get("content-type", "").startswith(PROBLEM):
            self.note("unanswered", f"{answer.status} of the proxy")
            raise Gone
        super()._look_at(method, path, answer)

    def _failed(self, error: ServiceError) -> None:
        if error.status == 500 and not error.problem:
            self.note("unanswered", "500 of the proxy")
        else:
            super()._failed(error)


def settings(folder: Path, store: str, **options: Any) -> Config:
    """Settings with which much happens in a short time, and a port that is free."""
    for name in tortured.OTHERS:
        save_agent(folder / "agents" / name, thompson=name == "third")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    sections = {**HURRIED, "agent": {"others": str(folder / "agents"), "folder": str(save_agent(folder / "agent"))}}
    return make_config(sections, {"store": store, "port": port, "shutdown": 30.0, **options})


def replica_pids() -> list[int]:
    """Of the replicas that this process's own runtime has started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and "ServeReplica:manyarms" in _read(entry / "cmdline") and _is_ours(int(entry.name)):
            found.append(int(entry.name))
    return found


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        told = _read(Path(f"/proc/{pid}/stat"))
        pid = int(told.rpartition(")")[2].split()[1]) if told else 0
    return False


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, f"not within {WITHIN:g} s: {what}"
        time.sleep(0.1)


def wait_for_answers(shared: clients.Shared, number: int) -> None:
    goal = shared.answered + number
    wait_until(lambda: shared.answered >= goal, f"{number} more answers")


@pytest.fixture
def load() -> Iterator[Callable[..., tuple[clients.Shared, list[PatientClient]]]]:
    """Starts clients, which have ended when the test has."""
    started: list[tuple[clients.Shared, list[PatientClient]]] = []

    def start(address: str, key: str | None) -> tuple[clients.Shared, list[PatientClient]]:
        shared = clients.Shared(lambda _: address, key)
        rng = random.Random(0)
        some = [PatientClient(f"client{n}", rng.randrange(2**32), shared) for n in range(CLIENTS)]
        started.append((shared, some))
        for one in some:
            one.thread.start()
        return started[-1]

    yield start
    for shared, some in started:
        end_of(shared, some)


def end_of(shared: clients.Shared, some: list[PatientClient]) -> None:
    shared.stop.set()
    for one in some:
        one.thread.join(WITHIN)
        assert not one.thread.is_alive()


def test_replicas_come_and_go_under_load_and_nothing_is_lost(
    ray_engine: Cluster,
    postgres: Postgres,  # noqa: F811
    tmp_path: Path,
    load: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ray import serve

    from manyarms.service import on_ray
    from manyarms.service.on_ray import NAME, application, serving
    from manyarms.service.replicas import for_replicas

    # room for more beside those that are there: as in a cluster, and not only in place of them
    monkeypatch.setattr(on_ray, "share_of", lambda *_: SHARE)
    store = postgres.new_database()
    key = Keys.open(tmp_path / "keys.json", make=True).add("everything", SCOPES)
    secret = store.replace("tester@", f"tester:{SECRET}@")  # which the server does not ask for
    config = settings(tmp_path, secret, keys=tmp_path / "keys.json")
    with serving(ray_engine, config, Replicas(2, 2)) as address:
        assert address == f"http://127.0.0.1:{config.port}"
        shared, some = load(address, key)
        wait_for_answers(shared, 200)
        assert len(replica_pids()) == 2
        with pytest.raises(ClusterError, match="already"), serving(ray_engine, config, Replicas()):
            pass
        for _ in range(2):  # whichever learns is among them
            before = set(replica_pids())
            os.kill(random.Random(1).choice(sorted(before)), signal.SIGKILL)
            wait_until(lambda before=before: len(set(replica_pids()) & before) < 2, "a replica is gone")
            wait_for_answers(shared, 100)
            wait_until(lambda: len(replica_pids()) == 2, "another one has taken its place")
        for number in (3, 1):
            told = application(for_replicas(config), Replicas(number, number), SHARE)
            serve.run(told, name=NAME, route_prefix="/")
            wait_until(lambda number=number: len(replica_pids()) == number, f"{number} replicas")
            wait_for_answers(shared, 100)
        assert metrics_of(address, key)
        with closing(connect(address)) as stranger:
            assert ask(stranger, "POST", "/v1/decide", {"context": [0.0, 0.0, 0.0]}).status == 401
        assert not found_in_the_open(SECRET) and not found_in_the_open(key), "a secret is where others can read it"
        assert SECRET not in str(serve.status()) + repr(config)
        end_of(shared, some)
    assert replica_pids() == []
    wrong, figures = kill_checks.check(store, [one.journal for one in some])
    print(figures)
    assert wrong == []
    assert figures["decisions"] > 100 and figures["rewards"] > 50


def metrics_of(address: str, key: str) -> str:
    """The name of the replica that has answered: every figure has it."""
    with closing(connect(address)) as connection:
        text = ask(connection, "GET", "/metrics", headers={"X-API-Key": key}).content.decode()
    figures = [line for line in text.splitlines() if line and not line.startswith("#")]
    names = {line.partition('replica="')[2].partition('"')[0] for line in figures}
    assert len(names) == 1 and any(line.startswith("manyarms_is_learner{") for line in figures)
    return names.pop()


def found_in_the_open(secret: str) -> list[str]:
    """Files of Ray's session and words of processes that have a secret in them."""
    import ray

    logs = Path(ray._private.worker._global_node.get_logs_dir_path())  # type: ignore[attr-defined]
    places = [path for path in logs.rglob("*") if path.is_file()]
    places += [entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert len(places) > 20
    return [str(place) for place in places if secret in _read(place)]


def test_a_range_follows_the_load(ray_engine: Cluster, tmp_path: Path) -> None:
    from manyarms.service.on_ray import application, share_of

    config = settings(tmp_path, "postgresql://tester@nowhere/shop")
    scaling = application(config, Replicas(2, 6))._bound_deployment._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 6)
    fixed = application(config, Replicas(3, 3))._bound_deployment._deployment_config
    assert fixed.num_replicas == 3 and fixed.autoscaling_config is None
    assert share_of(ray_engine, Replicas(1, 1)) == 1.0 and share_of(ray_engine, Replicas(2, 6)) < 0.5


def test_a_store_that_does_not_answer_is_told_in_its_own_words(ray_engine: Cluster, tmp_path: Path) -> None:
    from manyarms.errors import ManyArmsError
    from manyarms.service.on_ray import serving

    store = f"postgresql://tester:{SECRET}@127.0.0.1:9/shop"
    with pytest.raises(ManyArmsError) as told, serving(ray_engine, settings(tmp_path, store), Replicas(2, 2)):
        pass
    assert "127.0.0.1" in str(told.value) and SECRET not in str(told.value)
    assert replica_pids() == []


def test_the_command_ends_cleanly(tmp_path: Path) -> None:
    """A runtime of its own, one replica on an SQLite file: SIGTERM, and everything that it has started is gone."""
    with Server(tmp_path, options=["--on", "ray"]) as server:
        told = server.ask("POST", "/v1/decide", {"context": [0.1, 0.2, 0.3], "id": "kept"}).json()
        assert told["id"] == "kept"
        assert server.ask("GET", "/readyz").status == 200 and server.ask("GET", "/healthz").status == 200
        server.terminate()
        wait_until(lambda: not server.running, "the command has ended")
        assert server.code == 0, server.log()
        with pytest.raises((OSError, http.client.HTTPException)):
            server.ask("GET", "/healthz", timeout=5.0)
    import manyarms as ma

    with ma.live.open(server.store, background=False) as live:
        assert live.event("kept").id == "kept"
