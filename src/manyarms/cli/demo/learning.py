"""The demonstration's third part: policies learned from a log of a large catalogue, their true values beside each other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from manyarms._base import html as report
from manyarms._base.palette import PALETTE
from manyarms._base.plotting import drawing, finish
from manyarms._base.typing import Array
from manyarms.cli._text import say
from manyarms.cli.demo.parts import Section, left_out, missing_torch, show_table, timed
from manyarms.engine import cores, local, tell
from manyarms.estimators import IPS, Objective, cLPI
from manyarms.logs import LoggedData
from manyarms.policies import DeterministicPolicy, Projection, SoftmaxPolicy, StreamedPolicy
from manyarms.worlds import CatalogueWorld, Value


@dataclass(frozen=True)
class Sizes:
    """How large this part is; the defaults end within a minute on two cores."""

    actions: int = 100_000
    dim: int = 32
    rounds: int = 50_000
    epochs: int = 6
    batch: int = 1024
    learning_rate: float = 1e-2
    test: int = 500  # contexts on which values are taken at the end
    watched: int = 100  # and after every epoch


DEFAULT = Sizes()
OBJECTIVES: Sequence[Objective] = (IPS(), cLPI(tau=0.01))
COLUMNS = ("policy", "actions drawn", "best action", "seconds")


@dataclass(frozen=True)
class Line:
    """A policy, what it earns when its actions are drawn from it, and when it always plays its most probable one."""

    name: str
    drawn: Value
    decided: Value
    seconds: float | None
    by_epoch: tuple[float, ...]
    """Value of drawn actions at the watched contexts, before the first epoch and after each; one if nothing is learned."""

    def cells(self) -> tuple[str, str, str, str]:
        """The line of a table."""
        seconds = "" if self.seconds is None else f"{self.seconds:.0f}"
        return self.name, _percent(self.drawn), _percent(self.decided), seconds


@dataclass(frozen=True)
class Job:
    """One policy to be learned in a worker process."""

    world: CatalogueWorld
    log: LoggedData
    objective: Objective
    seed: int
    sizes: Sizes


def offline_learning(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> Section:
    """A log of a large catalogue; IPS and cLPI learn from it side by side, and the world knows what they are worth."""
    about = (
        f"\nA log of {sizes.rounds:,} rounds over a catalogue of {sizes.actions:,} items, of which a policy played short "
        "lists; then two policies over all items, learned from the log alone."
    )
    with timed(console, about):
        missing = missing_torch()
        if missing is not None:
            return left_out(console, "A policy from a log", missing)
        world = CatalogueWorld(sizes.actions, sizes.dim, test=sizes.test, seed=seed)
        log = world.log(sizes.rounds, seed=seed + 1, support=False)
        console.print(f"{int(log.rewards.sum()):,} clicks in the log", highlight=False)
        # at the contexts of the curves beside it
        watched = float(world.value(world.logging, _watched(world, seed, sizes)))
        logged = _line(world, "logging policy", world.logging, None, (watched,))
        lines = [logged, *_side_by_side(console, world, log, seed, sizes)]
        best = world.best_value()
        rows = [*(line.cells() for line in lines), ("best item of all", "", _percent(best), "")]
        show_table(console, f"true click rates ± se, {sizes.actions:,} items", COLUMNS, rows)
        picture = _picture(lines, best, out / "figures", sizes)
        say(console, f"picture: {picture.with_suffix('.png')}")
    return _section(lines, rows, picture, sizes)


def _side_by_side(console: Console, world: CatalogueWorld, log: LoggedData, seed: int, sizes: Sizes) -> list[Line]:
    """What every objective learns, on all cores."""
    from manyarms.cli._progress import Board

    jobs = [Job(world, log, objective, seed, sizes) for objective in OBJECTIVES]
    names = [job.objective.label for job in jobs]
    with Board(console, *names) as board, local(min(cores(), len(jobs)), board.tell) as engine:
        lines = {job.objective.label: line for job, line in engine.map(act, jobs)}
    return [lines[name] for name in names]


def act(job: Job) -> Line:
    """Learn one policy, telling how far it is, and take its true values."""
    import torch

    from manyarms.cli._progress import Reader
    from manyarms.learning import Moment, learn

    torch.set_num_threads(1)
    world, sizes = job.world, job.sizes
    watched = _watched(world, job.seed, sizes)
    start = SoftmaxPolicy(actions=world.embeddings, encoder=Projection(np.eye(sizes.dim, dtype=np.float32)))
    read, began = Reader(job.objective.label, "true value"), time.monotonic()
    before = float(world.value(start, watched))

    def progress(moment: Moment) -> None:
        tell(read(moment))

    found = learn(
        job.log, start, job.objective, epochs=sizes.epochs, batch=sizes.batch, learning_rate=sizes.learning_rate,
        seed=job.seed, device="cpu", score=lambda policy: world.value(policy, watched), progress=progress,
    )  # fmt: skip
    seconds = time.monotonic() - began
    values = tuple(epoch.score for epoch in found.history if epoch.score is not None)
    return _line(world, job.objective.label, found.policy, seconds, (before, *values))


def _watched(world: CatalogueWorld, seed: int, sizes: Sizes) -> Array:
    """The contexts on which values are taken while policies learn: fewer than at the end, and others."""
    return world.contexts(sizes.watched, seed=seed + 2)


def _line(
    world: CatalogueWorld, name: str, policy: StreamedPolicy, seconds: float | None, by_epoch: tuple[float, ...]
) -> Line:
    decided = DeterministicPolicy(policy.decide_rows, policy.action_count)
    return Line(name, world.value(policy), world.value(decided), seconds, by_epoch)


def _percent(value: Value) -> str:
    return f"{100 * float(value):.2f} ± {100 * value.standard_error:.2f} %"


def _picture(lines: list[Line], best: Value, folder: Path, sizes: Sizes) -> Path:
    with drawing(1, 2) as (figure, axes):
        curves, bars = axes
        for place, line in enumerate(lines):
            colour = PALETTE[(2, 1, 0)[place]]
            if len(line.by_epoch) > 1:
                values = 100 * np.array(line.by_epoch)
                curves.plot(range(len(values)), values, color=colour, label=line.name, marker="o", markersize=3)
            else:
                curves.axhline(100 * line.by_epoch[0], color=colour, linestyle="--", label=line.name)
            for shift, value, alpha in ((-0.2, line.drawn, 0.45), (0.2, line.decided, 1.0)):
                bars.bar(
                    place + shift, 100 * float(value), 0.38, yerr=100 * value.standard_error, color=colour, alpha=alpha
                )
        curves.set_xlabel("epoch")
        curves.set_ylabel("true click rate, %")
        curves.set_title(f"actions drawn, as it learns: {sizes.watched} other contexts")
        curves.set_ylim(bottom=0)
        bars.axhline(100 * float(best), color="#555555", linestyle=":", label="best item of all")
        bars.set_xticks(range(len(lines)), [line.name.replace(" (", "\n(") for line in lines])
        bars.set_axisbelow(True)
        bars.set_title("pale: actions drawn; full: best action")
        bars.set_ylabel("true click rate, %")
        return finish(figure, axes, folder, "offline", f"{sizes.actions:,} items, {sizes.rounds:,} logged rounds")


def _section(lines: list[Line], rows: list[tuple[str, str, str, str]], picture: Path, sizes: Sizes) -> Section:
    code = f"""\
