"""Hostile HTTP over a socket: never a failure of the server, never a hang, and others are served all the while."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import manyarms as ma
from manyarms.service.keys import SCOPES, Keys
from service import hostile
from service.nursery import Nursery
from service.server import WITHIN, Answer, Server, Starter, start_command

PROBLEM = "application/problem+json"
FORBIDDEN = re.compile(r'Traceback|File "|site-packages|\.py\b|/tmp/|SELECT ')


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    """Servers that start quickly, where there are forks."""
    if hasattr(os, "fork"):
        with Nursery() as nursery:
            yield nursery
    else:
        yield start_command


@pytest.fixture(scope="module")
def server(starter: Starter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without keys; whatever it was sent, its store replays afterwards."""
    with Server(tmp_path_factory.mktemp("hostile"), starter=starter) as found:
        yield found
    assert '"unexpected"' not in found.log()
    assert ma.live.replay(found.store).ok


def connected(server: Server) -> socket.socket:
    where = urlsplit(server.address)
    assert where.hostname and where.port
    return socket.create_connection((where.hostname, where.port), WITHIN)


def sent(server: Server, content: bytes, *, hang_up: bool = False) -> list[Answer]:
    """Send bytes; the answers that came until the server hung up. hang_up: send no more, which the server is told."""
    with connected(server) as connection:
        try:
            connection.sendall(content)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        except OSError:  # it has heard enough
            pass
        return answers_in(heard(connection))


def heard(connection: socket.socket) -> bytes:
    """Everything that comes until the other side hangs up, which it must do within a minute."""
    came = b""
    try:
        while part := connection.recv(65_536):
            came += part
    except ConnectionResetError:
        pass
    return came


def answers_in(content: bytes) -> list[Answer]:
    found = []
    while content:
        head, _, content = content.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        status = int(first.split()[1])
        if status == 100:
            continue
        length = int(headers.get("content-length", 0 if status in (204, 304) else len(content)))
        if headers.get("transfer-encoding") == "chunked":  # uvicorn's own words
            length = len(content)
        found.append(Answer(status, headers, content[:length]))
        content = content[length:]
    return found


def is_fine(answer: Answer) -> None:
    """A refusal, if it is one, in its form, that gives nothing away."""
    assert answer.status < 500, answer
    assert not FORBIDDEN.search(answer.content.decode(errors="replace")) or answer.status < 300
    if answer.status >= 400 and "x-request-id" in answer.headers:  # without it, uvicorn's own: it was no HTTP
        told = answer.json()
        if "error" in told:  # as Personalizer's clients expect it
            assert told["error"]["code"] and told["error"]["message"]
            return
        assert answer.headers["content-type"] == PROBLEM
        assert told["status"] == answer.status and told["type"] and told["title"] and told["detail"]


def still_serves(server: Server) -> None:
    assert server.ask("POST", "/v1/decide", {"context": [0.1, 0.2, 0.3]}).status == 200


