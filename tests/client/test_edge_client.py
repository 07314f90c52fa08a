"""At the edge: decisions are the policy's own, none is lost or stored twice, and only the service's bundles are believed."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.scripted import FAILURES, Scripted, problem
from manyarms.client import Backoff, Client, EdgeClient, ServiceError, Unreachable
from manyarms.client.queue import UploadQueue
from manyarms.edge import EdgePolicy, Header, SigningKey
from manyarms.errors import InvalidInput, ManyArmsError, Overloaded, StorageError, StoreUnavailable, UnknownEvent

KEY = SigningKey(bytes(range(32)))
X = [0.5, -1.0]


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """Nothing waits for the disk: that a process is gone is tested here, not that a machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UploadQueue, "synchronous", "OFF")
        yield


def a_bundle(version: int = 1, key: SigningKey | None = KEY, seconds: float = 3600.0) -> bytes:
    now = time.time()
    header = Header("agent", version, "epsilon-greedy", 2, now - 1.0, now + seconds, bytes(16), epsilon=0.2)
    tables = np.random.default_rng(version).normal(size=(1, 5, 2))
    return EdgePolicy(header, tables, ["a", "b", "c", "d", "e"]).to_bytes(key)


class EdgeService(Scripted):
    """A service that has a bundle, and keeps decisions that are uploaded."""

    def __init__(self, failures: Any = ()) -> None:
        super().__init__(failures)
        self.bundle = a_bundle()
        self.uploads: dict[str, Any] = {}
        self.most_bytes = 10**9
        self.refuses: Callable[[dict[str, Any]], int | None] = lambda body: None

    def done(self, request: httpx.Request) -> httpx.Response:
        if len(request.content) > self.most_bytes:
            return httpx.Response(413, json=problem(413, None))
        if request.url.path == "/v1/edge/agent":
            etag = f'"{hash(self.bundle)}"'
            if request.headers.get("If-None-Match") == etag:
                return httpx.Response(304, headers={"ETag": etag})
            return httpx.Response(200, content=self.bundle, headers={"ETag": etag})
        if request.url.path == "/v1/edge/agent/decisions":
            entries = json.loads(request.content)["decisions"]
            return httpx.Response(200, json={"decisions": [self.upload(one) for one in entries]})
        return super().done(request)

    def upload(self, body: dict[str, Any]) -> dict[str, Any]:
        if (status := self.refuses(body)) is not None:
            return problem(status, None)
        if self.uploads.setdefault(body["id"], body) != body:
            return problem(409, "conflict")
        self.stored["decision", body["id"]] += body["id"] not in self.decisions
        self.decisions[body["id"]] = "", body
        return {"status": 200}


def an_edge(service: EdgeService, **options: Any) -> EdgeClient:
    client = Client(
        "http://localhost",
        transport=httpx.MockTransport(service),
        retries=1,
        backoff=Backoff(sleep=lambda seconds: None),
    )
    return EdgeClient(client, "agent", KEY.public, **{"background": False, **options})


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_it_decides_as_the_policy_does_and_uploads_later() -> None:
    service = EdgeService()
    with an_edge(service) as edge:
        policy = EdgePolicy.read(service.bundle, KEY.public)
        made = [edge.decide(X, id=f"e{i}", exclude=["a"]) for i in range(20)]
        for d in made:
            again = policy.decide(X, d.id, exclude=["a"])
            assert (d.action, d.propensity, d.bundle) == (again.action, again.propensity, again.bundle)
        edge.reward("e3", 0.5, id="click")
        assert edge.waiting == 21 and len(service.seen) == 1  # the bundle: deciding asks nobody
        assert edge.upload() == 21 and edge.waiting == 0
        assert service.uploads == {d.id: json.loads(json.dumps(d.as_json())) for d in made}
        assert service.rewards == {("e3", None, "click"): 0.5}
        assert "agent" in repr(edge) and "uploaded" in str(edge)


@given(
    failures=st.lists(st.none() | st.sampled_from(FAILURES), max_size=25), crashes=st.lists(st.booleans(), max_size=8)
)
def test_nothing_is_lost_or_stored_twice(
    failures: list[str | None], crashes: list[bool], tmp_path_factory: Any
) -> None:
    """Uploads fail, and the process is gone now and then: the file has what is left."""
    path = tmp_path_factory.mktemp("edge") / "queue.db"
    service = EdgeService()
    edge = an_edge(service, queue=path)
    service.failures = list(failures)
    made: dict[str, float] = {}
    for number, crashed in enumerate([*crashes, False]):
        for i in range(3):
            event = f"e{number}-{i}"
            edge.decide(X, id=event)
            edge.reward(event, float(number))
            made[event] = float(number)
        try:
            edge.upload()
        except ServiceError:
            assert edge.waiting
        if crashed:
            edge._queue.close()  # no goodbye
            rest, service.failures = service.failures, []
            edge = an_edge(service, queue=path)
            service.failures = rest
    service.failures = []
    edge.upload()
    assert edge.waiting == 0 and edge.refused == ()
    assert set(service.decisions) == set(made) and set(service.stored.values()) == {1}
    assert {event: value for (event, _, _), value in service.rewards.items()} == made
    edge.close()


def test_rewards_wait_for_their_decisions() -> None:
    service = EdgeService()
    service.refuses = lambda body: 503 if body["id"] == "e1" else None
    with an_edge(service) as edge:
        for event in ("e1", "e2"):
            edge.decide(X, id=event)
            edge.reward(event)
        assert edge.upload() == 2 and edge.waiting == 2 and set(service.decisions) == {"e2"}
        service.refuses = lambda body: None
        assert edge.upload() == 2 and len(service.rewards) == 2 and edge.refused == ()


