"""Kill -9 in a live store: `make torture N=1000 SEED=0`, or in tests/: python -m live.torture --kills 50 --store sqlite.

Two writers and a reader, each a process, work on one store; each may become its learner. They are killed at random moments, and
some at a chosen one: between a commit and its return, during a fold, during a snapshot (`tortured.AIMS`). A new process takes the
place of one that was killed. After some kills, when all processes are dead, the store is compared with their journals and with
itself (`torture_checks`). The exit code is 1 where something did not hold.

When a kill comes is random; what must hold then does not depend on it. Children are forked, and only they are killed, by their
process ids; the parent never opens a store itself.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from live import postgres, torture_checks, tortured

PROCESSES = ("writer", "writer", "reader")
KILLS_A_ROUND = 10
ROUNDS_A_STORE = 5  # then a new store: a check folds the whole log, and should not take for ever
AIMED = 0.7  # of the processes
LONGEST = 1.5  # seconds that one with an aim may take to come to it
CRASHES = 0.05  # of the turns: the server of the database crashes, and starts again
PAUSED = 0.1  # of the turns: a process sleeps for longer than its lease, and goes on as if nothing had been


def child(work: Callable[[], None]) -> int:
    """Fork; the child does its work and never returns here."""
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


class Round:
    """Processes on one store, and their kills."""

    def __init__(self, address: str, folder: Path, rng: random.Random, crash: Callable[[], None] | None) -> None:
        self.address, self.folder, self.rng, self.crash = address, folder, rng, crash
        self.alive: dict[int, tuple[str, str | None]] = {}
        self.since: dict[int, float] = {}
        self.killed: Counter[str] = Counter()
        self.paused = self.crashed = 0
        self.wrong: list[str] = []

    def start(self, role: str) -> None:
        """A process that works until it is killed."""
        number, seed = len(list(self.folder.glob("*.journal"))), self.rng.randrange(2**32)
        aim = self.rng.choice(sorted(tortured.AIMS)) if self.rng.random() < AIMED else None
        name = f"{role}-{number}"
        path = self.folder / f"{name}.journal"
        path.touch()
        pid = child(lambda: tortured.ROLES[role](self.address, tortured.Journal(path), name, seed, aim))
        self.alive[pid] = role, aim
        self.since[pid] = time.monotonic()

    def kill_one(self) -> None:
        """One at random; those with an aim have some time to come to it."""
        now = time.monotonic()
        ripe = [pid for pid, (_, aim) in self.alive.items() if aim is None or now - self.since[pid] > LONGEST]
        if ripe:
            self.kill(self.rng.choice(ripe))

    def pause_one(self) -> None:
        """One sleeps, and wakes up without knowing."""
        if self.alive:
            pid = self.rng.choice(list(self.alive))
            os.kill(pid, signal.SIGSTOP)
            time.sleep(2 * tortured.LEASE)
            os.kill(pid, signal.SIGCONT)
            self.paused += 1

    def kill(self, pid: int) -> None:
        """At once, and not where it aimed."""
        os.kill(pid, signal.SIGKILL)
        self._gone(pid, os.waitpid(pid, 0)[1], aimed=False)

    def reap(self) -> None:
        """Take note of those that died where they aimed, or otherwise."""
        for pid in list(self.alive):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._gone(pid, status, aimed=True)

    def _gone(self, pid: int, status: int, *, aimed: bool) -> None:
        role, aim = self.alive.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code != -signal.SIGKILL:
            self.wrong.append(f"a {role} ended by itself, with {code}")
        self.killed[aim if aimed and aim else "at a random moment"] += 1

    def run(self, kills: int) -> None:
        """So many kills; then nobody is left."""
        for role in PROCESSES:
            self.start(role)
        while self.killed.total() + len(PROCESSES) < kills and not self.wrong:
            time.sleep(self.rng.uniform(0, 0.25))
            self.reap()
            if self.rng.random() < PAUSED:
                self.pause_one()
            elif self.crash is not None and self.rng.random() < CRASHES:
                self.crash()
                self.crashed += 1
            else:
                self.kill_one()
            roles = Counter(PROCESSES) - Counter(role for role, _ in self.alive.values())
            for role in roles.elements():
                self.start(role)
        time.sleep(self.rng.uniform(0, 0.25))
        self.reap()
        for pid in list(self.alive):
            self.kill(pid)


def checked(address: str, folder: Path) -> tuple[list[str], str]:
    """The checks, in a process of their own; what is wrong, and figures."""
    report = folder / "report.txt"

    def work() -> None:
        wrong, figures = torture_checks.check(address, folder)
        failed: Counter[str] = figures.pop("failed")
        text = ", ".join(f"{number} {name}" for name, number in figures.items())
        text += "".join(f"\n    refused {number} times: {what}" for what, number in failed.most_common(5))
        report.write_text("\n".join([*wrong[:20], "", text]))

    code = os.waitstatus_to_exitcode(os.waitpid(child(work), 0)[1])
    if code:
        return [f"the check itself ended with {code}"], ""
    told, _, figures = (
        report.read_text().rpartition("\n\n") if "\n\n" in report.read_text() else ("", "", report.read_text())
    )
    return [line for line in told.split("\n") if line], figures.strip()


def torture(
    kills: int,
    seed: int,
    new_address: Callable[[Path], str],
    seconds: float = float("inf"),
    crash: Callable[[], None] | None = None,
) -> bool:
    """So many kills, or as many as fit into the time; whether everything held. crash: of the store's server, and its restart."""
    rng, end = random.Random(seed), time.monotonic() + seconds
    killed: Counter[str] = Counter()
    good, paused, crashed = True, 0, 0
    while killed.total() < kills and good and time.monotonic() < end:
        folder = Path(tempfile.mkdtemp(prefix="torture-"))
        try:
            address, figures = new_address(folder), ""
            for _ in range(ROUNDS_A_STORE):
                if killed.total() >= kills or not good or time.monotonic() > end:
                    break
                one = Round(address, folder, rng, crash)
                try:
                    one.run(min(KILLS_A_ROUND, kills - killed.total()))
                finally:
                    for pid in list(one.alive):
                        one.kill(pid)
                killed += one.killed
                paused, crashed = paused + one.paused, crashed + one.crashed
                wrong, figures = checked(address, folder)
                for text in one.wrong + wrong:
                    print(f"WRONG (seed {seed}, after {killed.total()} kills): {text}", flush=True)
                good = not (one.wrong or wrong)
            print(f"  {killed.total()} kills; the last store: {figures}", flush=True)
        finally:
            if good:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                print(f"the store and the journals are kept: {folder}", flush=True)
    if good and killed.total() < kills:
        print(f"  the time was over after {killed.total()} of {kills} kills")
    for what, number in sorted(killed.items()):
        print(f"  {number:5} {what}")
    print(f"  {paused:5} paused for longer than the lease, and woken up")
    if crash is not None:
        print(f"  {crashed:5} crashes of the server")
    return good


