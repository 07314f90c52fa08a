"""Hostile calls over everything public: `make fuzz N=20000 SEED=0`, or in tests/: python -m hard_use.fuzz --calls 2000.

A call is a correct one (material.py) with one or two arguments replaced by hostile values (hostile.py). Violations are:

  exception  anything but a ManyArmsError, or a TypeError with a message
  memory     a MemoryError: the call took more than 8 GiB
  hang       no answer within the limit of processor time
  accepted   a value that has no meaning as this argument was taken in silence
  nan        the call succeeded, and its result, or what the agent then believes, is not a number
  differs    an unusual form of a legal array gave another result than the plain one
  changed    the call failed, or only asked, and the agent's state is another one
  poisoned   the call succeeded, and what it made, or the object it was made on, then fails in a correct call
  written    the call wrote into an array that it was given
  aliased    what was made, or learned, changes when the caller changes that array afterwards

A public callable that no rule covers is an error of its own. The exit code is 1 where there is a violation or a callable is not
covered. Every violation is printed with a command that makes the same call again and shows the traceback.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import manyarms
from hard_use import ownership
from hard_use.limits import limit_memory
from hard_use.material import Material
from hard_use.one_call import Caller, Violation
from hard_use.targets import REFUSING, call_correctly, targets


class Fuzzer(Caller):
    """Which calls are made."""

    def __init__(self, material: Material, seed: int, seconds: float) -> None:
        super().__init__(material.folder, seconds)
        self.seed = seed
        self.found = targets(material)
        self.broken: dict[str, str] = {}

    def find_broken(self) -> None:
        """Targets whose correct call fails: material.py gives them something wrong. Loads what is loaded late, too."""
        seconds, self.seconds = self.seconds, max(60.0, self.seconds)  # PyTorch alone may take several
        for target in list(self.found.calls):
            if target.maker is None:
                _, error = self.attempt(lambda t=target: call_correctly(t))
            else:
                values = {name: ownership.private(a.value) for name, a in target.arguments.items()}
                _, error = self.attempt(lambda t=target, v=values: t.function(t.maker(), **v))
            if error is None:
                continue
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            self.found.calls.remove(target)
            if isinstance(error, manyarms.errors.MissingExtra) or target.name in REFUSING:
                self.found.left_out[target.name] = said
            else:
                self.broken[target.name] = said
        self.seconds = seconds

    def run(self, calls: int, part: int = 0, parts: int = 1) -> None:
        """So many calls, each of a random target; of several parts that share them, this one's."""
        rng = np.random.default_rng(self.seed)
        pool, streams = self.found.calls, rng.integers(2**62, size=calls)
        for which, stream in zip(rng.integers(len(pool), size=calls)[part::parts], streams[part::parts], strict=True):
            self.one(pool[int(which)], int(stream))

    def run_each(self, calls: int, part: int = 0, parts: int = 1) -> None:
        """So many calls of every target, on streams of their own: what is public besides does not change them."""
        for target in self.found.calls[part::parts]:
            streams = np.random.default_rng([self.seed, zlib.crc32(target.name.encode())]).integers(2**62, size=calls)
            self.forget()
            for stream in streams:
                self.one(target, int(stream))

    def again(self, name: str, stream: int) -> None:
        """One call of one target, with its traceback."""
        self.tell = True
        target = next((t for t in self.found.calls if t.name == name), None)
        if target is None:
            sys.exit(f"no such target: {name}; --list shows them")
        self.one(target, stream)

    def report(self) -> dict[str, Any]:
        return {**super().report(), "uncovered": self.found.uncovered, "broken": self.broken}


def merged(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """What several processes found."""
    out: dict[str, Any] = {"counts": collections.Counter(), "times": collections.Counter()}
    for report in reports:
        for name in ("counts", "times"):
            out[name].update(report[name])
        for name in ("violations", "uncovered", "broken"):
            out[name] = {**report[name], **out.get(name, {})}
    return out


def fuzz_here(options: argparse.Namespace, part: int = 0, parts: int = 1) -> dict[str, Any]:
    """Fuzz in this process."""
    warnings.simplefilter("ignore")
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # a relative path of a hostile call stays inside
        try:
            fuzzer = Fuzzer(Material(Path(folder)), options.seed, options.seconds)
            if options.again:
                fuzzer.found.calls = [t for t in fuzzer.found.calls if t.name == options.again[0]]
            elif options.only:
                fuzzer.found.calls = [t for t in fuzzer.found.calls if re.search(options.only, t.name)]
            fuzzer.find_broken()
            limit_memory()
            if options.list:
                print("\n".join(sorted(t.name for t in fuzzer.found.calls)))
                print("\n".join(f"left out: {name}: {why}" for name, why in fuzzer.found.left_out.items()))
            elif options.again:
                fuzzer.again(options.again[0], int(options.again[1]))
            elif options.each is not None:
                fuzzer.run_each(options.each, part, parts)
            else:
                fuzzer.run(options.calls, part, parts)
        finally:
            os.chdir(before)
    return fuzzer.report()


def fuzz_in_parts(words: list[str], parts: int) -> dict[str, Any]:
    """The same in several processes."""
    with tempfile.TemporaryDirectory() as folder:
        reports = [Path(folder) / f"{part}.json" for part in range(parts)]
        commands = [
            [sys.executable, "-m", "hard_use.fuzz", *words, "--part", str(part), str(report)]
            for part, report in enumerate(reports)
        ]
        running = [subprocess.Popen(command) for command in commands]
        for process in running:
            if process.wait() != 0:
                sys.exit(f"a part ended with the code {process.returncode}")
        return merged([json.loads(report.read_text(encoding="utf-8")) for report in reports])


def tell(report: dict[str, Any], seed: int) -> int:
    """Print what is new, each site once with a command that shows it; returns how many are."""
    found = {key: Violation(**v) for key, v in report["violations"].items()}
    for key, violation in sorted(found.items()):
        print(f"{key}  x{report['times'][key]}: {violation.call}: {violation.text}\n    {violation.again}")
    counts = ", ".join(f"{count:,} {what}" for what, count in report["counts"].items())
    print(f"{counts}, seed {seed}; {len(found)} sites violated")
    return len(found)


def main() -> int:
    """Fuzz, and print each site once."""
    parser = argparse.ArgumentParser(description="Hostile calls over everything public.")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--each", type=int, help="so many calls of each callable, in place of --calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="a pattern of the callables' names")
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="of processor time; what takes longer is a violation"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that share the calls")
    parser.add_argument("--part", nargs=2, metavar=("PART", "FILE"), help="one of the workers, and where it reports")
    parser.add_argument("--again", nargs=2, metavar=("NAME", "STREAM"), help="one call, as a violation printed it")
    parser.add_argument("--list", action="store_true", help="what is called, what is left out and why")
    options = parser.parse_args()
    if options.part:
        report = fuzz_here(options, int(options.part[0]), options.workers)
        Path(options.part[1]).write_text(json.dumps(report), encoding="utf-8")
        return 0
    report = fuzz_in_parts(sys.argv[1:], options.workers) if options.workers > 1 else fuzz_here(options)
    for name, why in report["uncovered"].items():
        print(f"not covered: {name}({why}): tests/hard_use/material.py has no rule for it")
    for name, why in report["broken"].items():
        print(f"not covered: the correct call of {name} fails: {why}")
    uncovered = bool(report["uncovered"] or report["broken"])
    if options.list:
        return int(uncovered)
    return int(tell(report, options.seed) > 0 or uncovered)


if __name__ == "__main__":
    sys.exit(main())
