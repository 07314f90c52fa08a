"""What a hostile caller tries: to be taken for somebody else, to hold up the others, to learn where things lie."""

from __future__ import annotations

import json
import logging
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from manyarms.errors import StorageError, StoreUnavailable
from manyarms.live import Live
from manyarms.service import problems, runtime
from manyarms.service.access import _same
from manyarms.service.keys import LOOK_EVERY, Keys
from manyarms.service.metrics import Metrics
from manyarms.service.problems import of_error
from manyarms.service.request_log import NAME
from service.conftest import Calling, is_problem

X = [1.0, 0.2, -0.3]
JSON = {"Content-Type": "application/json"}
WITHIN = 60.0


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)


# ---- to be taken for somebody else


@pytest.mark.parametrize(
    "host",
    ["x@localhost", "evil\\@localhost", "localhost#@evil", "localhost/..", "localhost?.evil",
     "localhost:", "[", "[::1", "localhost:1:2"],
)  # fmt: skip
def test_a_host_is_a_name_and_a_port_and_nothing_else(client: httpx.Client, host: str) -> None:
    is_problem(client.get("/v1/status", headers={"Host": host}), 421, "host")
    is_problem(client.post("/v1/decide", json={"context": X}, headers={"Host": host}), 421, "host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:80", "[::1]"])
def test_this_machine_has_several_names(client: httpx.Client, host: str) -> None:
    assert client.get("/v1/status", headers={"Host": host}).status_code == 200


def test_a_page_at_another_port_is_of_another_program(client: httpx.Client) -> None:
    for origin in ("http://localhost:3000", "file://", "null", "", "http://localhost.evil"):
        answer = client.post("/v1/agents/roll-back", headers={"Host": "localhost:8080", "Origin": origin})
        is_problem(answer, 403, "origin")
    for site in ("cross-site", "same-site"):  # an image or a script: no Origin comes with it
        body = is_problem(client.get("/v1/status", headers={"Sec-Fetch-Site": site}), 403, "origin")
        assert body["title"] == "Not from another site"
    own = {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/v1/decide", json={"context": X}, headers=own).status_code == 200


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://localhost", "localhost", True), ("http://localhost:80", "localhost", True),
        ("https://a.example", "a.example:443", True), ("HTTP://Localhost:8080", "localhost:8080", True),
        ("http://a.example:8080", "a.example", False), ("https://a.example", "a.example:80", False),
        ("a.example", "a.example", False),
    ],
)  # fmt: skip
def test_an_origin_and_a_host(origin: str, host: str, same: bool) -> None:
    assert _same(origin, host) is same


def test_a_stranger_is_refused_before_anything_is_read(calling: Calling, tmp_path: Path) -> None:
    """Whatever the path, the method and the body are: a body that is no JSON is not even found out."""
    client = calling(keys=Keys.open(tmp_path / "keys.json", make=True))

    for path in ("/v1/catalogue", "/v1/decide", "/v1/nowhere", "/v1/edge/agent/decisions", "/v1/status/", "/metrics"):
        is_problem(client.post(path, content=b"{", headers=JSON), 401, "key")
        is_problem(client.request("OPTIONS", path), 401, "key")


def test_a_path_with_another_slash_is_another_path(client: httpx.Client) -> None:
    """Nobody is sent to an address that a header has named."""
    for path in ("/v1/status/", "/v1//status", "//v1/status", "/healthz/"):
        is_problem(client.get(path, headers={"Host": "localhost"}, follow_redirects=False), 404)


# ---- to hold up the others