def test_what_is_refused_for_good_does_not_stand_in_the_way() -> None:
    service = EdgeService()
    service.refuses = lambda body: 422 if body["id"] == "e1" else None
    with an_edge(service) as edge:
        for event in ("e1", "e2"):
            edge.decide(X, id=event)
        edge.reward("unknown")
        assert edge.upload() == 3 and edge.waiting == 0
        first, second = edge.refused
        assert isinstance(first, InvalidInput) and isinstance(second, UnknownEvent)


def test_uploads_that_are_too_large_are_made_smaller() -> None:
    service = EdgeService()
    with an_edge(service) as edge:
        for i in range(40):
            edge.decide(X, id=f"e{i}")
            edge.reward(f"e{i}")
        edge.reward("e" * 250, id="i" * 250)  # larger than everything that is taken
        service.most_bytes = 420
        assert edge.upload() == 81 and edge.waiting == 0
        assert len(service.uploads) == 40 == len(service.rewards) and [one.status for one in edge.refused] == [413]


def test_a_full_queue_refuses() -> None:
    with an_edge(EdgeService(), most_waiting=2) as edge:
        edge.decide(X)
        edge.reward("e")
        for call in (lambda: edge.decide(X), lambda: edge.reward("e")):
            with pytest.raises(Overloaded, match="2 entries wait"):
                call()
        edge.upload()
        edge.decide(X)


def test_a_bundle_that_nobody_vouches_for_changes_nothing() -> None:
    service = EdgeService()
    with an_edge(service) as edge:
        before = edge.policy.id
        for bad in (
            a_bundle(2, SigningKey(bytes(32))),
            a_bundle(2, None),
            a_bundle(2)[:-1],
            b"",
            a_bundle(2, seconds=-0.5),
        ):
            service.bundle = bad
            with pytest.raises(StorageError):
                edge.refresh()
            assert edge.policy.id == before
        service.bundle = a_bundle(2)
        assert edge.refresh() and edge.policy.header.version == 2
        assert not edge.refresh()  # still the same: it is not sent again
        assert service.seen[-1].headers["If-None-Match"]
    with pytest.raises(StorageError):
        service.bundle = a_bundle(3, None)
        an_edge(service)
    with an_edge(service, verify=None) as edge:
        assert edge.policy.header.version == 3


def test_it_starts_with_what_it_kept_where_the_service_is_out_of_reach(tmp_path: Path) -> None:
    service, path = EdgeService(), tmp_path / "queue.db"
    with an_edge(service, queue=path) as edge:
        known = edge.policy.id
        edge.decide(X, id="e")
    service.failures = ["refused"] * 2
    with an_edge(service, queue=path) as edge:
        assert edge.policy.id == known and edge.waiting == 1
        assert edge.upload() == 1 and list(service.uploads) == ["e"]
    service.failures = ["refused"] * 2
    with pytest.raises(Unreachable):
        an_edge(service)
    other = SigningKey(bytes(32))
    service.failures = ["refused"] * 2
    client = Client("http://localhost", transport=httpx.MockTransport(service), retries=1, backoff=Backoff(first=0.0))
    with pytest.raises(Unreachable):  # what was kept was signed by somebody else
        EdgeClient(client, "agent", other.public, queue=path, background=False)


def test_the_background_refreshes_not_too_often_and_uploads() -> None:
    service, now = EdgeService(), [0.0]
    with an_edge(service, background=True, refresh=60.0, upload_every=0.01, clock=lambda: now[0]) as edge:
        bundles = lambda: sum(request.url.path == "/v1/edge/agent" for request in service.seen)  # noqa: E731
        for event in ("e1", "e2"):
            edge.decide(X, id=event)
            until(lambda event=event: event in service.decisions)
        assert bundles() == 1
        service.bundle = a_bundle(2)
        now[0] = 60.0
        until(lambda: edge.policy.header.version == 2)
        assert bundles() == 2
        service.failures = ["refused"] * 2
        edge.decide(X, id="e3")
        until(lambda: "e3" in service.decisions and not edge.failures)


def test_closing_uploads_what_waits(tmp_path: Path) -> None:
    service = EdgeService()
    edge = an_edge(service, background=True, upload_every=3600.0)
    edge.decide(X, id="e")
    edge.close()
    assert list(service.decisions) == ["e"]
    with pytest.raises(StoreUnavailable, match="closed"):
        edge.decide(X)
    service = EdgeService()
    edge = an_edge(service, background=True, upload_every=3600.0, queue=tmp_path / "q.db")
    edge.decide(X, id="e")
    service.failures = ["refused"] * 9
    edge.close()
    left = UploadQueue(tmp_path / "q.db", 10)
    assert len(left) == 1 and edge.failures["upload"]
    left.close()


def test_what_waits_is_its_owner_s_alone(tmp_path: Path) -> None:
    with an_edge(EdgeService(), queue=tmp_path / "q.db") as edge:
        edge.decide(X)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert "q.db" in modes and set(modes.values()) == {0o600}


def test_files_that_are_no_queues_are_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.db"
    wrong.write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(StorageError):
        UploadQueue(wrong, 10)
    with pytest.raises(StoreUnavailable):
        UploadQueue(tmp_path / "no" / "folder.db", 10)


@pytest.mark.parametrize(
    "wrong", [{"refresh": 0}, {"upload_every": 0}, {"most_waiting": 0}, {"background": 1}, {"verify": "x"}]
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        an_edge(EdgeService(), **wrong)


def test_a_key_is_needed() -> None:
    client = Client("http://localhost", transport=httpx.MockTransport(EdgeService()))
    with pytest.raises(InvalidInput, match="public_key"):
        EdgeClient(client, "agent")
    with pytest.raises(ManyArmsError):
        EdgeClient("http://localhost", "agent", KEY.public)  # type: ignore[arg-type]
