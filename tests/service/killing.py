"""Kill -9 of the real server under concurrent clients: in tests/, python -m service.killing --kills 1000 --store all.

Clients (`service.clients`) decide, reward, activate, erase, read and change the catalogue over HTTP, while their server, or one
of two on the same store, is killed at random moments and started again: while it serves, while it starts, some between a commit
and its answer or during a fold (`live.tortured.AIMS`), some ended by SIGTERM; and PostgreSQL crashes beneath it. Clients go on,
and send again what was not answered. After some kills, with all servers gone, the store is compared with what clients were told
(`service.kill_checks`). The exit code is 1 where something did not hold.

When a kill comes is random; what must hold then does not depend on it. Most servers are forked off a process that has imported
what `manyarms serve` needs (`service.nursery`), so that a thousand of them start within half an hour; the first of each round,
and all with --command, are the command itself.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from live import postgres, tortured
from manyarms.service.keys import SCOPES, Keys
from service import clients, kill_checks
from service.nursery import Nursery
from service.server import EVERY, HURRIED, WITHIN, NotStarted, Process, Server, save_agent, start_command

CLIENTS = 5
KILLS_A_ROUND = 10
ROUNDS_A_STORE = 3  # then a new store: a check folds the whole log, and should not take for ever
LONGEST = 2.0  # seconds that a server may take to come to its aim, or to answer as many requests as it shall
ANSWERS = 60  # that a server gives at most before it may be killed
AIMED, ENDED, UNREADY, CRASHES = 0.4, 0.15, 0.1, 0.05  # of the turns


class Round:
    """Servers on one store, their clients, and kills."""

    def __init__(
        self,
        address: str,
        folder: Path,
        rng: random.Random,
        *,
        nursery: Nursery | None = None,
        crash: Callable[[], None] | None = None,
        servers: int = 1,
        keys: bool = False,
    ) -> None:
        """nursery: forks the servers; without it they are the command. crash: of the database's server, and its restart."""
        self.rng, self.crash, self._nursery = rng, crash, nursery
        self.killed: Counter[str] = Counter()
        self.crashed = self._started = 0
        self.wrong: list[str] = []
        for name in tortured.OTHERS:
            save_agent(folder / "agents" / name, thompson=name == "third")
        settings: dict[str, dict[str, object]] = {
            **HURRIED,
            "agent": {"others": folder / "agents"},
            "server": {"shutdown": 30},
        }
        file, key = folder / "keys.json", None
        if keys:
            key = Keys.open(file, make=True).add(f"everything{rng.randrange(10**9)}", SCOPES)
        self.servers = [
            Server(
                folder, address, settings=settings, keys=file if keys else None, starter=self._start, name=f"server{n}"
            )
            for n in range(servers)
        ]
        self.shared = clients.Shared(lambda chooser: chooser.choice(self.servers).address or "http://127.0.0.1:9", key)
        names = [f"{rng.randrange(16**8):08x}" for _ in range(CLIENTS)]
        self.clients = [clients.OneClient(name, rng.randrange(2**32), self.shared) for name in names]

    def _start(self, arguments: Sequence[str], log: Path) -> Process:
        self._started += 1
        if self._nursery is None or self._started == 1:
            return start_command(arguments, log)
        return self._nursery(arguments, log)

    def run(self, kills: int) -> None:
        """So many kills; then nobody is left."""
        try:
            for server in self.servers:
                self._wait_for(server.start(ready=False))
            for client in self.clients:
                client.thread.start()
            while self.killed.total() < kills and not self.wrong:
                self._one_turn(self.rng.choice(self.servers), last=self.killed.total() + len(self.servers) >= kills)
        finally:
            self._leave()

    def _leave(self) -> None:
        self.shared.stop.set()
        for server in self.servers:
            if server.running:
                server.kill()
        for client in self.clients:
            if client.thread.ident is not None:
                client.thread.join(2 * clients.PATIENCE)
                if client.thread.is_alive():
                    self.wrong.append(f"client {client.name} does not come to an end")

    def _one_turn(self, server: Server, *, last: bool) -> None:
        """Let it serve for a while, end it in one way or another, and start it again unless all shall be gone soon."""
        if self.crash is not None and self.rng.random() < CRASHES:
            self.crash()
            self.crashed += 1
        aimed = self._nursery is not None and self._nursery.aim is not None
        self._let_serve(server, float("inf") if aimed else self.shared.answered + self.rng.randrange(ANSWERS))
        if not server.running:
            self._gone(server, "where it aimed")
        elif self.rng.random() < ENDED:
            self._terminate(server)
        else:
            server.kill()
            self._gone(server, "while it served")
        if last and self.rng.random() < 0.5:  # the store must be whole at once, too
            return
        self._begin(server)
        if self.rng.random() < UNREADY:
            time.sleep(self.rng.uniform(0, 0.3))
            if server.running:
                server.kill()
            self._gone(server, "while it started")
            self._begin(server)
        self._wait_for(server)

    def _begin(self, server: Server) -> None:
        if self._nursery is not None:
            self._nursery.aim = None
            if self.rng.random() < AIMED:
                self._nursery.aim = self.rng.choice(sorted(tortured.AIMS)), self.rng.randrange(2**32)
        if not server.running:
            server.start(ready=False)

    def _wait_for(self, server: Server) -> None:
        """Until it is ready, or has died where it aimed; a server must start on whatever another one has left."""
        try:
            server.wait_until_ready()
        except NotStarted as error:
            if server.code != -signal.SIGKILL:
                self.wrong.append(str(error))

    def _let_serve(self, server: Server, answers: float) -> None:
        end = time.monotonic() + LONGEST
        while server.running and self.shared.answered < answers and time.monotonic() < end:
            time.sleep(EVERY)

    def _terminate(self, server: Server) -> None:
        server.terminate()
        end = time.monotonic() + WITHIN
        while server.running and time.monotonic() < end:
            time.sleep(EVERY)
        if server.running:
            self.wrong.append(f"the server did not end within {WITHIN:g} s of SIGTERM")
            server.kill()
        if server.code not in (0, -signal.SIGTERM, -signal.SIGKILL):
            self.wrong.append(f"the server ended with {server.code}:\n{server.log(since_start=True)[-2000:]}")
        self.killed["by SIGTERM"] += 1

    def _gone(self, server: Server, how: str) -> None:
        if server.code != -signal.SIGKILL:
            self.wrong.append(f"a server ended by itself, with {server.code}:\n{server.log()[-4000:]}")
        self.killed[how] += 1