def test_slow_calls_hold_up_nobody_else(calling: Calling, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    let_go, begun = threading.Event(), threading.Semaphore(0)

    def slow(*_: object, **__: object) -> Any:
        begun.release()
        assert let_go.wait(WITHIN)
        raise StoreUnavailable("later")

    monkeypatch.setattr(live, "why", slow)
    monkeypatch.setattr(runtime, "MOST_SLOW", runtime.SLOW)
    client = calling(most_waiting=8)
    with ThreadPoolExecutor(runtime.SLOW) as others:
        waiting = [others.submit(client.get, "/v1/events/e/why") for _ in range(runtime.SLOW)]
        try:
            for _ in range(runtime.SLOW):
                assert begun.acquire(timeout=WITHIN)
            is_problem(client.get("/v1/events/e/why"), 503, "overloaded")
            assert client.get("/readyz").status_code == 200
            assert client.get("/metrics").status_code == 200
            assert client.get("/v1/catalogue").status_code == 200
            decided = client.post("/v1/decide", json={"context": X}).json()
            assert (
                client.post("/v1/reward", json={"event": decided["id"], "action": decided["action"]}).status_code == 204
            )
        finally:
            let_go.set()
        assert {one.result().status_code for one in waiting} == {503}


def test_a_long_compaction_holds_up_no_other_slow_call(
    calling: Calling, live: Live, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    let_go, begun = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> Any:
        begun.set()
        assert let_go.wait(WITHIN)
        raise StoreUnavailable("later")

    monkeypatch.setattr(live, "compact", slow)
    client = calling(edge=tmp_path / "edge")
    event = client.post("/v1/decide", json={"context": X}).json()["id"]
    with ThreadPoolExecutor(3) as others:
        waiting = [others.submit(client.post, "/v1/admin/compact", json={"keep": 0}) for _ in range(3)]
        try:
            assert begun.wait(WITHIN)
            assert client.get("/v1/edge/agent").status_code == 200
            assert client.get(f"/v1/events/{event}/why").status_code == 200
            assert client.get("/v1/catalogue", params={"search": "SKU"}).status_code == 200
        finally:
            let_go.set()
        assert {one.result().status_code for one in waiting} == {503}


def test_a_batch_lets_others_decide(calling: Calling, live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its decisions are made in parts: with one thread, a decision that comes later is answered before the batch is."""
    monkeypatch.setattr(runtime, "SLICE", 0.0)
    made: list[str] = []
    began = threading.Event()
    submit = live.submit_decision

    def watched(**arguments: Any) -> Any:
        made.append(arguments["id"])
        began.set()
        if arguments["id"] != "other":
            time.sleep(0.005)
        return submit(**arguments)

    monkeypatch.setattr(live, "submit_decision", watched)
    client = calling(threads=1)
    batch = {"decisions": [{"context": X, "id": f"b{i}"} for i in range(200)]}
    with ThreadPoolExecutor(1) as others:
        told = others.submit(client.post, "/v1/decide/batch", json=batch)
        assert began.wait(WITHIN)
        assert client.post("/v1/decide", json={"context": X, "id": "other"}).status_code == 200
        answers = told.result().json()["decisions"]
    assert [one["id"] for one in answers] == [f"b{i}" for i in range(200)]
    assert made.index("other") < made.index("b199")


def test_a_batch_asks_for_so_many_actions(client: httpx.Client) -> None:
    refused = client.post("/v1/decide/batch", json={"decisions": [{"context": X, "k": 10_000}] * 11})
    assert "110,000 actions at once" in is_problem(refused, 422, "invalid-input")["detail"]


def test_methods_that_are_made_up_are_counted_as_one() -> None:
    metrics = Metrics(lambda: {})
    for number in range(50):
        metrics.count("unmatched", f"M{number}", 405, 0.1)
    found = metrics._requests.collect()
    labels = {sample.labels.get("method") for family in found for sample in family.samples}
    assert labels == {"other"}


# ---- to learn where things lie


def test_the_store_s_path_is_told_to_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger(NAME).addHandler(caplog.handler)
    try:
        status, body, headers = of_error(StoreUnavailable("/secret/live.db: locked by another process"), "r1")
    finally:
        logging.getLogger(NAME).removeHandler(caplog.handler)
    assert status == 503 and headers == {"Retry-After": "1"} and "secret" not in json.dumps(body)
    assert any("/secret/live.db" in str(vars(record)) and "r1" in str(vars(record)) for record in caplog.records)


def test_what_fails_is_told_without_paths(calling: Calling, tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    keys = Keys.open(path, make=True)
    key = keys.add("reads", ["read"])
    client = calling(keys=keys)
    client.headers["X-API-Key"] = key
    path.chmod(0o644)
    time.sleep(LOOK_EVERY)
    eventually(lambda: bool(client.get("/v1/status").json()["failures"]))
    failure = client.get("/v1/status").json()["failures"]["keys"]
    assert failure.startswith("the file of keys: others than its owner may read")
    eventually(lambda: "the file of keys" in json.dumps(client.get("/v1/dashboard").json()["alarms"]))
    assert str(tmp_path) not in client.get("/v1/status").text + client.get("/v1/dashboard").text


def test_bundles_are_nobody_else_s(calling: Calling, tmp_path: Path) -> None:
    client = calling(edge=tmp_path / "edge")
    assert client.get("/v1/edge/agent").status_code == 200
    for path in (tmp_path / "edge").rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_problem_has_one_title(client: httpx.Client) -> None:
    """Whoever refuses, a route or the library: of one type and status there is one title."""
    of_the_route = client.post("/v1/admin/backup"), client.patch("/v1/settings", json={})
    of_the_library = client.post("/v1/agents/roll-back"), client.patch("/v1/settings", json={"wait": -1})
    for one, other, status in zip(of_the_route, of_the_library, (409, 422), strict=True):
        assert one.status_code == other.status_code == status
        assert one.json()["type"] == other.json()["type"] and one.json()["title"] == other.json()["title"]


def test_problems_know_what_they_hide() -> None:
    """Every error that may name a place is told in other words."""
    for kind, _, status, _ in problems.TABLE:
        if status >= 500 and issubclass(kind, StorageError):
            assert "/secret" not in json.dumps(of_error(kind("/secret"))[1])
