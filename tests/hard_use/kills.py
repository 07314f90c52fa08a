"""Kill -9 at random moments: `make kills N=100 SEED=0`, or in tests/: python -m hard_use.kills --kills 20 --parts save,learn.

  save       a child saves an agent over and over and is killed: what is on disk loads, is one of the states that the child went
             through, to the last bit, and not older than the last save that had returned; the next save leaves nothing over
  reader     a reader beside a writer never fails
  writers    neither does one beside two writers, of which one is killed now and then; what they leave is whole
  full       a disk that is full (a limit on the size of files): StorageError, the earlier save intact, nothing left over
  readonly   a folder without the right to write: the same (as root alone, since the child becomes another user)
  learn      `manyarms learn` with a checkpoint after every batch, killed and resumed: the policy is the same to the last bit
  reproduce  `manyarms reproduce`, killed and resumed: the same claims and results, and no worker outlives its parent

When a kill comes is random; what must hold then does not depend on it. Children are forked, and only they are killed, by their
process ids. The exit code is 1 where something did not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import manyarms as ma
from hard_use import public

NOBODY = 65534
PATIENCE = 600.0  # seconds; only what hangs waits so long


def parts_of(name: str) -> Any:
    """A public class or function by its last name, wherever it stands."""
    return next(value for where, value in public.everything().items() if where.rpartition(".")[2] == name)


def fresh(seed: int = 0, actions: int = 3000) -> Any:
    """An agent whose arrays take a moment to write."""
    weights = np.random.default_rng(seed).normal(size=(actions, 3))
    prior = parts_of("MixedEffectPrior")(weights, np.zeros((3, 4)), np.eye(12), np.eye(4))
    return parts_of("meTS")(prior, seed=seed)


def step(agent: Any) -> None:
    """One round; the agent's own stream decides, so that a state follows from the one before."""
    x = np.array([1.0, 0.3, -0.2, 0.8])
    action = agent.decide(x)
    agent.observe(x, action, float(action % 7) / 7)


