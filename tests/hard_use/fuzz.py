"""Hostile calls over everything public: `make fuzz N=20000 SEED=0`, or in tests/: python -m hard_use.fuzz --calls 2000.

A call is a correct one (material.py) with one or two arguments replaced by hostile values (hostile.py). Violations are:

  exception  anything but a ManyArmsError, or a TypeError with a message
  memory     a MemoryError: the call took more than 8 GiB
  hang       no answer within the limit
  accepted   a value that has no meaning as this argument was taken in silence
  nan        the call succeeded, and its result, or what the agent then believes, is not a number
  differs    an unusual form of a legal array gave another result than the plain one
  changed    the call failed, or only asked, and the agent's state is another one
  poisoned   the call succeeded, and afterwards a correct call on the same object fails

Those that are known stand in known.txt, one site a line; the list may only shrink. A public callable that no rule covers is an
error of its own. The exit code is 1 where a violation is new or a callable is not covered.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import hashlib
import itertools
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import manyarms
from hard_use import hostile
from hard_use.material import Material
from hard_use.targets import REFUSING, Target, call_correctly, context_of, is_agent_maker, targets

KNOWN = Path(__file__).with_name("known.txt")
GOOD_ERRORS = (manyarms.ManyArmsError, TypeError)
ROOM = 8 << 30  # bytes that a call may take
# policies that do not look at contexts, or leave them to a function of the user's; embeddings of any length
ANY_LENGTH = {
    "LoggedData", "FixedPolicy", "UniformPolicy", "DeterministicPolicy", "FunctionPolicy", "PC", "cluster_actions",
    "mixture", "Neighbours", "Pool", "labels", "isotropic", "from_data", "learned", "grid",
    "Grid", "TopSoftmaxPolicy",
}  # fmt: skip
# label of the hostile value: callables and parameters where it looks meaningless and is legal
LEGAL = {
    "no rows": {"X", "contexts"},  # a batch of nothing
    "two more axes": {"Factors"},
    "a number": {"gaussian_kl", "kl"},  # of which all entries are that number
    "list": {"hidden"},  # widths
    "inf": {"Shrinkage", "ClipWeights", "rows_needed", "kl", "gap"},  # no correction; no bound
    "longer": ANY_LENGTH,
    "empty": ANY_LENGTH,
}


class Hang(BaseException):
    """The limit is over."""


@dataclass(frozen=True)
class Violation:
    """What went wrong, where, and how to see it again."""

    kind: str
    site: str
    call: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.kind} {self.site}"


# ---- one call


def state_of(agent: Any, folder: Path) -> str:
    """Everything that a save holds."""
    shutil.rmtree(folder, ignore_errors=True)
    agent.save(folder)
    out = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        out.update(path.name.encode() + path.read_bytes())
    return out.hexdigest()


def beliefs_of(agent: Any) -> list[Any]:
    """The posteriors of the first actions; of a retired one there is none."""
    found = []
    for action in range(4):
        with suppress(manyarms.errors.UnknownAction):
            found.append(agent.posterior(action))
    return found


def wrong_with(agent: Any) -> str | None:
    """What an agent believes must stay finite, and it must go on deciding."""
    copy = agent.copy()
    for action in {int(i) for i in np.atleast_1d(copy.decide(context_of(copy), k=min(2, copy.actions)))}:
        mean, covariance = copy.posterior(action)
        if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
            return f"the posterior of action {action} is not finite"
        if (np.diag(np.atleast_2d(covariance)) < 0).any():
            return f"the posterior of action {action} has a negative variance"
    return None


def is_nan(value: Any, depth: int = 0) -> bool:
    """Is there a NaN in a result?"""
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and bool(np.isnan(value).any())
    if depth < 3 and isinstance(value, tuple | list):
        return any(is_nan(v, depth + 1) for v in value[:50])
    return False


def unrolled(result: Any) -> Any:
    """A result; of an iterator, which has done nothing yet, its first items."""
    return list(itertools.islice(result, 3)) if isinstance(result, Iterator) else result


def same(first: Any, second: Any) -> bool:
    """Equal, where that can be said: numbers and arrays."""
    if isinstance(first, np.ndarray | float | int | np.generic) and isinstance(
        second, np.ndarray | float | int | np.generic
    ):
        a, b = np.asarray(first), np.asarray(second)
        if a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
            return bool(np.array_equal(a, b))
        # the order of a sum depends on the strides, so that the last digits may
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    return True


def site_of(error: BaseException) -> str:
    """The innermost function of the library that an error passed."""
    root = str(Path(manyarms.__file__).parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(root)]
    return f"{Path(frames[-1].filename).relative_to(root).as_posix()}:{frames[-1].name}" if frames else "outside"


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """A hang ends here."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Fuzzer:
    """Calls, and what became of them."""

    def __init__(self, material: Material, seed: int, seconds: float) -> None:
        self.material, self.seconds = material, seconds
        self.rng = np.random.default_rng(seed)
        self.found = targets(material)
        self.counts: collections.Counter[str] = collections.Counter()
        self.violations: dict[str, Violation] = {}
        self.times: collections.Counter[str] = collections.Counter()
        self.things: dict[str, tuple[Any, int]] = {}
        self.hanging: list[str] = []  # known lines of calls that hang, which are not made

    def attempt(self, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            with limit(self.seconds):
                return call(), None
        except (Exception, Hang) as error:
            return None, error

    def broken(self) -> dict[str, str]:
        """Targets whose correct call fails: material.py gives them something wrong."""
        out = {}
        for target in list(self.found.calls):
            if target.maker is None:
                _, error = self.attempt(lambda t=target: call_correctly(t))
            else:
                values = {name: a.value for name, a in target.arguments.items()}
                _, error = self.attempt(lambda t=target, v=values: t.function(t.maker(), **v))
            if error is None:
                continue
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            self.found.calls.remove(target)
            if isinstance(error, manyarms.errors.MissingExtra) or target.name in REFUSING:
                self.found.left_out[target.name] = said
            else:
                out[target.name] = said
        return out

    def run(self, calls: int) -> None:
        """So many calls, each of a random target."""
        pool = self.found.calls
        while self.counts["calls"] < calls:
            self.one(pool[int(self.rng.integers(len(pool)))])

    def run_each(self, calls: int, seed: int) -> None:
        """So many calls of every target, on streams of their own: what is public besides does not change them."""
        for target in self.found.calls:
            self.rng = np.random.default_rng([seed, zlib.crc32(target.name.encode())])
            self.things.clear()
            for _ in range(calls):
                self.one(target)

    def thing_of(self, target: Target) -> Any:
        """The object whose method is called; an agent is used on and on, as long as it is sound."""
        assert target.maker is not None
        owner = target.name.rpartition(".")[0]
        thing, age = self.things.get(owner, (None, 0))
        if thing is None or age > 40 or (target.stateful and thing.actions < 5):
            thing, age = target.maker(), 0
            if target.stateful:
                thing.observe(context_of(thing), 1, 1.0)
        self.things[owner] = (thing, age + 1)
        return thing

    def one(self, target: Target) -> None:
        values = {name: a.value for name, a in target.arguments.items()}
        names = list(target.arguments)
        chosen = self.rng.choice(names, size=min(len(names), 1 + int(self.rng.random() < 0.2)), replace=False)
        bad: dict[str, hostile.Hostile] = {}
        for name in chosen:
            options = target.arguments[name].kind(self.rng, values[name])
            bad[str(name)] = options[int(self.rng.integers(len(options)))]
            values[str(name)] = bad[str(name)].value
        label = ", ".join(f"{name}={b.label}" for name, b in bad.items())
        call = f"{target.name}({label})"
        short = f"Agent.{target.name.rpartition('.')[2]}" if target.stateful else target.name
        place = f"{short}({', '.join(sorted(bad))})"
        hanging = f"{short}({', '.join(sorted(f'{name}={b.label}' for name, b in bad.items()))})"
        if is_known(f"hang {hanging}", self.hanging):
            self.counts["calls"] += 1
            self.counts["known to hang"] += 1
            return

        def report(kind: str, site: str, text: str) -> None:
            violation = Violation(kind, site, call, " ".join(text.split())[:160])
            self.violations.setdefault(violation.key, violation)
            self.times[violation.key] += 1
            if target.stateful:
                self.things.pop(target.name.rpartition(".")[0], None)

        thing = None if target.maker is None else self.thing_of(target)
        before = state_of(thing, self.material.folder / "state") if target.stateful else None
        plain = next(iter(bad.values())).plain if len(bad) == 1 else None
        twin = None
        if target.maker is not None and plain is not None:
            twin = thing.copy() if target.stateful else target.maker()
            thing = thing if target.stateful else target.maker()
        on = () if thing is None else (thing,)
        result, error = self.attempt(lambda: unrolled(target.function(*on, **values)))
        self.counts["calls"] += 1
        if error is not None:
            text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if isinstance(error, Hang):
                report("hang", hanging, f"no answer in {self.seconds:g} s")
            elif isinstance(error, MemoryError):
                report("memory", site_of(error), text)
            elif not isinstance(error, GOOD_ERRORS) or not str(error):
                report("exception", f"{site_of(error)} {type(error).__name__}", text)
            else:
                self.counts["refused"] += 1
            if before is not None and state_of(thing, self.material.folder / "state") != before:
                report("changed", place, f"after {text}")
            return
        self.counts["accepted"] += 1
        self.judge(target, bad, place, result, report)
        with_a_world = any(hasattr(value, "regret") for value in values.values())  # whose stream has moved on
        if plain is not None and not with_a_world:
            name = next(iter(bad))
            other, fault = self.attempt(
                lambda: unrolled(target.function(*(() if twin is None else (twin,)), **{**values, name: plain}))
            )
            if fault is None and not same(result, other):
                report("differs", place, f"{result!r} against {other!r}")
            elif fault is None and target.stateful and not same(beliefs_of(thing), beliefs_of(twin)):
                report("differs", place, "what the agent believes")
        decides = target.name.endswith((".decide", ".decide_numbered"))  # which takes a number
        asks = target.stateful and not target.changes and not decides
        if asks and state_of(thing, self.material.folder / "state") != before:
            report("changed", place, "a question changed the agent")
        if target.changes or is_agent_maker(target.function):
            said, fault = self.attempt(lambda: wrong_with(thing if target.changes else result))
            if fault is not None:
                report("poisoned", place, f"accepted, then {type(fault).__name__}: {fault}")
            elif said:
                report("nan", place, f"accepted, then {said}")

    def judge(
        self, target: Target, bad: dict[str, hostile.Hostile], place: str, result: Any, report: Callable[..., None]
    ) -> None:
        """Should it have been accepted, and is what it gave a number?"""
        if is_nan(result):
            report("nan", place, f"{result!r}")
        if len(bad) > 1:
            return
        ((name, value),) = bad.items()
        # another shape is wrong only where some other argument says what is right
        shapes = (hostile.arrays, hostile.ids, hostile.labels, hostile.integers)
        bound = target.maker is not None or sum(a.kind in shapes for a in target.arguments.values()) > 1
        optional = value.value is None and target.arguments[name].value is None
        legal = not LEGAL.get(value.label, set()).isdisjoint([*target.name.split("."), name])
        if (value.refuse or (value.shape and bound)) and not optional and not legal:
            report("accepted", f"{place} {value.label}", f"gave {type(result).__name__}")


# ---- the command line


def known() -> list[str]:
    """The sites that are known; a star stands for anything."""
    return [line for line in KNOWN.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def is_known(key: str, listed: list[str]) -> bool:
    """Is a site on the list? A call with two wrong arguments is, where the call with one of them is."""
    keys = [key]
    if two := re.fullmatch(r"(\S+ [^ (]*(?:\(\w*\)\.\w+)?\()([^()]+), ([^()]+)(\).*)", key):
        keys += [two[1] + one + two[4] for one in (two[2], two[3])]
    return any(fnmatch.fnmatchcase(one, line.replace("[", "[[]")) for line in listed for one in keys)


def rewritten(listed: list[str], found: list[str]) -> list[str]:
    """The list after a run: what was found again stays, what was not is gone, what is new comes; one line a parameter."""
    kept = {line for line in listed if any(is_known(key, [line]) for key in found)}
    for key in sorted(found, key=lambda key: (key.count(", "), key)):  # calls with one wrong argument first
        if not is_known(key, sorted(kept)):
            kept.add(re.sub(r"^(accepted \S+\)) .*", r"\1 *", key))
    return sorted(kept)


def main() -> int:
    """Fuzz, and print each site once."""
    parser = argparse.ArgumentParser(description="Hostile calls over everything public.")
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--each", type=int, help="so many calls of each callable, in place of --calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="a pattern of the callables' names")
    parser.add_argument("--seconds", type=float, default=60.0, help="what hangs longer is a violation")
    parser.add_argument("--list", action="store_true", help="what is called, what is left out and why")
    parser.add_argument("--write-known", action="store_true", help="make known.txt anew from this run")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    held = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if Path("/proc").exists() else 0
    )
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # a relative path of a hostile call stays inside
        try:
            fuzzer = Fuzzer(Material(Path(folder)), options.seed, options.seconds)
            if options.only:
                fuzzer.found.calls = [t for t in fuzzer.found.calls if re.search(options.only, t.name)]
            broken = fuzzer.broken()  # loads what is loaded late, too
            if options.list:
                print("\n".join(sorted(t.name for t in fuzzer.found.calls)))
                print("\n".join(f"left out: {name}: {why}" for name, why in fuzzer.found.left_out.items()))
            if held:
                held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
                resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, held + ROOM))
            if not options.write_known:
                fuzzer.hanging = [line for line in known() if line.startswith("hang ")]
            if not options.list:
                fuzzer.run(options.calls) if options.each is None else fuzzer.run_each(options.each, options.seed)
        finally:
            os.chdir(before)
    for name, why in fuzzer.found.uncovered.items():
        print(f"not covered: {name}({why}): tests/hard_use/material.py has no rule for it")
    for name, why in broken.items():
        print(f"not covered: the correct call of {name} fails: {why}")
    if options.list:
        return int(bool(fuzzer.found.uncovered or broken))
    listed = known()
    new = {key: v for key, v in fuzzer.violations.items() if not is_known(key, listed)}
    for key, violation in sorted(new.items()):
        print(f"{key}  x{fuzzer.times[key]}: {violation.call}: {violation.text}")
    counts = ", ".join(f"{count:,} {what}" for what, count in fuzzer.counts.items())
    print(
        f"{counts}, seed {options.seed}; {len(fuzzer.violations)} sites violated, {len(new)} of them new, {len(listed)} known"
    )
    if options.write_known:
        head = [line for line in KNOWN.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        KNOWN.write_text("\n".join([*head, *rewritten(listed, list(fuzzer.violations))]) + "\n", encoding="utf-8")
    return int(bool(new or fuzzer.found.uncovered or broken))


if __name__ == "__main__":
    sys.exit(main())
