"""Over real connections on this machine: what is a failure to connect, what is one after that, and how each ends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from manyarms.client import Backoff, Client, ServiceError, Unreachable


class Counted:
    """Pauses, which nobody waits for."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, seconds: float) -> None:
        self.number += 1


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[tuple[int, list[bytes]]]:
    """A port where every connection is read once and answered so; what was read."""
    came: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    read = connection.recv(65536)
                    if not read:
                        return  # the test is over
                    came.append(read)
                    answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        yield port, came
        with socket.create_connection(("127.0.0.1", port)):
            pass
        thread.join(60.0)


def client_of(port: int, pauses: Counted, timeout: float = 60.0) -> Client:
    return Client(f"http://127.0.0.1:{port}", "a-key", retries=2, timeout=timeout, backoff=Backoff(sleep=pauses))


def test_where_nobody_listens_every_call_is_tried_again() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and not listening: nobody else can have it
        pauses = Counted()
        with client_of(held.getsockname()[1], pauses) as client:
            for number, call in enumerate((lambda: client.decide([1.0]), lambda: client.promote("x")), 1):
                with pytest.raises(Unreachable, match="3 tries"):
                    call()
                assert pauses.number == 2 * number


def test_a_connection_that_breaks_is_tried_again_by_calls_with_ids_alone() -> None:
    pauses = Counted()
    with listening(lambda connection: None) as (port, came), client_of(port, pauses) as client:
        with pytest.raises(Unreachable):
            client.promote("x")
        assert pauses.number == 0 and len(came) == 1
        with pytest.raises(Unreachable):
            client.decide([1.0])
        assert pauses.number == 2 and len(came) == 4


def test_an_answer_that_is_cut_off_is_no_answer() -> None:
    def half(connection: socket.socket) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"id": ')

    pauses = Counted()
    with listening(half) as (port, _), client_of(port, pauses) as client, pytest.raises(Unreachable):
        client.decide([1.0])
    assert pauses.number == 2


def test_what_is_no_http_at_all() -> None:
    with (
        listening(lambda connection: connection.sendall(b"220 mail ready\r\n")) as (port, _),
        client_of(port, Counted()) as client,
        pytest.raises(ServiceError),
    ):
        client.status()


def test_redirects_are_not_followed() -> None:
    """Nor is the key taken to another address."""
    reply = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with listening(lambda connection: None) as (other, elsewhere):
        with (
            listening(lambda connection: connection.sendall(reply % other)) as (port, came),
            client_of(port, Counted()) as client,
            pytest.raises(ServiceError) as caught,
        ):
            client.decide([1.0])
        assert caught.value.status == 307 and len(came) == 1 and elsewhere == []
        assert b"Bearer a-key" in came[0]


def test_no_proxy_stands_between_a_program_and_its_own_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with listening(lambda connection: connection.sendall(reply)) as (port, came):
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
        with client_of(port, Counted()) as client:
            client.reward("e")
        assert len(came) == 1
