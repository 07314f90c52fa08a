"""The real server, `python -m manyarms serve`, for tests: a process of its own on loopback, killed, ended and started again.

    with Server(folder) as server:                 # a small agent, an SQLite store in the folder, any free port
        server.ask("POST", "/v1/decide", {"context": [0.1, 0.2, 0.3]})
        server.kill()                              # SIGKILL
        server.restart()                           # on the same store, and at the same port where that is still free

It ends only processes that it has started, by their ids.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from live import tortured

TESTS = Path(__file__).resolve().parents[1]
WITHIN = 60.0  # seconds for anything that may take a while on a busy machine
EVERY = 0.01  # seconds between two looks
READY = re.compile(r"manyarms serves at (\S+)")
HURRIED: dict[str, dict[str, object]] = {
    "learning": {"fold_every": 0.02, "snapshot_every": 4},
    "rewards": {"default": tortured.DEFAULT, "wait": tortured.WAIT, "aggregate": "sum"},
}
"""Settings with which much happens in a short time; those of `live.tortured`."""


@dataclass(frozen=True)
class Answer:
    """What came back. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The body, as JSON."""
        return json.loads(self.content)


class Process(Protocol):
    """A process that runs, or did."""

    pid: int

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code."""


class Starter(Protocol):
    """Starts a server: the command unless a test says otherwise."""

    def __call__(self, arguments: Sequence[str], log: Path) -> Process: ...


def start_command(arguments: Sequence[str], log: Path) -> Process:
    """`python -m manyarms serve ...`, its stderr added to a file."""
    command = [sys.executable, "-m", "manyarms", "serve", *arguments]
    with log.open("ab") as stderr:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=environment()
        )


def environment() -> dict[str, str]:
    """With the sources and the tests, and no more threads for linear algebra than one."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def save_agent(folder: Path, **options: Any) -> Path:
    """A saved agent: 12 actions with shared effects, contexts of 3 numbers, epsilon-greedy; where it lies."""
    if not folder.exists():
        tortured.fresh_agent(**options).save(folder)
    return folder


class NotStarted(Exception):
    """The server has ended, or does not answer."""


class Server:
    """A server on one store. Whoever makes it ends it: use it with `with`."""

    def __init__(
        self,
        folder: Path,
        store: str | Path | None = None,
        *,
        agent: Path | bool = True,
        keys: Path | None = None,
        settings: Mapping[str, Mapping[str, object]] | None = None,
        options: Sequence[str] = (),
        starter: Starter = start_command,
        name: str = "server",
    ) -> None:
        """folder: for its files. store: a path or an address. agent: a saved one; True: a small one, False: none. settings: by
        the sections of a configuration file; options: of the command line. name: of its files, where several share a folder.
        """
        self.folder, self.store = folder, str(store or folder / "live.db")
        self._starter, self._log = starter, folder / f"{name}.log"
        config = folder / f"{name}.toml"
        config.write_text(_as_toml(settings or {}))
        self._arguments = ["--config", str(config), "--store", self.store, *options]
        if agent is not False:
            self._arguments += ["--agent", str(save_agent(folder / "agent") if agent is True else agent)]
        if keys is not None:
            self._arguments += ["--keys", str(keys)]
        self._process: Process | None = None
        self.address = ""

    # ---- its life

    def start(self, *, ready: bool = True) -> Self:
        """Start it; return when it is ready, or at once."""
        assert not self.running, "it runs already"
        self._begin(urlsplit(self.address).port if self.address else 0)
        if ready:
            self.wait_until_ready()
        return self

    def _begin(self, port: int | None) -> None:
        self._log.touch()
        self._from = self._log.stat().st_size  # where this start's part of the log begins
        self._process = self._starter([*self._arguments, "--port", str(port or 0)], self._log)

    def wait_until_ready(self) -> None:
        """Until it can decide and write."""
        end = time.monotonic() + WITHIN
        while time.monotonic() < end:
            text = self.log(since_start=True)
            if found := READY.search(text):
                self.address = found[1]
                if self._is_ready():
                    return
            if not self.running:
                if "cannot listen on" in text and self.address:  # somebody else has its port by now
                    self.address = ""
                    self._begin(0)
                    continue
                raise NotStarted(f"the server has ended with {self.code}:\n{text[-4000:]}")
            time.sleep(EVERY)
        raise NotStarted(f"the server is not ready after {WITHIN:g} s:\n{self.log(since_start=True)[-4000:]}")

    def _is_ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz", timeout=WITHIN).status == 200
        except (OSError, http.client.HTTPException):
            return False

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """The exit code of the process that was started last."""
        return None if self._process is None else self._process.poll()

    @property
    def pid(self) -> int:
        """Of the process that was started last."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: nothing is said or written any more. The process is gone when this returns."""
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM, without waiting."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """SIGTERM, and its exit code; SIGKILL where that takes too long."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        try:
            return self._process.wait(WITHIN)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            return self._process.wait(WITHIN)

    def restart(self, *, ready: bool = True) -> None:
        """End it with SIGTERM where it runs, and start it again on the same store."""
        if self.running:
            self.stop()
        self.start(ready=ready)

    def log(self, *, since_start: bool = False) -> str:
        """What it has written to stderr."""
        content = self._log.read_bytes() if self._log.exists() else b""
        return content[self._from if since_start else 0 :].decode(errors="replace")

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.running:
            self.stop()

    # ---- calls

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = WITHIN,
    ) -> Answer:
        """One request on a connection of its own. body: bytes as they are, anything else as JSON."""
        connection = connect(self.address, timeout)
        try:
            return ask(connection, method, path, body, headers)
        finally:
            connection.close()


def connect(address: str, timeout: float = WITHIN) -> http.client.HTTPConnection:
    """A connection to a server, made with the first request."""
    return http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)


def ask(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection, and its whole answer."""
    told = dict(headers or {})
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        told.setdefault("Content-Type", "application/json")
    connection.request(method, path, body, told)
    response = connection.getresponse()
    content = response.read()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _as_toml(settings: Mapping[str, Mapping[str, object]]) -> str:
    """Texts, numbers, truth values and lists of them are the same in TOML as in JSON."""
    sections = []
    for section, values in settings.items():
        lines = [f"{name} = {json.dumps(str(v) if isinstance(v, Path) else v)}" for name, v in values.items()]
        sections.append("\n".join([f"[{section}]", *lines, ""]))
    return "\n".join(sections)
