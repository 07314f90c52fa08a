"""The demonstration's third part: policies learned from a log of a large catalogue, in two worlds with different winners."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from manyarms._base import html as report
from manyarms._base.palette import PALETTE
from manyarms._base.plotting import drawing, finish
from manyarms._base.typing import Array
from manyarms.cli._text import say
from manyarms.cli.demo.parts import MeanGap, Section, left_out, missing_torch, show_table, timed
from manyarms.engine import cores, local, tell
from manyarms.estimators import IPS, Objective, cLPI
from manyarms.logs import LoggedData
from manyarms.policies import DeterministicPolicy, SoftmaxPolicy, StreamedPolicy
from manyarms.worlds import CatalogueWorld, Value


@dataclass(frozen=True)
class Sizes:
    """How large this part is; the defaults end within a minute on two cores."""

    actions: int = 50_000
    dim: int = 16
    rounds: int = 20_000
    epochs: int = 6
    batch: int = 256
    test: int = 500  # contexts on which values are taken


@dataclass(frozen=True)
class Setting:
    """How learning meets the catalogue: how long contexts are, where parameters start, how far Adam steps."""

    words: str
    length: float  # what contexts are multiplied by
    spread: float  # standard deviation of the parameters at the start
    rate: float


@dataclass(frozen=True)
class Line:
    """A policy: what it earns at each test context when its actions are drawn, and when it plays its most probable one."""

    name: str
    drawn: Array
    decided: Array
    seconds: float | None = None

    def cells(self) -> tuple[str, str, str, str]:
        """The line of a table."""
        seconds = "" if self.seconds is None else f"{self.seconds:.0f}"
        return self.name, _percent(self.drawn), _percent(self.decided), seconds


@dataclass(frozen=True)
class Job:
    """One policy to be learned in a worker process."""

    world: CatalogueWorld
    log: LoggedData
    setting: Setting
    objective: Objective
    seed: int
    sizes: Sizes

    @property
    def name(self) -> str:
        """The objective and where it learns, for bars."""
        return f"{self.objective.label}, {self.setting.words}"


@dataclass(frozen=True)
class TwoObjectives:
    """What both objectives learned in one setting, beside the logging policy and what uniform play earns."""

    setting: Setting
    ips: Line
    clpi: Line
    logged: Line
    uniform: Array

    @property
    def lines(self) -> tuple[Line, Line]:
        """Both policies."""
        return self.ips, self.clpi

    def sentence(self) -> str:
        """Which objective suits this world, as far as the test contexts can tell."""
        told = []
        for short, _, of in METRICS:
            gap = MeanGap.between(of(self.clpi), of(self.ips))
            apart = f"{100 * gap.mean:+.2f} ± {100 * gap.error:.2f} points"
            told.append(f"{short}: cLPI {_mean(of(self.clpi))}, IPS {_mean(of(self.ips))} ({apart})")
        return f"With {self.setting.words}, {self._advice()} ({'; '.join(told)}){self._below()}."

    def _advice(self) -> str:
        """Whom to take, and where: one who is ahead of the other there, and not behind the logging policy."""
        taken = []
        for name, first, second in (("cLPI", self.clpi, self.ips), ("IPS", self.ips, self.clpi)):
            ahead = [
                where
                for _, where, of in METRICS
                if MeanGap.between(of(first), of(second)).sign > 0
                and MeanGap.between(of(first), self.logged.drawn).sign >= 0
            ]
            if ahead:
                taken.append(f"take {name}" + (f" where {ahead[0]}" if len(ahead) < len(METRICS) else ""))
        return " and ".join(taken) or "neither objective is clearly the one to take"

    def _below(self) -> str:
        """Whose drawn actions earn less than those of the logging policy."""
        both = (("IPS", self.ips), ("cLPI", self.clpi))
        names = [name for name, line in both if MeanGap.between(line.drawn, self.logged.drawn).sign < 0]
        beside = f"({_mean(self.logged.drawn)}; uniform play: {_mean(self.uniform)})"
        verb = "earn" if len(names) > 1 else "earns"
        return (
            f"; with actions drawn {' and '.join(names)} {verb} less than the logging policy {beside}" if names else ""
        )


DEFAULT = Sizes()
# a measure in short, where it is the one that counts, and its values
METRICS: Sequence[tuple[str, str, Callable[[Line], Array]]] = (
    ("most probable item", "the most probable item is played", lambda line: line.decided),
    ("actions drawn", "actions are drawn", lambda line: line.drawn),
)
OBJECTIVES: Sequence[Objective] = (IPS(), cLPI(tau=0.01))
SETTINGS = (
    Setting("short contexts and a random start", length=0.02, spread=0.005, rate=0.1),
    Setting("contexts of full length and a start at zero", length=1.0, spread=0.0, rate=0.01),
)
COLUMNS = ("policy", "actions drawn", "most probable item", "seconds")


def offline_learning(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> Section:
    """A log of a large catalogue; IPS and cLPI learn from it in two settings, and the world knows what they are worth."""
    about = (
        f"\nA log of {sizes.rounds:,} rounds over a catalogue of {sizes.actions:,} items, of which a policy played short "
        "lists; then policies over all items, learned from the log alone by two objectives in two worlds."
    )
    with timed(console, about):
        missing = missing_torch()
        if missing is not None:
            return left_out(console, "A policy from a log", missing)
        world = CatalogueWorld(sizes.actions, sizes.dim, test=sizes.test, seed=seed)
        log = world.log(sizes.rounds, seed=seed + 1, support=False)
        console.print(f"{int(log.rewards.sum()):,} clicks in the log", highlight=False)
        logged, best = _line(world, "logging policy", world.logging), world.best_value()
        found = side_by_side(console, world, log, logged, seed, sizes)
        tables = []
        for one in found:
            rows = [line.cells() for line in (logged, *one.lines)]
            tables.append(
                [*rows, ("best item of all", "", f"{100 * float(best):.2f} ± {100 * best.standard_error:.2f} %", "")]
            )
            show_table(console, f"true click rates ± se: {one.setting.words}", COLUMNS, tables[-1])
            console.print(one.sentence(), highlight=False)
        picture = _picture(logged, found, out / "figures", sizes)
        say(console, f"picture: {picture.with_suffix('.png')}")
    return _section(logged, found, tables, picture, sizes)


def side_by_side(
    console: Console, world: CatalogueWorld, log: LoggedData, logged: Line, seed: int, sizes: Sizes
) -> list[TwoObjectives]:
    """What every objective learns in every setting, on all cores."""
    from manyarms.cli._progress import Board

    jobs = [Job(world, log, setting, objective, seed, sizes) for setting in SETTINGS for objective in OBJECTIVES]
    with Board(console, *(job.name for job in jobs)) as board, local(min(cores(), len(jobs)), board.tell) as engine:
        lines = {job.name: line for job, line in engine.map(act, jobs)}
    nothing = SoftmaxPolicy(np.zeros((sizes.actions, sizes.dim), dtype=np.float32))
    uniform = _line(world, "uniform", nothing).drawn
    found = []
    for setting in SETTINGS:
        ips, clpi = (lines[job.name] for job in jobs if job.setting is setting)
        found.append(TwoObjectives(setting, ips, clpi, logged, uniform))
    return found


def act(job: Job) -> Line:
    """Learn one policy, telling how far it is, and take its true values."""
    import torch

    from manyarms.cli._progress import Reader
    from manyarms.learning import Moment, learn

    torch.set_num_threads(1)
    setting, sizes = job.setting, job.sizes
    noise = np.random.default_rng(job.seed).standard_normal((sizes.actions, sizes.dim))
    start = SoftmaxPolicy((setting.spread * noise).astype(np.float32))
    read, began = Reader(job.name), time.monotonic()

    def progress(moment: Moment) -> None:
        tell(read(moment))

    found = learn(
        replace(job.log, contexts=setting.length * job.log.contexts), start, job.objective, epochs=sizes.epochs,
        batch=sizes.batch, learning_rate=setting.rate, seed=job.seed, device="cpu", progress=progress,
    )  # fmt: skip
    seconds = time.monotonic() - began
    # the same policy for contexts of full length: (s x)^T b = x^T (s b)
    policy = SoftmaxPolicy(setting.length * found.policy.actions)
    return replace(_line(job.world, job.objective.label, policy), seconds=seconds)


def _line(world: CatalogueWorld, name: str, policy: StreamedPolicy) -> Line:
    X = world.test_contexts
    decided = DeterministicPolicy(policy.decide_rows, policy.action_count)
    return Line(name, policy.expectation(X, world.values), decided.expectation(X, world.values))


def _mean(values: Array) -> str:
    return f"{100 * float(values.mean()):.2f} %"


def _percent(values: Array) -> str:
    value = Value.of(values)
    return f"{100 * float(value):.2f} ± {100 * value.standard_error:.2f} %"


def _picture(logged: Line, found: Sequence[TwoObjectives], folder: Path, sizes: Sizes) -> Path:
    with drawing(1, len(found)) as (figure, axes):
        for axis, one in zip(axes, found, strict=True):
            lines = (logged, *one.lines)
            for place, line in enumerate(lines):
                for shift, values, alpha in ((-0.2, line.drawn, 0.45), (0.2, line.decided, 1.0)):
                    value = Value.of(values)
                    height, error = 100 * float(value), 100 * value.standard_error
                    axis.bar(place + shift, height, 0.38, yerr=error, color=PALETTE[(2, 1, 0)[place]], alpha=alpha)
                    axis.annotate(
                        f"{height:.2f}", (place + shift, height + error), (0, 2), textcoords="offset points", ha="center",
                        fontsize=8,
                    )  # fmt: skip
            axis.axhline(
                100 * float(one.uniform.mean()), color="#555555", linestyle="--", linewidth=1, label="uniform play"
            )
            axis.set_xticks(range(len(lines)), [line.name.replace(" (", "\n(") for line in lines])
            axis.set_ylim(0, 115 * max(line.decided.mean() for each in found for line in (logged, *each.lines)))
            axis.set_axisbelow(True)
            axis.set_title(one.setting.words)
            axis.set_ylabel("true click rate, %")
        title = f"pale: actions drawn; full: the most probable item ({sizes.actions:,} items, {sizes.rounds:,} logged rounds)"
        return finish(figure, axes, folder, "offline", title)


def _section(
    logged: Line, found: list[TwoObjectives], tables: list[list[tuple[str, str, str, str]]], picture: Path, sizes: Sizes
) -> Section:
    about = (
        "The logging policy plays from lists of 100 items. Learned policies may play any item: one vector of parameters an item, "
        f"{sizes.epochs} epochs of Adam. Both worlds have the same catalogue and the same log. They differ in how long contexts "
        "are (short ones are what embeddings from a singular value decomposition give, if nobody scales them), in where "
        "parameters start, and in the learning rate that goes with it."
    )
    why = (
        "At a uniform policy over K items the gradient of IPS is that of cLPI divided by K. Adam divides such a factor out, "
        "unless gradients sink to its constant of 1e-8, as those of IPS do where contexts are short: there cLPI leaves the "
        "start first. Where contexts are long both leave it; IPS then drives its policy towards single items, and the best "
        "policy of cLPI spreads over all items that earn, in proportion to what they earn."
    )
    seen = (
        "True click rates in both worlds: of actions drawn from each policy (pale) and of its most probable item (full), which "
        "is what decide plays; broken, uniform play. Bars of error are one standard error of the "
        f"mean over {sizes.test:,} contexts; the world knows the rate at each of them exactly."
    )
    blocks = [report.figure(report.svg_of(picture, "offline"), seen)]
    for one, rows in zip(found, tables, strict=True):
        blocks += [
            report.paragraph(f"{one.setting.words.capitalize()}:"),
            report.table(COLUMNS, rows, numbers=COLUMNS[1:]),
        ]
    blocks += [report.paragraph(about), report.paragraph(why), report.code(_code(sizes))]
    title = f"Learning from a log of {sizes.rounds:,} rounds over {sizes.actions:,} items"
    earned = (
        f"In the log, {sizes.rounds:,} rounds over {sizes.actions:,} items, the logging policy earns {_mean(logged.drawn)}, and "
        f"its most probable item {_mean(logged.decided)}."
    )
    return Section(title, [earned, *(one.sentence() for one in found)], blocks)


def _code(sizes: Sizes) -> str:
    return f"""\
import numpy as np
import manyarms as ma

world = ma.worlds.CatalogueWorld({sizes.actions:_}, {sizes.dim}, seed=0)
log = world.log({sizes.rounds:_}, seed=1)
start = ma.SoftmaxPolicy(np.zeros(({sizes.actions:_}, {sizes.dim})))
for objective in (ma.IPS(), ma.cLPI(tau=0.01)):
    result = ma.learn(
        log, start, objective, epochs={sizes.epochs}, batch={sizes.batch}, learning_rate={SETTINGS[1].rate:g}, seed=0
    )
    print(objective.label, world.value(result.policy), world.value(world.logging))
    print(result.policy.decide(world.contexts(1)[0], k=10))
"""


__all__ = ["Job", "Line", "Setting", "Sizes", "TwoObjectives", "act", "offline_learning", "side_by_side"]
