"""The server: uvicorn on one address, TLS by file, signals that end it when what is under way is done."""

from __future__ import annotations

import gc
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from manyarms.errors import InvalidInput, StorageError
from manyarms.service.config import Config
from manyarms.service.request_log import logger

BACKLOG = 2048
SWITCH = 0.001
"""Seconds for which a thread may keep the interpreter while others want it. The thread that writes gives it up at each statement;
with Python's 5 ms it would wait that long for each of them, behind decisions that are made meanwhile."""


def run(app: FastAPI, config: Config, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT: then no new connection is taken, and what is under way is answered.

    ready: told the address when the port is open.
    """
    check_tls(config)
    settle()
    listening = bound(config.host, config.port)
    address = address_of(config, listening)
    logger().info("listening", extra={"address": address})
    if ready is not None:
        ready(address)
    server = make_server(app, config)
    try:
        with _ends_quietly():
            server.run(sockets=[listening])
    finally:
        listening.close()


def settle() -> None:
    """Make a process that has opened its service ready for many small requests.

    What has been imported and opened stays: the garbage collector need not look at all of it again and again, which took
    50 ms each time; and it looks less often at what comes and goes, which is freed without it.
    """
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@contextmanager
def _ends_quietly() -> Iterator[None]:
    """The server sends itself again the signal that has ended it, when all is done: by then it has been heeded."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_server(app: FastAPI, config: Config) -> uvicorn.Server:
    """The server, which does not run yet."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="on",
            proxy_headers=False,
            timeout_graceful_shutdown=max(1, int(config.shutdown)),
            timeout_keep_alive=75,
            backlog=BACKLOG,
            h11_max_incomplete_event_size=1 << 16,
            ssl_certfile=config.tls_certificate,
            ssl_keyfile=None if config.tls_key is None else str(config.tls_key),
        )
    )


def check_tls(config: Config) -> None:
    """Refuse a certificate and a key that do not belong together, before anything listens."""
    if config.tls_certificate is None or config.tls_key is None:
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(config.tls_certificate, config.tls_key)
    except (OSError, ssl.SSLError) as error:
        expected = "a PEM certificate and the private key that belongs to it"
        raise InvalidInput("server.tls_certificate, server.tls_key", str(error), expected) from None
    mode = Path(config.tls_key).stat().st_mode
    if mode & 0o077:
        logger().warning("the TLS key can be read by others", extra={"mode": oct(mode & 0o777)})


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    plain = host.strip("[]")
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((plain, port))
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise StorageError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
    return listening


def address_of(config: Config, listening: socket.socket) -> str:
    """The address that a browser takes."""
    host = config.host if ":" not in config.host or config.host.startswith("[") else f"[{config.host}]"
    shown = {"0.0.0.0": "localhost", "[::]": "localhost"}.get(host, host)
    return f"{'https' if config.tls else 'http'}://{shown}:{listening.getsockname()[1]}"


__all__ = ["address_of", "bound", "check_tls", "make_server", "run", "settle"]
