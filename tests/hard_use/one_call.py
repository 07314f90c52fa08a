"""One hostile call, and everything that can be wrong with it. The kinds of violation are listed in fuzz.py."""

from __future__ import annotations

import collections
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import manyarms
from hard_use import hostile, ownership, sound
from hard_use.limits import Hang, limit
from hard_use.targets import Target, context_of

GOOD_ERRORS = (manyarms.ManyArmsError, TypeError)
# policies that do not look at contexts, or leave them to a function of the user's; embeddings of any length
ANY_LENGTH = {
    "LoggedData", "FixedPolicy", "UniformPolicy", "DeterministicPolicy", "FunctionPolicy", "PC", "cluster_actions", "k_means",
    "mixture", "Neighbours", "Pool", "labels", "isotropic", "from_data", "learned", "grid", "FaissIndex",
    "Grid", "TopSoftmaxPolicy", "sigmas", "coverage", "update", "action_contexts",
}  # fmt: skip
# label of the hostile value: callables and parameters where it looks meaningless and is legal
LEGAL = {
    # a batch of nothing; one context of no numbers, for a policy that does not look at it
    "no rows": {"X", "contexts", "FixedPolicy", "UniformPolicy", "DeterministicPolicy", "FunctionPolicy", "update"},
    "two more axes": {"Factors"},
    "a number": {"gaussian_kl", "kl", "coverage", "update"},  # of which all entries are that number; a list of one
    "list": {"hidden"},  # widths
    "inf": {"Shrinkage", "ClipWeights", "rows_needed", "kl", "gap"},  # no correction; no bound
    "none": {"action_contexts", "DriftAlarm"},  # of the items alone; rewards that no range is known of
    "longer": ANY_LENGTH,
    "empty": ANY_LENGTH,
}
LONGEST_LIFE = 40  # calls on one object


@dataclass(frozen=True)
class Violation:
    """What went wrong, where, and how to see it again."""

    kind: str
    site: str
    call: str
    text: str
    again: str  # a shell command

    @property
    def key(self) -> str:
        return f"{self.kind} {self.site}"


def site_of(error: BaseException) -> str:
    """The innermost function of the library that an error passed."""
    root = str(Path(manyarms.__file__).parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(root)]
    return f"{Path(frames[-1].filename).relative_to(root).as_posix()}:{frames[-1].name}" if frames else "outside"


