"""The demonstration's second part: a diffusion prior pre-trained on item embeddings, then dTS beside LinTS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, TextColumn

import manyarms as ma
from manyarms._base import html as report
from manyarms._base.seeds import seed_of
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.cli.demo.parts import MeanGap, Section, left_out, plus_minus, regret_figure, show_table, timed
from manyarms.errors import MissingExtra

COLUMNS = ("agent", "cumulative regret ± se", "below LinTS, run by run ± se")
DIFFUSION, GAUSSIAN = "dTS", "LinTS"


@dataclass(frozen=True)
class Sizes:
    """How large this part is; the defaults end within a minute on two cores."""

    embeddings: int = 2_000
    depth: int = 40
    epochs: int = 2_000
    actions: int = 100
    rounds: int = 1_000
    runs: int = 8


@dataclass(frozen=True)
class Case:
    """Who has a context, and how noisy rewards are."""

    words: str
    each: bool  # a context for each item, or one for all
    noise: float


@dataclass(frozen=True)
class Played:
    """What the agents lost in one case: checkpoints, and the regret of each there, (runs, checkpoints)."""

    case: Case
    rounds: Ints
    regret: dict[str, Array]

    @property
    def gain(self) -> MeanGap:
        """How much less than LinTS dTS lost, run by run."""
        return MeanGap.between(self.regret[GAUSSIAN][:, -1], self.regret[DIFFUSION][:, -1])

    def rows(self) -> list[tuple[str, str, str]]:
        """The lines of a table."""
        gain = f"{self.gain.mean:,.0f} ± {self.gain.error:,.0f}"
        return [
            (name, plus_minus(values[:, -1]), gain if name == DIFFUSION else "") for name, values in self.regret.items()
        ]

    def sentence(self) -> str:
        """Whether the prior's shape paid, as far as the runs can tell."""
        gain = self.gain
        lost, by = (plus_minus(self.regret[name][:, -1]) for name in (DIFFUSION, GAUSSIAN))
        found = {
            1: f"the diffusion prior gains {gain.mean:,.0f} ± {gain.error:,.0f}",
            0: f"the diffusion prior gains nothing that {len(self.regret[DIFFUSION])} runs could show "
            f"({gain.mean:,.0f} ± {gain.error:,.0f} is within two standard errors)",
            -1: f"the diffusion prior loses {-gain.mean:,.0f} ± {gain.error:,.0f}",
        }[gain.sign]
        return (
            f"With {self.case.words}, {found}: dTS has a regret of {lost}, and LinTS, whose prior has the same mean and "
            f"covariance, of {by}."
        )


DEFAULT = Sizes()
CASES = (
    Case("a context for each item and little noise (σ = 0.3)", each=True, noise=0.3),
    Case("one context for all items and much noise (σ = 1)", each=False, noise=1.0),
)


def diffusion_prior(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> Section:
    """Pre-train on a Swiss roll of item embeddings, then let dTS and LinTS choose among new items, in two cases."""
    about = (
        f"\nA prior learned from {sizes.embeddings:,} item embeddings that lie on a Swiss roll; then {sizes.actions} new items, "
        f"{sizes.rounds:,} rounds, {sizes.runs} runs. Does its shape pay?"
    )
    with timed(console, about):
        roll = ma.worlds.SwissRoll(sizes.actions, seed=seed)
        try:
            trained = _train(console, roll.sample(sizes.embeddings, seed), sizes, seed)
        except MissingExtra as missing:
            return left_out(console, "A prior from embeddings", missing)
        played = []
        for case in CASES:
            played.append(play(trained, case, sizes, seed))
            show_table(console, case.words, COLUMNS, played[-1].rows())
            console.print(played[-1].sentence(), highlight=False)
    return _section(played, trained, sizes)


def play(trained: ma.priors.Pretrained, case: Case, sizes: Sizes, seed: int) -> Played:
    """Every agent in the same worlds, with the same contexts."""
    curves: dict[str, list[Array]] = {}
    for run in range(sizes.runs):
        for name in (DIFFUSION, GAUSSIAN):
            world = ma.worlds.SwissRoll(sizes.actions, noise=case.noise, seed=seed_of("roll", seed, run))
            agent = _agent(name, trained, world, case, seed_of("roll", seed, name, run))
            done = ma.worlds.simulate(world, agent, sizes.rounds, action_contexts=case.each)
            curves.setdefault(name, []).append(done.regret)
    return Played(case, done.rounds, {name: np.stack(runs) for name, runs in curves.items()})


def _agent(name: str, trained: ma.priors.Pretrained, world: ma.worlds.SwissRoll, case: Case, seed: int) -> Agent:
    likelihood = ma.Linear(case.noise)
    if name == GAUSSIAN:
        return ma.LinTS(world.action_prior(), likelihood, seed=seed)
    return ma.dTS(trained.prior(world.actions), likelihood, seed=seed)


def _train(console: Console, embeddings: Array, sizes: Sizes, seed: int) -> ma.priors.Pretrained:
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("pre-training", total=None, loss="")

        def tell(step: int, steps: int, train: float, held_out: float) -> None:
            bar.update(task, completed=step, total=steps, loss=f"held-out loss {held_out:.3f}")

        trained = ma.pretrain(embeddings, sizes.depth, epochs=sizes.epochs, seed=seed, progress=tell)
    console.print(f"pre-trained {sizes.depth} steps in {trained.seconds:.0f} s", highlight=False)
    return trained


def _section(played: list[Played], trained: ma.priors.Pretrained, sizes: Sizes) -> Section:
    about = (
        f"A diffusion model with {sizes.depth} steps learned the law of {sizes.embeddings:,} embeddings in "
        f"{trained.seconds:.0f} s. As a prior it knows where items can lie; LinTS knows their mean and covariance. Where every "
        "item has a context of its own, knowing which places an item can have tells items apart. With one context for all items "
        "and much noise even the posterior under the true roll has more regret than LinTS (the manual's page on the methods "
        "has the figures). Both agents of a run met the same items and the same contexts."
    )
    blocks = []
    for one in played:
        title = f"Cumulative regret with {sizes.actions} items on a Swiss roll, {one.case.words}"
        blocks += [
            regret_figure(one.rounds, one.regret, title),
            report.table(COLUMNS, one.rows(), numbers=COLUMNS[1:]),
        ]
    blocks += [report.paragraph(about), report.code(_code(sizes))]
    return Section("A prior learned from item embeddings", [one.sentence() for one in played], blocks)


def _code(sizes: Sizes) -> str:
    return f"""\
import numpy as np
import manyarms as ma

world = ma.worlds.SwissRoll({sizes.actions}, noise={CASES[0].noise}, seed=0)
trained = ma.pretrain(world.sample({sizes.embeddings:_}), depth={sizes.depth})
agent = ma.dTS(trained.prior(world.actions), ma.Linear({CASES[0].noise}), seed=0)
rng = np.random.default_rng(0)
for _ in range({sizes.rounds:_}):
    Z = rng.uniform(-1, 1, (world.actions, 2))  # a context for each item
    a = agent.decide(action_contexts=Z)
    agent.observe(Z[a], a, world.reward(Z[a], a))
"""


__all__ = ["CASES", "Case", "Played", "Sizes", "diffusion_prior", "play"]