def digest(folder: Path) -> str:
    """What a save holds, whatever its files are called."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return hashlib.sha256(
        json.dumps([manifest["spec"], manifest["arrays"]["sha256"]], sort_keys=True).encode()
    ).hexdigest()


def child(work: Callable[[], int | None]) -> int:
    """Fork; the child does its work and never returns here."""
    pid = os.fork()
    if pid == 0:
        code = 9
        try:
            code = work() or 0
        except BaseException as error:
            print("child:", repr(error)[:300], file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    return pid


def code_of(pid: int) -> int:
    """A child's exit code, when it is done."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill(pid: int) -> None:
    """Kill -9, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def wait_for(event: Callable[[], bool]) -> None:
    """Until something has happened."""
    end = time.monotonic() + PATIENCE
    while not event():
        if time.monotonic() > end:
            raise TimeoutError("waited for ten minutes")
        time.sleep(0.002)


class Check:
    """The parts; `wrong` collects what did not hold."""

    def __init__(self, kills: int, seed: int, folder: Path) -> None:
        self.kills, self.folder = kills, folder
        self.rng = random.Random(seed)
        self.wrong: list[str] = []

    def no(self, part: str, text: str) -> None:
        self.wrong.append(f"{part}: {text}")

    def save(self) -> str:
        """A child that saves and is killed; the parent walks the same rounds undisturbed."""
        folder, walked = self.folder / "agent", self.folder / "walked"
        fresh().save(folder)
        walker, place, at = fresh(), {digest(folder): 0}, 0
        on_disk = lag = 0
        for number in range(1, self.kills + 1):
            read, write = os.pipe()

            def work(read: int = read, write: int = write) -> NoReturn:
                os.close(read)
                agent = ma.load(folder)
                while True:
                    step(agent)
                    agent.save(folder)
                    os.write(write, b".")  # this save has returned

            pid = child(work)
            os.close(write)
            done = len(os.read(read, 1 + self.rng.randrange(5)))  # after the first save; then at any moment
            time.sleep(self.rng.uniform(0, 0.02))
            kill(pid)
            while more := os.read(read, 4096):
                done += len(more)
            os.close(read)
            while at < on_disk + done + 1:
                step(walker)
                walker.save(walked)
                at += 1
                place[digest(walked)] = at
            try:
                ma.load(folder)
                now = place.get(digest(folder))
            except (ma.ManyArmsError, OSError, ValueError) as error:
                self.no("save", f"after kill {number}: {error}")
                break
            if now is None:
                self.no("save", f"after kill {number}: a state that never was")
                break
            if now < on_disk + done:
                self.no("save", f"after kill {number}: save {on_disk + done} had returned, {now} is on disk")
            lag += now > on_disk + done
            on_disk = now
        else:
            ma.load(folder).save(folder)
            self.only_two_files("save", folder)
        return f"{self.kills} kills over {on_disk} saves; {lag} times the save under way was whole already"

    def only_two_files(self, part: str, folder: Path) -> None:
        names = sorted(path.name for path in folder.iterdir())
        if len(names) != 2:
            self.no(part, f"left over: {names}")

    def reader(self) -> str:
        """Loads beside a writer, as many as there are kills."""
        folder = self.folder / "read"
        fresh().save(folder)

        def work() -> NoReturn:
            agent = ma.load(folder)
            while True:
                step(agent)
                agent.save(folder)

        pid = child(work)
        try:
            for number in range(max(20, self.kills)):
                try:
                    ma.load(folder)
                except ma.ManyArmsError as error:
                    self.no("reader", f"load {number}: {error}")
                    break
        finally:
            kill(pid)
        return f"{max(20, self.kills)} loads beside a writer"

    def writers(self) -> str:
        """Two processes save to one folder, which may be refused to one of them; a reader looks on."""
        folder = self.folder / "two"
        fresh().save(folder)

        def work(seed: int) -> NoReturn:
            agent = fresh(seed)
            while True:
                step(agent)
                with suppress(ma.errors.StorageError):
                    agent.save(folder)

        loads, pids = max(20, self.kills), [child(lambda: work(1)), child(lambda: work(2))]
        try:
            for number in range(loads):
                try:
                    ma.load(folder)
                except ma.ManyArmsError as error:
                    self.no("writers", f"load {number}: {error}")
                    break
                if number % 10 == 9:
                    kill(pids.pop(0))
                    pids.append(child(lambda n=number: work(3 + n)))
        finally:
            for pid in pids:
                kill(pid)
        ma.load(folder).save(folder)
        self.only_two_files("writers", folder)
        return f"{loads} loads beside two writers, {loads // 10} kills"

    def full(self) -> str:
        """A file may not grow beyond 100 kB: the large save fails, the small one before it stays."""
        folder = self.folder / "full"
        fresh(actions=500).save(folder)
        before, large = digest(folder), fresh(actions=30_000)

        def work() -> int:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            try:
                large.save(folder)
            except ma.errors.StorageError:
                return 3
            return 0

        if (code := code_of(child(work))) != 3:
            self.no("full", f"no StorageError (code {code})")
        ma.load(folder)
        if digest(folder) != before:
            self.no("full", "the earlier save is gone")
        self.only_two_files("full", folder)
        return "refused, the earlier save intact"

    def readonly(self) -> str:
        """Saving where one may not write."""
        if os.getuid() != 0:
            return "left out: only root can become another user"
        self.folder.chmod(0o755)
        folder, agent = self.folder / "locked", fresh()
        agent.save(folder)
        before = digest(folder)
        folder.chmod(0o555)

        def work() -> int:
            os.setuid(NOBODY)
            step(agent)
            for where in (folder, folder / "inner", self.folder / "new"):
                try:
                    agent.save(where)
                except ma.errors.StorageError:
                    continue
                return 1
            ma.load(folder)
            return 3

        code = code_of(child(work))
        folder.chmod(0o755)
        if code != 3 or digest(folder) != before:
            self.no("readonly", f"code {code}")
        return "refused, still readable"

    # ---- commands

    def learn(self) -> str:
        """Learning, killed between checkpoints; a run that comes to its end before the kill is the whole run, and counts too."""
        importlib.import_module("torch").set_num_threads(1)
        rng = np.random.default_rng(0)
        n, K = 3000, 40
        X, actions = rng.normal(size=(n, 4)), rng.integers(K, size=n)
        rewards = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0] - actions / K))).astype(float)
        log = self.folder / "log.parquet"
        parts_of("to_parquet")(parts_of("LoggedData")(X, actions, rewards, K, np.full(n, 1 / K)), log)
        runs = {
            "plain": ["--epochs", "6"],
            "patience": ["--epochs", "8", "--patience", "3", "--optimiser", "adagrad", "--objective", "ips"],
            "bound": ["--epochs", "4", "--pessimism", "ls", "--learning-rate", "0.1"],
        }
        kills = 0
        for name, more in runs.items():
            words = ["learn", str(log), "--device", "cpu", "--checkpoint-seconds", "0", *more, "--out"]
            whole, part = self.folder / f"whole-{name}", self.folder / f"part-{name}"
            if code := code_of(child(lambda w=words, o=whole: self.command([*w, str(o)]))):
                self.no("learn", f"{name}: code {code}: {self.said()}")
                continue
            for _ in range(max(2, self.kills // 12)):
                manifest, pid = (
                    part / "checkpoint" / "manifest.json",
                    child(lambda w=words, o=part: self.command([*w, str(o)])),
                )
                before = manifest.stat().st_mtime_ns if manifest.exists() else 0
                over = []

                def moved(
                    pid: int = pid, manifest: Path = manifest, before: int = before, over: list[int] = over
                ) -> bool:
                    if not over and os.waitpid(pid, os.WNOHANG)[0]:
                        over.append(pid)
                    try:
                        return bool(over) or manifest.stat().st_mtime_ns > before
                    except FileNotFoundError:
                        return bool(over)

                wait_for(moved)
                if over:
                    break
                time.sleep(self.rng.uniform(0, 0.3))
                kill(pid)
                kills += 1
            if code := code_of(child(lambda w=words, o=part: self.command([*w, str(o)]))):
                self.no("learn", f"{name}: the resumed run ends with {code}: {self.said()}")
                continue
            if learned(whole) != learned(part):
                same = [a == b for a, b in zip(learned(whole), learned(part), strict=True)]
                self.no("learn", f"{name}: arrays, spec and history are the same: {same}")
            if (part / "checkpoint").exists():
                self.no("learn", f"{name}: the checkpoint is left over")
        return f"{kills} kills over {len(runs)} settings, each the same to the last bit at its end"

    def command(self, words: list[str]) -> int:
        """The command line in this (forked) process; what it says goes to a file."""
        (entry,) = metadata.entry_points(group="console_scripts", name="manyarms")
        output = os.open(self.folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        sys.argv = ["manyarms", *words]
        try:
            entry.load()()
        except SystemExit as stop:
            return int(stop.code or 0)
        return 0

    def said(self) -> str:
        return (self.folder / "said.txt").read_text(errors="replace").strip()[-300:]

    def reproduce(self) -> str:
        """An experiment, killed after random pieces of it were kept."""
        (entry,) = metadata.entry_points(group="console_scripts", name="manyarms")
        start = f"from {entry.module} import {entry.attr}; {entry.attr}()"
        words = [
            sys.executable,
            "-c",
            start,
            "reproduce",
            "mets-synthetic",
            "--scale",
            "smoke",
            "--workers",
            "1",
            "--out",
        ]
        whole, part = self.folder / "whole", self.folder / "part"
        if (first := subprocess.run([*words, whole], capture_output=True, text=True)).returncode:
            self.no("reproduce", first.stderr[-300:])
            return "failed"
        kills = 0
        for _ in range(max(2, self.kills // 20)):
            pieces = len(list(part.rglob("*.npz")))
            process = subprocess.Popen([*words, part], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda p=process, n=pieces: p.poll() is not None or len(list(part.rglob("*.npz"))) > n)
            if process.poll() is not None:
                break
            time.sleep(self.rng.uniform(0, 0.5))
            workers = children_of(process.pid)
            process.kill()
            process.wait()
            kills += 1
            try:
                wait_for(lambda w=workers: not any(alive(pid) for pid in w))
            except TimeoutError:
                self.no("reproduce", "a worker outlives its killed parent")
        if (last := subprocess.run([*words, part], capture_output=True, text=True)).returncode:
            self.no("reproduce", last.stderr[-300:])
            return "failed"
        if results(whole) != results(part):
            self.no("reproduce", "claims or results differ")
        return f"{kills} kills, resumed to the same claims and results"


def learned(folder: Path) -> tuple[str, str, str]:
    """What must be the same to the last bit: arrays, spec, and the history without what a clock says."""

    def still(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: still(v) for k, v in value.items() if "second" not in k and k not in ("speed", "folder", "out")}
        return [still(v) for v in value] if isinstance(value, list) else value

    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    history = json.loads((folder / "learning.json").read_text(encoding="utf-8"))
    return manifest["arrays"]["sha256"], json.dumps(manifest["spec"]), json.dumps(still(history), sort_keys=True)


def results(folder: Path) -> Any:
    """Claims and result rows, without what a clock says."""
    table = importlib.import_module("pyarrow.parquet").read_table(folder / "results.parquet")
    names = [name for name in table.column_names if "second" not in name]
    rows = table.select(names).sort_by([(name, "ascending") for name in names[:4]]).to_pylist()
    return json.loads((folder / "claims.json").read_text(encoding="utf-8")), rows


def children_of(pid: int) -> list[int]:
    """The processes that another one has started."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in told.split()]


def alive(pid: int) -> bool:
    """Is a process there, and not only waiting to be taken note of?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


PARTS = ("save", "reader", "writers", "full", "readonly", "learn", "reproduce")


def main() -> int:
    """Every part, or some."""
    parser = argparse.ArgumentParser(description="Kill -9 at random moments.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", default=",".join(PARTS))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    check = Check(options.kills, options.seed, folder)
    try:
        for part in options.parts.split(","):
            print(f"{part}: {getattr(check, part)()}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(f"WRONG {text}" for text in check.wrong) or "nothing was lost")
    return int(bool(check.wrong))


if __name__ == "__main__":
    sys.exit(main())