import numpy as np
import manyarms as ma

world = ma.worlds.CatalogueWorld({sizes.actions:_}, {sizes.dim}, seed=0)
log = world.log({sizes.rounds:_}, seed=1)
start = ma.SoftmaxPolicy(actions=world.embeddings, encoder=ma.policies.Projection(np.eye({sizes.dim})))
result = ma.learn(log, start, ma.cLPI(tau=0.01), epochs={sizes.epochs}, batch={sizes.batch},
                  learning_rate={sizes.learning_rate:g}, seed=0)
print(result.policy.decide(world.contexts(1)[0], k=10))
print(world.value(result.policy), world.value(world.logging))
"""
    title = f"Learning from a log of {sizes.rounds:,} rounds over {sizes.actions:,} items"
    about = (
        "The logging policy plays from lists of 100 items. Both learned policies may play any item. They are light: what "
        "is learned is a projection of contexts onto given embeddings of the items, from the identity on, with the same "
        "steps. IPS maximises an unbiased estimate of the click rate and drives the policy towards single items; cLPI "
        "maximises a concave weighted log-likelihood, whose best policy spreads over the items that earn, in proportion "
        "to what they earn. So two values are shown: of actions drawn from the policy, and of its most probable action, "
        "which is what decide plays. The world knows both exactly at each of its test contexts; errors are those of the "
        "mean over contexts."
    )
    logged, *learned = lines
    best = max(learned, key=lambda line: float(line.decided))
    answer = (
        f"Learned from {sizes.rounds:,} logged rounds over {sizes.actions:,} items, {best.name} earns {_percent(best.decided)} "
        f"with its most probable items, where the logging policy earned {_percent(logged.drawn)}."
    )
    seen = (
        "True click rates. Left: as the policies learn, epoch by epoch, beside the logging policy (dashed). Right: in the end, "
        "of actions drawn from each policy (pale) and of its most probable action (full); dotted, the best item of all."
    )
    blocks = [
        report.figure(report.svg_of(picture, "offline"), seen),
        report.table(COLUMNS, rows, numbers=COLUMNS[1:]),
        report.paragraph(about),
        report.code(code),
    ]
    return Section(title, answer, blocks)


__all__ = ["Sizes", "act", "offline_learning"]