@pytest.mark.parametrize("name", hostile.BODIES)
def test_bodies_that_mean_no_good_are_refused(server: Server, name: str) -> None:
    content = hostile.BODIES[name]
    for body in (content, b'{"decisions": [%s]}' % content if len(content) < hostile.MOST // 2 else content):
        [answer] = sent(server, hostile.request(body, "/v1/decide", "POST", "Connection: close"))
        assert answer.status in (400, 413, 422) or name in hostile.FINE
        is_fine(answer)
    for path in (
        "/v1/decide/batch",
        "/v1/reward",
        "/v1/activate",
        "/v1/catalogue",
        "/v1/settings",
        "/v1/edge/agent/decisions",
    ):
        for answer in sent(
            server, hostile.request(content, path, "PATCH" if path == "/v1/settings" else "POST", "Connection: close")
        ):
            is_fine(answer)
    still_serves(server)


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_only_json_is_read(server: Server, kind: str | None) -> None:
    body = b'{"context": [0.1, 0.2, 0.3]}'
    for path in ("/v1/decide", "/v1/catalogue", "/v1/admin/compact"):
        for answer in sent(server, hostile.request(body, path, "POST", "Connection: close", kind=kind)):
            assert answer.status in (400, 415)
            is_fine(answer)


def test_addresses_that_mean_no_good_are_answered(server: Server) -> None:
    for path in hostile.PATHS:
        for method in ("GET", "DELETE", "PATCH", "HEAD"):
            content = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1")
            for answer in sent(server, content) if method != "HEAD" else ():
                is_fine(answer)
    still_serves(server)


@pytest.mark.parametrize(("name", "content"), list(hostile.broken()), ids=[name for name, _ in hostile.broken()])
def test_what_is_no_http_is_refused_or_hung_up_on(server: Server, name: str, content: bytes) -> None:
    for answer in sent(server, content, hang_up=True):
        is_fine(answer)
    still_serves(server)


def test_chunks_beyond_the_limit_are_refused_before_they_have_all_come(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(hostile.chunked(b" " * 65_536, end=b""))
        try:
            for _ in range(1_000):  # 64 MB, of a body that may have one
                connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        except OSError:
            pass
        else:
            pytest.fail("all of it was taken")
        came = heard(connection)
    assert not came or answers_in(came)[0].status == 413
    still_serves(server)


def test_pipelined_requests_are_answered_in_their_order(server: Server) -> None:
    bodies = [b'{"context": [0, 0, 1], "id": "pipelined %d"}' % n for n in range(20)]
    bodies[7] = b"{"
    content = b"".join(hostile.request(body) for body in bodies[:-1])
    content += hostile.request(bodies[-1], "/v1/decide", "POST", "Connection: close")
    answers = sent(server, content)
    assert [answer.status for answer in answers] == [400 if n == 7 else 200 for n in range(20)]
    assert [answer.json().get("id") for answer in answers] == [None if n == 7 else f"pipelined {n}" for n in range(20)]


def test_bodies_that_are_cut_off_decide_nothing_and_hold_nobody_up(server: Server) -> None:
    slow = [connected(server) for _ in range(50)]
    try:
        for number, connection in enumerate(slow):
            whole = hostile.request(b'{"context": [0, 0, 1], "id": "cut off %d"}' % number)
            connection.sendall(whole[:-5])
        still_serves(server)
    finally:
        for connection in slow:
            connection.close()
    still_serves(server)
    assert server.ask("GET", "/v1/events?id=cut").json()["events"] == []
    end = time.monotonic() + WITHIN
    while server.log().count('"status": 499') < len(slow):  # nothing unexpected: the client has hung up
        assert time.monotonic() < end, server.log()[-2000:]


def test_every_refusal_is_told_apart_by_its_request(server: Server) -> None:
    body = {"context": "nothing"}
    answers = [server.ask("POST", "/v1/decide", body, {"X-Request-Id": name}) for name in ("mine", "mine too")]
    assert answers[0].headers["x-request-id"] == "mine" and answers[0].json()["instance"] == "urn:manyarms:request:mine"
    assert re.fullmatch("[0-9a-f]{32}", answers[1].headers["x-request-id"])  # not a sane one: one of ours


def test_keys_that_are_missing_wrong_expired_revoked_or_for_something_else(tmp_path: Path, starter: Starter) -> None:
    keys = Keys.open(tmp_path / "keys.json", make=True)
    good = keys.add("good", SCOPES)
    reader = keys.add("reader", ["read"])
    gone = keys.add("gone", SCOPES)
    late = keys.add("late", SCOPES, expires=time.time() + 1.0)
    keys.revoke("gone")
    question = {"context": [0, 0, 1]}
    with Server(tmp_path, keys=tmp_path / "keys.json", starter=starter) as server:
        for headers in (
            {}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": f"Basic {good}"}, {"X-API-Key": ""},
            {"X-API-Key": "x" * 60_000}, {"X-API-Key": good[:-1]}, {"X-API-Key": good + "x"}, {"X-API-Key": good.upper()},
            {"Authorization": f"Bearer {gone}"}, {"X-API-Key": "ma_0000000000000000_" + "A" * 43}, {"X-API-Key": "\xff\xfe"},
        ):  # fmt: skip
            answer = server.ask("POST", "/v1/decide", question, headers)
            assert answer.status == 401 and "www-authenticate" in answer.headers, headers
            is_fine(answer)
            assert good not in answer.content.decode()
        end = time.monotonic() + WITHIN
        while server.ask("POST", "/v1/decide", question, {"X-API-Key": late}).status != 401:
            assert time.monotonic() < end, "a key that has expired is still good"
        for name, before in (("Authorization", "Bearer "), ("X-API-Key", ""), ("Ocp-Apim-Subscription-Key", "")):
            assert server.ask("POST", "/v1/decide", question, {name: before + good}).status == 200
            answer = server.ask("POST", "/v1/decide", question, {name: before + reader})
            assert answer.status == 403
            is_fine(answer)
        assert good not in server.log() and json.dumps(question["context"]) not in server.log()
