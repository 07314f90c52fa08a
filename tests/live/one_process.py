"""A process with a live store that does what it is told, line by line: python -m live.one_process ADDRESS LEASE.

A line in is JSON, [name of a command, arguments ...]; a line out is what came of it. `Process` is the other end.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from live.making import X, an_agent

TESTS = Path(__file__).resolve().parents[1]


class Process:
    """Such a process, seen from outside."""

    def __init__(self, address: str, lease: float = 10.0) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "live.one_process", address, str(lease)],
            cwd=TESTS, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, *words: object) -> None:
        """Have it do something, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What came of it."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the process has ended: {self._process.wait()}"
        return json.loads(line)

    def do(self, *words: object) -> Any:
        """Have it do something; what came of it."""
        self.ask(*words)
        return self.answer()

    def send(self, which: signal.Signals) -> None:
        """Stop it, continue it, kill it."""
        self._process.send_signal(which)

    def end(self) -> None:
        """Kill it, if it is still there."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def main() -> None:
    """Obey until nobody says anything any more."""
    import manyarms as ma
    from manyarms.live import lease

    address, lease.SECONDS = sys.argv[1], float(sys.argv[2])
    live = ma.live.open(address, an_agent(), background=False)

    def decide(name: str, number: int) -> list[str]:
        return [live.decide(X, id=f"{name}-{i}").id for i in range(number)]

    def reward(events: list[str]) -> None:
        for event in events:
            live.reward(event, 0.5)

    def learn() -> dict[str, Any]:
        live.learn()
        return told()

    def sync() -> dict[str, Any]:
        live.sync(timeout=120.0)
        return told()

    def told() -> dict[str, Any]:
        status = live.status()
        status["state"] = hashlib.sha256(live.state_bytes()).hexdigest()
        return {name: status[name] for name in ("version", "learner", "learned", "waiting", "state")}

    def believe() -> None:
        live._learner._renewed = float("inf")  # never in doubt, and so never asking

    commands = {"decide": decide, "reward": reward, "learn": learn, "sync": sync, "believe": believe}
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        print(json.dumps(commands[name](*arguments)), flush=True)


if __name__ == "__main__":
    main()