def on_sqlite(kills: int, seed: int, seconds: float = float("inf")) -> bool:
    """In a file, in a folder of its own."""
    print(f"sqlite, seed {seed}:", flush=True)
    return torture(kills, seed, lambda folder: str(folder / "live.db"), seconds)


def on_postgresql(kills: int, seed: int, seconds: float = float("inf")) -> bool:
    """In databases of a server that is started for it."""
    print(f"postgresql, seed {seed}:", flush=True)
    server = postgres.Server()

    def crash() -> None:
        server.stop(signal.SIGQUIT)
        server.start()

    try:
        server.start()
        return torture(kills, seed, lambda _: server.new_database(), seconds, crash)
    finally:
        server.remove()


def main() -> int:
    """One store or the other, or all that there are."""
    parser = argparse.ArgumentParser(description="Kill -9 in a live store.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=("sqlite", "postgresql", "all"), default="sqlite")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="for each store: no new round after so long"
    )
    options = parser.parse_args()
    stores = {"sqlite": on_sqlite, "postgresql": on_postgresql}
    if options.store != "all":
        stores = {options.store: stores[options.store]}
    elif not postgres.is_installed():
        print("postgresql is not installed, and left out")
        del stores["postgresql"]
    good = all([run(options.kills, options.seed, options.seconds) for run in stores.values()])
    print("nothing was lost, invented or counted twice" if good else "something did not hold")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
