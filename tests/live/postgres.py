"""A PostgreSQL server of the test's own: Debian's package, a temporary folder, loopback, ended by its process id.

A test that needs it is a slow one, and fails where the package is missing: `apt-get install postgresql`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_FOLDERS = ("/usr/lib/postgresql", "/usr/local/lib/postgresql")
_WITHIN = 60.0  # seconds for a server to start or to stop


def is_installed() -> bool:
    """Whether there is a server to be started."""
    return _newest("postgres") is not None


def find_program(name: str) -> str:
    """The newest program of this name."""
    program = _newest(name)
    if program is None:
        pytest.fail(f"PostgreSQL's {name} is not installed (Debian and Ubuntu: apt-get install postgresql)")
    return program


def _newest(name: str) -> str | None:
    found = [p for folder in _FOLDERS for p in Path(folder).glob(f"*/bin/{name}")]
    newest = max(found, key=lambda p: float(p.parts[-3]), default=None)
    return str(newest) if newest else shutil.which(name)


class Server:
    """A cluster, and its server while that runs. `initdb` and `postgres` refuse to run as root, who becomes another user."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="manyarms-postgres-", dir="/tmp")
        self._user = None
        if os.getuid() == 0:
            self._user = "postgres"
            shutil.chown(self._folder, self._user, self._user)
        self._data = f"{self._folder}/data"
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run([
            find_program("initdb"), "-D", self._data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync",
        ])  # fmt: skip
        self._databases = 0

    def start(self, *settings: str) -> None:
        """Start it, with settings such as fsync=off, and wait until it answers."""
        options = [part for setting in settings for part in ("-c", setting)]
        command = [
            find_program("postgres"), "-D", self._data, "-p", str(self.port), "-k", "", "-c", "listen_addresses=127.0.0.1",
            "-c", "shared_buffers=16MB", *options,
        ]  # fmt: skip
        with Path(self._folder, "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, user=self._user, group=self._user, extra_groups=[] if self._user else None,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip
        import psycopg

        deadline = time.monotonic() + _WITHIN
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"PostgreSQL does not start:\n{Path(self._folder, 'log').read_text()[-3000:]}")
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all connections, SIGQUIT does so without any farewell to the disk."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(_WITHIN)

    def restart(self, *settings: str) -> None:
        """Stop it and start it again."""
        self.stop()
        self.start(*settings)

    def address(self, database: str, user: str = "tester") -> str:
        """The address of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a new, empty database."""
        self._databases += 1
        name = f"test{self._databases}"
        self.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def execute(self, sql: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """One statement, as the administrator."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def remove(self) -> None:
        """Stop it, and leave nothing behind."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command, cwd=self._folder, user=self._user, group=self._user, extra_groups=[] if self._user else None,
            capture_output=True, text=True, timeout=_WITHIN,
        )  # fmt: skip
        if done.returncode:
            pytest.fail(f"{command[0]} fails:\n{done.stdout}{done.stderr}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server that runs, for all tests of one process. Whoever stops it starts it again."""
    server = Server()
    try:
        server.start()
        yield server
    finally:
        server.remove()
