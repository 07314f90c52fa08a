"""Servers by the dozen: a process that has imported everything forks one whenever it is told to.

What is forked does what `python -m manyarms serve` does, without the second that Python takes to import it. It can be told where
to die (`live.tortured.AIMS`), and takes over learning after a fraction of a second instead of ten. The nursery is a process
without threads, spoken to by lines of JSON; it ends its servers when it is left.

    with Nursery() as nursery:
        Server(folder, starter=nursery)
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from service.server import EVERY, environment


class Nursery:
    """Starts servers by forking: a `Starter`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "service.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
            text=True,
            bufsize=1,
        )
        self._turn = threading.Lock()
        self.aim: tuple[str, int] | None = None  # of the next server: what to die at, and a seed

    def __call__(self, arguments: Sequence[str], log: Path) -> Forked:
        """Fork a server."""
        pid = self.say("start", {"arguments": list(arguments), "log": str(log), "aim": self.aim})
        return Forked(self, pid)

    def say(self, *words: Any) -> Any:
        """Tell the process something, and hear what it says to that."""
        with self._turn:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(words) + "\n")
            return json.loads(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()  # it ends what it has started, and itself
        self._process.wait()
        self._process.stdout.close()


class Forked:
    """A server that was forked: a `Process`."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, None while it runs."""
        if self._code is None:
            self._code = self._nursery.say("poll", self.pid)
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            self._nursery.say("signal", self.pid, int(sig))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code."""
        end = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("server", timeout or 0.0)
            time.sleep(EVERY)
        return code


# ---- the process itself


def main() -> None:
    """Do as the lines say, until there are no more."""
    for name in (
        "manyarms.cli.app",
        "manyarms.cli.serve",
        "manyarms.service.app",
        "manyarms.service.running",
        "uvloop",
    ):
        import_module(name)  # so that a fork has it

    running: set[int] = set()
    ended: dict[int, int] = {}
    for line in iter(sys.stdin.readline, ""):
        what, *words = json.loads(line)
        told: Any = None
        if what == "start":
            told = _fork(**words[0])
            running.add(told)
        elif what == "poll":
            told = _ended(words[0], running, ended)
        elif _ended(words[0], running, ended) is None:
            os.kill(words[0], words[1])
        print(json.dumps(told), flush=True)
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _ended(pid: int, running: set[int], ended: dict[int, int]) -> int | None:
    """The exit code of a process. One that was not waited for keeps its id, so that nobody else is meant by it."""
    if pid in running:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            running.discard(pid)
            ended[pid] = os.waitstatus_to_exitcode(status)
    return ended.get(pid)


def _fork(arguments: list[str], log: str, aim: list[Any] | None) -> int:
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            _become_server(arguments, log, aim)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid


def _become_server(arguments: list[str], log: str, aim: list[Any] | None) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    stderr = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for ours, theirs in ((nothing, 0), (nothing, 1), (stderr, 2)):
        os.dup2(ours, theirs)
    from live import tortured
    from manyarms.cli.app import main as run

    what, seed = aim or (None, 0)
    tortured._hurry(arguments[arguments.index("--store") + 1], random.Random(seed), what)
    run(["serve", *arguments])


if __name__ == "__main__":
    main()
