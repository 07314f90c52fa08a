"""The real server is killed and ended under concurrent clients; `make torture` kills a thousand.

What clients were told is compared with what the store has (`service.kill_checks`).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import manyarms as ma
from live import tortured
from service import clients, kill_checks
from service.nursery import Nursery
from service.server import EVERY, HURRIED, TESTS, WITHIN, Server, Starter, environment, start_command

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")


def killed(store: str, kills: int, *options: str) -> None:
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "service.killing",
        "--kills",
        str(kills),
        "--store",
        store,
        *options,
    ]
    run = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=1800, env=environment())
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-4000:]
    assert "nothing was lost, invented or counted twice" in run.stdout


@forks
def test_five_kills() -> None:
    killed("sqlite", 5)


@pytest.mark.slow
@forks
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_fifty_kills(store: str) -> None:
    killed(store, 50)


@pytest.fixture(scope="module")
def starter() -> Iterator[Starter]:
    """Servers that start quickly, where there are forks."""
    if hasattr(os, "fork"):
        with Nursery() as nursery:
            yield nursery
    else:
        yield start_command


# ---- SIGTERM: what was accepted is answered


def halfway(server: Server, event: str) -> tuple[socket.socket, bytes]:
    """A request that the server has accepted and is reading, as it has said itself (100 Continue), and the rest of it."""
    where = urlsplit(server.address)
    assert where.hostname and where.port
    body = b'{"context": [0.5, -0.25, 1.0], "id": "%s"}' % event.encode()
    connection = socket.create_connection((where.hostname, where.port), WITHIN)
    head = (
        f"POST /v1/decide HTTP/1.1\r\nHost: {where.netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    connection.sendall(head.encode() + body[:10])
    told = b""
    while b"\r\n\r\n" not in told:
        told += connection.recv(1)
    assert told.startswith(b"HTTP/1.1 100 ")
    return connection, body[10:]


def test_what_is_under_way_at_sigterm_is_answered(tmp_path: Path, starter: Starter) -> None:
    with Server(tmp_path, settings={"server": {"shutdown": WITHIN}}, starter=starter) as server:
        begun = {f"event{number}": halfway(server, f"event{number}") for number in range(20)}
        server.terminate()
        refused = False
        end = time.monotonic() + WITHIN
        while not refused and time.monotonic() < end:  # no new connection is taken
            try:
                server.ask("GET", "/healthz")
                time.sleep(EVERY)
            except OSError:
                refused = True
        assert refused
        for event, (connection, rest) in begun.items():
            with connection:
                connection.sendall(rest)
                answer = b"".join(iter(partial(connection.recv, 4096), b""))
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            assert f'"id":"{event}"'.encode() in answer
        assert server.stop() in (0, -signal.SIGTERM)
    with ma.live.open(server.store, background=False) as live:
        assert {live.event(event).id for event in begun} == set(begun)


def test_whatever_the_store_has_after_sigterm_was_told(tmp_path: Path, starter: Starter) -> None:
    """A kill may come between a commit and its answer; an orderly end never does: nothing is kept that nobody was told of."""
    with Server(tmp_path, settings={**HURRIED, "server": {"shutdown": WITHIN}}, starter=starter) as server:
        shared = clients.Shared(lambda _: server.address)
        some = [clients.OneClient(f"client{number}", number, shared) for number in range(4)]
        for client in some:
            client.thread.start()
        end = time.monotonic() + WITHIN
        while shared.answered < 100 and time.monotonic() < end:
            time.sleep(EVERY)
        assert server.stop() in (0, -signal.SIGTERM)
        shared.stop.set()
        for client in some:
            client.thread.join(WITHIN)
    journals = [client.journal for client in some]
    wrong, _ = kill_checks.check(server.store, journals)
    assert wrong == []
    with ma.live.open(server.store, background=False) as live:
        rows = live.database.read(f"SELECT {kill_checks.COLUMNS} FROM decisions")
        assert len(rows) > 0
        assert kill_checks.untold(kill_checks.Journals(journals), rows) == []


# ---- the checks see what they are for


def journal_of(store: str) -> list[tuple[object, ...]]:
    """One decision with its reward, in a store and in a journal."""
    context = tortured.context_of("event").tolist()
    asked = {"context": context, "deferred": False, "id": "event"}
    with tortured.open_live(store, background=False) as live:
        told = live.decide(context, id="event")
        live.reward("event", 0.5, action=told.action, id="click")
    answer = {name: getattr(told, name) for name in ("id", "action", *kill_checks.SAME)}
    return [
        ("asking", "event", asked),
        ("told", "event", {**answer, "actions": list(told.actions)}),
        ("rewarding", "event", told.action, "click", 0.5),
        ("rewarded", "event", told.action, "click", 0.5),
    ]


def found(store: str, *journals: Sequence[tuple[object, ...]]) -> str:
    return "\n".join(kill_checks.check(store, journals)[0])


def test_checks_find_nothing_where_nothing_is_wrong(tmp_path: Path) -> None:
    store = str(tmp_path / "live.db")
    assert found(store, journal_of(store)) == ""


def test_checks_find_what_was_lost_invented_changed_and_told_otherwise(tmp_path: Path) -> None:
    store = str(tmp_path / "live.db")
    journal = journal_of(store)
    answer = journal[1][2]
    assert isinstance(answer, dict)
    assert "invented: decision event" in found(store)
    assert "invented: reward" in found(store, journal[:2])
    other = {"context": tortured.context_of("other").tolist(), "deferred": False, "id": "other"}
    lost = [("asking", "other", other), ("told", "other", {**answer, "id": "other"})]
    assert "lost: decision other" in found(store, journal, lost)
    assert "lost: reward" in found(store, journal, [("rewarded", "event", 0, "purchase", 1.0)])
    changed = ("told", "event", {**answer, "propensity": 0.123})
    assert "changed: decision event" in found(store, [journal[0], changed, *journal[2:]])
    assert "told twice, and not the same" in found(store, journal, [("told", "event", {**answer, "version": 99})])
    assert "lost: activation" in found(store, journal, [("activated", "event")])
    assert "not erased: event" in found(store, journal, [("erasing", "event"), ("erased", "event")])
    assert "broken: no answer" in found(store, journal, [("broken", "no answer")])
