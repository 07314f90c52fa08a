"""The demonstration's last part: what can be promised of a learned policy, and what it is truly worth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from rich.console import Console

from manyarms._base import html as report
from manyarms._base.palette import PALETTE
from manyarms._base.plotting import drawing, finish
from manyarms.certificates import Certificate, Improvement, PolicyPrior, certify, improvement
from manyarms.cli._text import say
from manyarms.cli.demo.parts import Section, left_out, missing_torch, show_table, timed
from manyarms.estimators import ES, IPS, Objective, PACBayes, cLPI
from manyarms.logs import LoggedData
from manyarms.policies import GaussianPolicy, SoftmaxPolicy
from manyarms.worlds import SupervisedWorld


@dataclass(frozen=True)
class Sizes:
    """How large this part is; the defaults end within forty seconds on two cores."""

    rows: tuple[int, ...] = (1_000, 4_000, 16_000)
    population: int = 20_000
    classes: int = 10
    dim: int = 20
    noise: float = 1.5
    eta0: float = 0.1  # how much better than chance the logging policy is
    epochs: int = 5
    least_visits: int = 40_000  # rows that learning looks at, however small the log
    delta: float = 0.05


DEFAULT = Sizes()
BATCH, RATE = 256, 0.1
PRIOR_SHARE = 0.2
BOUND, SPLIT, PLAIN = "ES bound", "ES bound, prior from a fifth", "plain IPS"
METHODS = (BOUND, SPLIT, PLAIN)
COLOURS = dict(zip(METHODS, PALETTE, strict=False))
Start = TypeVar("Start", GaussianPolicy, SoftmaxPolicy)
COLUMNS = ("rounds", "learned by", "IPS on its rows", "certificate", "true value", "better than the logger?")


@dataclass(frozen=True)
class Line:
    """A learned policy: what its rows seem to say, what is certified, and the truth."""

    rows: int
    name: str
    seeming: float
    certificate: Certificate
    gain: Improvement
    truth: float

    def cells(self) -> tuple[str, ...]:
        """The line of a table."""
        made, gain = self.certificate, self.gain
        words = f"certified, by {gain.lower:.3f}" if gain.certified else "not certified"
        return (
            f"{self.rows:,}", self.name, f"{self.seeming:.3f}", f"[{made.lower:.3f}, {made.upper:.3f}]",
            f"{self.truth:.3f}", words,
        )  # fmt: skip


def safe_to_ship(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> Section:
    """Logs of several sizes; a policy learned by a bound, one by plain IPS, and their certificates beside the truth."""
    about = (
        f"\nIs a policy that was learned from a log safe to ship? {sizes.classes} actions, rewards 0 or 1; a policy learned by a "
        f"lower bound on its value, one by plain IPS, and certificates at delta = {sizes.delta:g} from the same rows."
    )
    with timed(console, about):
        missing = missing_torch()
        if missing is not None:
            return left_out(console, "Is it safe to ship?", missing)
        world = world_of(sizes, seed)
        logged = float(world.value(world.logging(sizes.eta0), "logged"))
        lines = []
        for line in learned(world, sizes, seed):
            lines.append(line)
            console.print(f"{line.rows:,} rounds: {line.name}", style="dim", highlight=False)
        title = f"the logging policy's true value is {logged:.3f}"
        show_table(console, title, COLUMNS, [line.cells() for line in lines], left=(COLUMNS[1], COLUMNS[-1]))
        console.print(verdict(lines), highlight=False)
        picture = _picture(lines, logged, out / "figures", sizes)
        say(console, f"picture: {picture.with_suffix('.png')}")
    return _blocks(lines, logged, picture, sizes)


def world_of(sizes: Sizes, seed: int) -> SupervisedWorld:
    """Contexts around one random centre an action; playing that action earns 1."""
    rng = np.random.default_rng([seed, sizes.classes, sizes.dim])
    centres = rng.standard_normal((sizes.classes, sizes.dim))
    y = rng.integers(sizes.classes, size=sizes.population)
    X = centres[y] + sizes.noise * rng.standard_normal((sizes.population, sizes.dim))
    return SupervisedWorld.from_data(X, y, seed=seed)


def learned(world: SupervisedWorld, sizes: Sizes, seed: int) -> Iterator[Line]:
    """A line for every size of the log and every way to learn from it."""
    import torch

    if torch.get_num_threads() > 1:  # products this small do not gain by threads
        torch.set_num_threads(1)
    for rows in sizes.rows:
        # drawn anew from the same contexts, so that the world knows the truth exactly; the ids tell equal rounds apart
        log = world.log(sizes.eta0, seed + rows, rows=rows)
        log = replace(log, event_ids=np.arange(rows).astype(np.str_))
        for name in METHODS:
            policy, prior, on = _found(name, world, log, sizes, seed)
            made = certify(policy, on, prior=prior, delta=sizes.delta)
            gain = improvement(policy, on, prior=prior, delta=sizes.delta)
            yield Line(rows, name, _seeming(policy, on), made, gain, float(world.value(policy, "logged")))


def _found(
    name: str, world: SupervisedWorld, log: LoggedData, sizes: Sizes, seed: int
) -> tuple[GaussianPolicy, PolicyPrior, LoggedData]:
    """What one method learns, the prior that it started from, and the rows that it was learned from."""
    actions, before = world.logging(sizes.eta0).actions, None
    if name == SPLIT:
        before, log = log.split(PRIOR_SHARE, seed)
        actions = _learn(before, SoftmaxPolicy(actions), cLPI(), sizes, seed).actions
    start = GaussianPolicy(actions)
    objective = IPS() if name == PLAIN else PACBayes(ES("adaptive"), sizes.delta)
    return _learn(log, start, objective, sizes, seed), PolicyPrior.of(start, learned_from=before), log


def _learn(log: LoggedData, start: Start, objective: Objective, sizes: Sizes, seed: int) -> Start:
    from manyarms.learning import learn

    epochs = max(sizes.epochs, math.ceil(sizes.least_visits / len(log)))
    found = learn(
        log, start, objective, epochs=epochs, batch=BATCH, learning_rate=RATE, seed=seed, device="cpu", certified=False
    ).policy
    assert isinstance(found, type(start))
    return found


def _seeming(policy: GaussianPolicy, log: LoggedData) -> float:
    """What IPS says on the rows that the policy was learned from."""
    assert log.propensities is not None
    return float(np.mean(policy.probabilities_of(log.contexts, log.actions) / log.propensities * log.rewards))


def verdict(lines: list[Line]) -> str:
    """What came out at the largest log, in words."""
    last = {line.name: line for line in lines if line.rows == lines[-1].rows}
    plain, split = last[PLAIN], last[SPLIT]
    inside = sum(line.truth in line.certificate for line in lines)
    return (
        f"With {plain.rows:,} rounds, plain IPS promises {plain.seeming:.3f}, is worth {plain.truth:.3f}, and its certificate "
        f"says {plain.certificate.lower:.3f}; learned by the bound from a prior that a fifth of the rows gave: worth "
        f"{split.truth:.3f}, certified at {split.certificate.lower:.3f}. "
        f"{inside} of {len(lines)} certificates hold the truth."
    )


def _picture(lines: list[Line], logged: float, folder: Path, sizes: Sizes) -> Path:
    with drawing(1, 2) as (figure, axes):
        growing, last = axes
        for name in METHODS:
            own = [line for line in lines if line.name == name]
            x = [line.rows for line in own]
            colour = COLOURS[name]
            growing.plot(
                x, [line.certificate.lower for line in own], color=colour, marker="o", markersize=4, label=name
            )
            growing.plot(x, [line.truth for line in own], color=colour, linestyle=":", marker="x", markersize=4)
        growing.set_xscale("log")
        growing.set_xticks(sizes.rows, [f"{rows:,}" for rows in sizes.rows])
        growing.minorticks_off()
        growing.set_xlabel("rounds in the log")
        growing.set_ylabel("value")
        growing.set_title("full: certified; dotted: true")
        largest = [line for line in lines if line.rows == sizes.rows[-1]]
        for place, line in enumerate(reversed(largest)):
            colour, made = COLOURS[line.name], line.certificate
            last.plot(
                [made.lower, made.upper], [place, place], color=colour, linewidth=4, alpha=0.5, solid_capstyle="butt"
            )
            last.plot([line.truth], [place], "x", color="#1a1a1a", markersize=7, label="true value")
            last.plot([line.seeming], [place], "o", color=colour, markerfacecolor="white", markersize=6)
        last.set_yticks(range(len(largest)), [line.name.replace(", ", ",\n") for line in reversed(largest)])
        last.set_ylim(-0.6, len(largest) - 0.4)
        last.set_xlabel("value; circle: IPS on the learned rows")
        last.set_title(f"certificates, {sizes.rows[-1]:,} rounds")
        for axis, line_at in ((growing, growing.axhline), (last, last.axvline)):
            line_at(logged, color="#555555", linestyle="--", linewidth=1, label="logging policy")
            axis.set_axisbelow(True)
        growing.set_ylim(bottom=-0.02)
        title = f"{sizes.classes} actions, delta = {sizes.delta:g}"
        return finish(figure, axes, folder, "safe", title)


def _blocks(lines: list[Line], logged: float, picture: Path, sizes: Sizes) -> Section:
    about = (
        f"All policies are Gaussian, start at the logging policy (true value {logged:.3f}), and are certified on the rows "
        "that they were learned from. Plain IPS takes what its rows promise and goes far from its start, for which a "
        "certificate has to pay, however good the policy is: the log alone cannot tell. The bound goes as far as its rows "
        "allow, which is little with few of them. A prior learned from a fifth of the rows costs those rows, and gives the "
        "rest a start from which little has to be moved."
    )
    seen = (
        "Left: what is certified (full) and what is true (dotted), as the log grows. Right: at the largest log, each certificate "
        "as a line with the truth on it; an open circle is what IPS promised on the rows that were learned from."
    )
    blocks = [
        report.figure(report.svg_of(picture, "safe"), seen),
        report.table(COLUMNS, [line.cells() for line in lines], numbers=(COLUMNS[0], *COLUMNS[2:5])),
        report.paragraph(about),
        report.code(_code(sizes)),
    ]
    return Section("Is it safe to ship?", [verdict(lines)], blocks)


def _code(sizes: Sizes) -> str:
    return f"""\
import numpy as np
import manyarms as ma

rng = np.random.default_rng(0)
y = rng.integers({sizes.classes}, size={sizes.population:_})
X = rng.standard_normal(({sizes.classes}, {sizes.dim}))[y] + {sizes.noise:g} * rng.standard_normal((len(y), {sizes.dim}))
log = ma.worlds.SupervisedWorld.from_data(X, y).log(eta0={sizes.eta0:g}, seed=1)
start = ma.GaussianPolicy(log.logging.actions)
objective = ma.PACBayes(ma.estimators.ES(alpha="adaptive"), delta={sizes.delta:g})
result = ma.learn(log, start, objective, learning_rate={RATE:g}, seed=0)
print(result.certificate)
print(ma.certificates.improvement(result.policy, log, prior=ma.certificates.PolicyPrior.of(start)))
"""


__all__ = ["Line", "Sizes", "learned", "safe_to_ship", "verdict", "world_of"]