class Notes:
    """Attempts within the limits, and what was wrong with them, each site once."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds
        self.counts: collections.Counter[str] = collections.Counter()
        self.times: collections.Counter[str] = collections.Counter()
        self.violations: dict[str, Violation] = {}
        self.tell = False  # print tracebacks: somebody looks at one call

    def attempt(self, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            with limit(self.seconds):
                return call(), None
        except (Exception, Hang) as error:
            if self.tell:
                traceback.print_exception(error)
            return None, error

    def note(self, kind: str, site: str, call: str, text: str, again: str) -> None:
        violation = Violation(kind, site, call, " ".join(text.split())[:160], again)
        self.violations.setdefault(violation.key, violation)
        self.times[violation.key] += 1

    def fault_of(self, error: BaseException, hanging: str) -> tuple[str, str, str] | None:
        """The kind, the site and the text of an error that should not have come; nothing where it may."""
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, Hang):
            return "hang", hanging, f"no answer after {self.seconds:g} s of processor time"
        if isinstance(error, MemoryError):
            return "memory", site_of(error), text
        if not isinstance(error, GOOD_ERRORS) or not str(error):
            return "exception", f"{site_of(error)} {type(error).__name__}", text
        return None

    def report(self) -> dict[str, Any]:
        """What was found, as JSON can hold it."""
        violations = {key: asdict(violation) for key, violation in self.violations.items()}
        return {"counts": dict(self.counts), "times": dict(self.times), "violations": violations}


class Caller(Notes):
    """Makes calls, and keeps the objects that they are made on."""

    def __init__(self, folder: Path, seconds: float) -> None:
        super().__init__(folder, seconds)
        self.things: dict[str, tuple[Any, int]] = {}

    def thing_of(self, target: Target) -> Any:
        """The object whose method is called; an agent is used on and on, as long as it is sound."""
        assert target.maker is not None
        owner = target.name.rpartition(".")[0]
        thing, age = self.things.get(owner, (None, 0))
        if thing is None or age > LONGEST_LIFE or (target.stateful and thing.actions < 5):
            close(thing)
            thing, age = target.maker(), 0
            if target.stateful:
                thing.observe(context_of(thing), 1, 1.0)
        self.things[owner] = (thing, age + 1)
        return thing

    def forget(self) -> None:
        """Let the objects go."""
        for thing, _ in self.things.values():
            close(thing)
        self.things.clear()

    def one(self, target: Target, stream: int) -> None:
        """The call number `stream` of this target: that number chooses the arguments and what comes in their place."""
        passing: list[Any] = []  # what was made for this call alone
        try:
            self._one(target, stream, passing)
        finally:
            for thing in passing:
                close(thing)

    def _one(self, target: Target, stream: int, passing: list[Any]) -> None:
        rng = np.random.default_rng(stream)
        values = {name: ownership.private(a.value) for name, a in target.arguments.items()}
        bad = self.replaced(target, values, rng)
        call = f"{target.name}({', '.join(f'{name}={b.label}' for name, b in bad.items())})"
        short = f"Agent.{target.name.rpartition('.')[2]}" if target.stateful else target.name
        place = f"{short}({', '.join(sorted(bad))})"
        hanging = f"{short}({', '.join(sorted(f'{name}={b.label}' for name, b in bad.items()))})"
        self.counts["calls"] += 1

        def report(kind: str, site: str, text: str) -> None:
            again = f"python -m hard_use.fuzz --again '{target.name}' {stream}"
            self.note(kind, site, call, text, again)
            if target.stateful:
                self.things.pop(target.name.rpartition(".")[0], None)

        thing = None if target.maker is None else self.thing_of(target)
        before = sound.state_of(thing, self.folder / "state") if target.stateful else None
        plain = next(iter(bad.values())).plain if len(bad) == 1 else None
        twin = None
        if target.maker is not None and plain is not None:
            twin = thing.copy() if target.stateful else target.maker()
            thing = thing if target.stateful else target.maker()
            passing += [] if target.stateful else [twin, thing]
        on = () if thing is None else (thing,)
        given = ownership.fingerprint(values, objects=False)
        result, error = self.attempt(lambda: sound.unrolled(target.function(*on, **values)))
        passing.append(result)
        if ownership.fingerprint(values, objects=False) != given:
            report("written", place, "an argument is another one after the call")
        if error is not None:
            if fault := self.fault_of(error, hanging):
                report(*fault)
            else:
                self.counts["refused"] += 1
            if before is not None and sound.state_of(thing, self.folder / "state") != before:
                report("changed", place, f"after {type(error).__name__}: {error}")
            return
        self.counts["accepted"] += 1
        if sound.is_nan(result):
            report("nan", place, f"{result!r}")
        if len(bad) == 1 and should_refuse(target, *next(iter(bad.items()))):
            label = next(iter(bad.values())).label
            report("accepted", f"{place} {label}", f"gave {type(result).__name__}")
        with_a_world = any(hasattr(value, "regret") for value in values.values())  # whose stream has moved on
        if plain is not None and not with_a_world:
            name = next(iter(bad))
            other, failed = self.attempt(
                lambda: sound.unrolled(target.function(*(() if twin is None else (twin,)), **{**values, name: plain}))
            )
            if failed is None and not sound.same(result, other):
                report("differs", place, f"{result!r} against {other!r}")
            elif failed is None and target.stateful and not sound.same(sound.beliefs_of(thing), sound.beliefs_of(twin)):
                report("differs", place, "what the agent believes")
        # a question changes nothing, but `decide` takes from its stream
        asks = target.stateful and not target.changes and not target.name.endswith((".decide", ".decide_numbered"))
        if asks and sound.state_of(thing, self.folder / "state") != before:
            report("changed", place, "a question changed the agent")
        made = thing if target.changes else result
        if target.changes or target.maker is None:
            said, failed = self.attempt(lambda: sound.wrong_with_result(made))
            if failed is not None:
                report("poisoned", place, f"accepted, then {type(failed).__name__}: {failed}")
            elif said:
                report("nan", place, f"accepted, then {said}")
        held = ownership.fingerprint(made)
        for name, value in values.items():
            ownership.scribble(value)
            if (now := ownership.fingerprint(made)) != held:
                report("aliased", f"{short}({name})", "what was made changes with the caller's array")
            held = now

    def replaced(self, target: Target, values: dict[str, Any], rng: np.random.Generator) -> dict[str, hostile.Hostile]:
        """Hostile values in place of one argument or two; `values` takes them."""
        names = list(target.arguments)
        bad: dict[str, hostile.Hostile] = {}
        for name in rng.choice(names, size=min(len(names), 1 + int(rng.random() < 0.2)), replace=False):
            options = target.arguments[name].kind(rng, values[name])
            bad[str(name)] = options[int(rng.integers(len(options)))]
            values[str(name)] = bad[str(name)].value
        return bad


def close(thing: Any) -> None:
    """A live store has a thread as long as it is open."""
    if isinstance(thing, manyarms.live.Live):
        thing.close()


def should_refuse(target: Target, name: str, value: hostile.Hostile) -> bool:
    """Has a value no meaning as this argument?"""
    # another shape is wrong only where some other argument says what is right
    shapes = (hostile.arrays, hostile.ids, hostile.labels, hostile.integers)
    bound = target.maker is not None or sum(a.kind in shapes for a in target.arguments.values()) > 1
    optional = value.value is None and target.arguments[name].value is None
    legal = not LEGAL.get(value.label, set()).isdisjoint([*target.name.split("."), name])
    return (value.refuse or (value.shape and bound)) and not optional and not legal