def unexpected(folder: Path) -> list[str]:
    """Lines of the servers' own logs that tell of something unexpected."""
    lines = [line for log in sorted(folder.glob("*.log")) for line in log.read_text(errors="replace").split("\n")]
    return [f"logged: {line[:3000]}" for line in lines if '"unexpected"' in line or line.startswith("Traceback")][:5]


def torture(
    kills: int,
    seed: int,
    new_address: Callable[[Path], str],
    *,
    seconds: float = float("inf"),
    crash: Callable[[], None] | None = None,
    nursery: Nursery | None = None,
) -> bool:
    """So many kills, or as many as fit into the time; whether everything held."""
    rng, end, began = random.Random(seed), time.monotonic() + seconds, time.monotonic()
    killed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    good, crashed = True, 0
    while killed.total() < kills and good and time.monotonic() < end:
        folder = Path(tempfile.mkdtemp(prefix="killing-"))
        journals: list[list[tuple[object, ...]]] = []
        try:
            address = new_address(folder)
            for _ in range(ROUNDS_A_STORE):
                if killed.total() >= kills or not good or time.monotonic() > end:
                    break
                servers = rng.choice([1, 1, 2]) if kills > KILLS_A_ROUND else 1
                one = Round(
                    address, folder, rng, nursery=nursery, crash=crash, servers=servers, keys=rng.random() < 0.5
                )
                one.run(min(KILLS_A_ROUND, kills - killed.total()))
                killed, crashed = killed + one.killed, crashed + one.crashed
                journals += [client.journal for client in one.clients]
                wrong, figures = kill_checks.check(address, journals)
                wrong += one.wrong + unexpected(folder)
                good = not wrong
                for text in wrong[:20]:
                    print(f"WRONG (seed {seed}, after {killed.total()} kills): {text}", flush=True)
            refused += figures.pop("refused")
            told = ", ".join(f"{number} {name}" for name, number in figures.items())
            print(f"  {killed.total()} kills in {time.monotonic() - began:.0f} s; the last store: {told}", flush=True)
        finally:
            if good:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                (folder / "journals").write_text("".join(map(clients.shown, journals)))
                print(f"the store, the logs and the journals are kept: {folder}", flush=True)
    if good and killed.total() < kills:
        print(f"  the time was over after {killed.total()} of {kills} kills")
    for what, number in sorted(killed.items()):
        print(f"  {number:5} {what}")
    if crash is not None:
        print(f"  {crashed:5} crashes of the database's server")
    for what, number in refused.most_common(12):
        print(f"  {number:5} answers: {what}")
    return good


def on_sqlite(kills: int, seed: int, seconds: float = float("inf"), nursery: Nursery | None = None) -> bool:
    """On SQLite, in a folder of its own."""
    print(f"sqlite, seed {seed}:", flush=True)
    return torture(kills, seed, lambda folder: str(folder / "live.db"), seconds=seconds, nursery=nursery)


def on_postgresql(kills: int, seed: int, seconds: float = float("inf"), nursery: Nursery | None = None) -> bool:
    """On databases of a server that is started for it."""
    print(f"postgresql, seed {seed}:", flush=True)
    server = postgres.Server()

    def crash() -> None:
        server.stop(signal.SIGQUIT)
        server.start()

    try:
        server.start()
        return torture(kills, seed, lambda _: server.new_database(), seconds=seconds, crash=crash, nursery=nursery)
    finally:
        server.remove()


def main() -> int:
    """One store or the other, or all that there are."""
    parser = argparse.ArgumentParser(description="Kill -9 of the decision service.")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", choices=("sqlite", "postgresql", "all"), default="sqlite")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="for each store: no new round after so long"
    )
    parser.add_argument(
        "--command", action="store_true", help="every server is `python -m manyarms serve`, and no fork"
    )
    options = parser.parse_args()
    stores = {"sqlite": on_sqlite, "postgresql": on_postgresql}
    if options.store != "all":
        stores = {options.store: stores[options.store]}
    elif not postgres.is_installed():
        print("postgresql is not installed, and left out")
        del stores["postgresql"]
    if options.command:
        good = all([run(options.kills, options.seed, options.seconds) for run in stores.values()])
    else:
        with Nursery() as nursery:
            good = all([run(options.kills, options.seed, options.seconds, nursery) for run in stores.values()])
    print("nothing was lost, invented or counted twice" if good else "something did not hold")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
