"""Who may call, how much, and what gets out: keys, scopes, hosts, limits, logs, errors."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import httpx
import pytest

from manyarms.live import Live
from manyarms.service import create_app, limits
from manyarms.service.keys import SCOPES, Keys
from manyarms.service.limits import RateLimit
from manyarms.service.problems import Problem
from manyarms.service.request_log import start_logging
from service.conftest import Calling, is_problem

X = [1.0, 0.2, -0.3]
NEEDS = [
    ("POST", "/v1/decide", "decide"), ("POST", "/v1/decide/batch", "decide"), ("POST", "/v1/reward", "reward"),
    ("POST", "/v1/reward/batch", "reward"), ("POST", "/v1/activate", "reward"), ("GET", "/v1/events", "read"),
    ("GET", "/v1/events/e", "read"), ("GET", "/v1/events/e/why", "read"), ("DELETE", "/v1/events/e", "admin"),
    ("GET", "/v1/catalogue", "read"), ("GET", "/v1/catalogue/SKU-1", "read"), ("GET", "/v1/catalogue/SKU-1/statistics", "read"),
    ("POST", "/v1/catalogue", "admin"),
    ("PATCH", "/v1/catalogue/SKU-1", "admin"), ("POST", "/v1/catalogue/retire", "admin"),
    ("POST", "/v1/catalogue/reinstate", "admin"), ("GET", "/v1/agents", "read"), ("POST", "/v1/agents", "admin"),
    ("DELETE", "/v1/agents/a", "admin"), ("POST", "/v1/agents/a/promote", "admin"),
    ("POST", "/v1/agents/roll-back", "admin"), ("POST", "/v1/agents/a/challenge", "admin"),
    ("DELETE", "/v1/agents/a/challenge", "admin"), ("GET", "/v1/deployment", "read"), ("PUT", "/v1/deployment", "admin"),
    ("GET", "/v1/report", "read"), ("GET", "/v1/status", "read"), ("GET", "/v1/settings", "read"),
    ("PATCH", "/v1/settings", "admin"), ("POST", "/v1/admin/compact", "admin"), ("POST", "/v1/admin/backup", "admin"),
    ("GET", "/v1/dashboard", "read"), ("GET", "/v1/edge/key", "edge"), ("GET", "/v1/edge/agent", "edge"),
    ("POST", "/v1/edge/agent/decisions", "edge"),
    ("GET", "/metrics", "metrics"),
]  # fmt: skip
OPEN = {"/", "/assets/{name}", "/healthz", "/readyz", "/openapi.json"}


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Keys, dict[str, str]]:
    """A key for each scope, and their texts."""
    path = tmp_path / "keys.json"
    made = Keys.open(path, make=True)
    return made, {scope: made.add(scope, [scope]) for scope in SCOPES}


def test_every_call_but_the_open_ones_needs_its_scope(calling: Calling, keys: tuple[Keys, dict[str, str]]) -> None:
    known, texts = keys
    client = calling(keys=known)
    for method, path, scope in NEEDS:
        body = is_problem(client.request(method, path, json={}), 401, "key")
        assert "Ocp-Apim-Subscription-Key" in body["detail"] and "Authorization: Bearer" in body["detail"]
        others = next(text for other, text in texts.items() if other != scope)
        is_problem(client.request(method, path, json={}, headers={"X-API-Key": others}), 403, "scope")
        allowed = client.request(method, path, json={}, headers={"X-API-Key": texts[scope]})
        assert allowed.status_code not in (401, 403), (method, path, allowed.text)


def test_the_list_of_calls_is_whole(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()["paths"]
    listed = {(method, _pattern(path)) for method, path, _ in NEEDS}
    for path, methods in described.items():
        for method in methods:
            if path not in OPEN:
                assert (method.upper(), _pattern(path)) in listed, f"{method} {path} is in no test of scopes"


def _pattern(path: str) -> str:
    """With every name in it left out."""
    names = {"e", "SKU-1", "a", "agent"}
    return "/".join("*" if part.startswith("{") or part in names else part for part in path.split("/"))


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key", "Ocp-Apim-Subscription-Key"])
def test_three_headers_bring_a_key(calling: Calling, keys: tuple[Keys, dict[str, str]], header: str) -> None:
    known, texts = keys
    value = f"Bearer {texts['decide']}" if header == "Authorization" else texts["decide"]
    answer = calling(keys=known).post("/v1/decide", json={"context": X}, headers={header: value})
    assert answer.status_code == 200


def test_keys_that_are_no_more_and_were_never(calling: Calling, keys: tuple[Keys, dict[str, str]]) -> None:
    known, texts = keys
    client = calling(keys=known)
    for wrong in (
        "",
        "nonsense",
        texts["decide"][:-1],
        texts["decide"].upper(),
        "ma_" + "0" * 60,
        "\u00e9".encode("latin-1"),
    ):
        is_problem(client.post("/v1/decide", json={"context": X}, headers={"X-API-Key": wrong}), 401, "key")
    known.revoke("decide")
    is_problem(client.post("/v1/decide", json={"context": X}, headers={"X-API-Key": texts["decide"]}), 401, "key")


# ---- without keys


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "10.0.0.1", ""])
def test_without_keys_only_its_own_names_count(client: httpx.Client, host: str) -> None:
    is_problem(client.post("/v1/decide", json={"context": X}, headers={"Host": host}), 421, "host")
    is_problem(client.get("/v1/status", headers={"Host": host}), 421, "host")


def test_names_that_were_given_count(calling: Calling) -> None:
    client = calling(hosts=["decide.example.org"])
    assert client.get("/v1/status", headers={"Host": "decide.example.org:8080"}).status_code == 200


def test_pages_of_other_sites_may_not_call(client: httpx.Client) -> None:
    other = {"Origin": "https://evil.example"}
    is_problem(client.post("/v1/decide", json={"context": X}, headers=other), 403, "origin")
    is_problem(client.post("/v1/decide", json={"context": X}, headers={"Origin": "null"}), 403, "origin")
    own = client.post("/v1/decide", json={"context": X}, headers={"Origin": "http://localhost"})
    assert own.status_code == 200


# ---- limits


def test_a_bucket_is_filled_at_its_rate() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 3, clock=lambda: now[0])
    for _ in range(3):
        limit.take("a")
    with pytest.raises(Problem) as caught:
        limit.take("a")
    assert caught.value.status_code == 429 and caught.value.headers == {"Retry-After": "1"}
    limit.take("b")  # another caller's own
    now[0] = 0.5
    limit.take("a")
    with pytest.raises(Problem):
        limit.take("a")
    now[0] = 100.0
    limit.take("a", 50)  # a batch beyond the bucket takes all of it
    with pytest.raises(Problem):
        limit.take("a")


def test_too_many_requests(calling: Calling) -> None:
    client = calling(rate=0.001, burst=3)
    assert client.post("/v1/decide/batch", json={"decisions": [{"context": X}] * 3}).status_code == 200
    refused = client.post("/v1/decide", json={"context": X})
    is_problem(refused, 429, "rate")
    assert int(refused.headers["Retry-After"]) >= 1
    assert client.get("/healthz").status_code == 200


def test_bodies_that_are_too_large(calling: Calling) -> None:
    client = calling(most_body=1_000)
    large = json.dumps({"context": [0.1] * 1_000}).encode()
    json_type = {"Content-Type": "application/json"}
    for path in ("/v1/decide", "/v1/catalogue", "/nowhere"):
        is_problem(client.post(path, content=large, headers=json_type), 413, "too-large")
    parts = (large[at : at + 100] for at in range(0, len(large), 100))  # without a length
    is_problem(client.post("/v1/decide", content=parts, headers=json_type), 413, "too-large")


def test_a_body_that_does_not_come(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SLOWEST", 0.05)
    app = create_app(live)
    sent: list[dict[str, object]] = []

    async def ask() -> None:
        async def receive() -> dict[str, object]:
            await asyncio.sleep(3600.0)
            return {}

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"10")]
        scope = {"type": "http", "method": "POST", "path": "/v1/decide", "headers": headers, "query_string": b""}
        await app({**scope, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "scheme": "http"}, receive, send)  # type: ignore[arg-type]

    asyncio.run(ask())
    assert sent[0]["status"] == 408 and (b"connection", b"close") in sent[0]["headers"]  # type: ignore[operator]


# ---- what gets out


def test_the_log_has_no_context_no_key_and_no_path(calling: Calling, keys: tuple[Keys, dict[str, str]]) -> None:
    known, texts = keys
    stream = io.StringIO()
    start_logging("json", "debug", stream)
    client = calling(keys=known)
    headers = {"X-API-Key": texts["decide"]}
    client.post("/v1/decide", json={"context": [0.123456789, 1, 2], "id": "person-17"}, headers=headers)
    client.get("/v1/events/person-17", headers={"X-API-Key": texts["read"]})
    client.post("/v1/decide", json={"context": [0.123456789]}, headers=headers)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    asked = [line for line in lines if line["event"] == "request"]
    assert [(line["route"], line["status"], line["caller"]) for line in asked] == [
        ("/v1/decide", 200, "decide"), ("/v1/events/{id}", 200, "read"), ("/v1/decide", 422, "decide"),
    ]  # fmt: skip
    for hidden in ("0.123456789", "person-17", *texts.values()):
        assert hidden not in stream.getvalue()


def test_contexts_are_in_the_log_where_that_was_asked_for(calling: Calling) -> None:
    stream = io.StringIO()
    start_logging("json", "info", stream)
    client = calling(log_contexts=True)
    client.post("/v1/decide", json={"context": X, "id": "person-17"})
    client.post("/v1/decide/batch", json={"decisions": [{"context": X}, {"context": X}]})
    client.post("/v1/reward", json={"event": "person-17"})
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("contexts") for line in lines if line["event"] == "request"] == [[X], [X, X], None]
    assert "person-17" not in stream.getvalue()


def test_a_service_without_a_dashboard_has_no_page(calling: Calling) -> None:
    client = calling(dashboard=False)
    for path in ("/", "/assets/app.js"):
        is_problem(client.get(path), 404)
    assert client.get("/v1/dashboard").status_code == 200
    assert calling().get("/").status_code == 200


def test_an_unexpected_error_is_told_to_the_log_alone(
    calling: Calling, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("inner secret")

    stream = io.StringIO()
    start_logging("json", "info", stream)
    client = calling()
    monkeypatch.setattr(live, "submit_decision", broken)
    monkeypatch.setattr(live, "status", broken)
    for response in (client.post("/v1/decide", json={"context": X}), client.get("/v1/status")):
        body = is_problem(response, 500)
        assert "secret" not in response.text and "Traceback" not in response.text
        assert body["instance"].rpartition(":")[2] in stream.getvalue()
    assert "inner secret" in stream.getvalue()


def test_headers_for_browsers_and_ids_of_requests(client: httpx.Client) -> None:
    answer = client.get("/v1/status", headers={"X-Request-Id": "mine-1"})
    assert answer.headers["X-Request-Id"] == "mine-1"
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert client.get("/healthz", headers={"X-Request-Id": "a\tb <script>"}).headers["X-Request-Id"].isalnum()
    page = client.get("/")
    assert "default-src 'self'" in page.headers["Content-Security-Policy"]
