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
from manyarms.cli.demo.parts import Section, least_regret, left_out, plus_minus, regret_figure, show_table, timed
from manyarms.errors import MissingExtra

COLUMNS = ("agent", "cumulative regret ± se")


@dataclass(frozen=True)
class Sizes:
    """How large this part is; the defaults end within a minute on two cores."""

    embeddings: int = 2_000
    depth: int = 20
    epochs: int = 2_000
    actions: int = 100
    rounds: int = 500
    runs: int = 4


DEFAULT = Sizes()


def diffusion_prior(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> Section:
    """Pre-train on a Swiss roll of item embeddings, then let dTS and LinTS choose among new items."""
    about = (
        f"\nA prior learned from {sizes.embeddings:,} item embeddings that lie on a Swiss roll; then {sizes.actions} new items, "
        f"{sizes.rounds:,} rounds, {sizes.runs} runs."
    )
    with timed(console, about):
        roll = ma.worlds.SwissRoll(sizes.actions, seed=seed)
        try:
            trained = _train(console, roll.sample(sizes.embeddings, seed), sizes, seed)
        except MissingExtra as missing:
            return left_out(console, "A prior from embeddings", missing)
        rounds, regret = _compare(trained, sizes, seed)
        rows = [(name, plus_minus(values[:, -1])) for name, values in regret.items()]
        title = f"{sizes.actions} items on a Swiss roll, {sizes.rounds:,} rounds, {sizes.runs} runs"
        show_table(console, title, COLUMNS, rows)
    return _blocks(regret, rounds, rows, trained, sizes)


def _compare(trained: ma.priors.Pretrained, sizes: Sizes, seed: int) -> tuple[Ints, dict[str, Array]]:
    """Checkpoints, and the regret of every agent there, (runs, checkpoints)."""
    curves: dict[str, list[Array]] = {}
    for run in range(sizes.runs):
        for name in ("dTS, one chain per item", "dTS, one chain for all", "LinTS"):
            world = ma.worlds.SwissRoll(sizes.actions, seed=seed_of("roll", seed, run))
            agent_seed = seed_of("roll", seed, name, run)
            if name == "LinTS":
                agent = ma.LinTS(world.action_prior(), seed=agent_seed)
            else:
                agent = ma.dTS(trained.prior(sizes.actions, shared="all" in name), seed=agent_seed)
            done = ma.worlds.simulate(world, agent, sizes.rounds)
            curves.setdefault(name, []).append(done.regret)
    return done.rounds, {name: np.stack(runs) for name, runs in curves.items()}


def _train(console: Console, embeddings: Array, sizes: Sizes, seed: int) -> ma.priors.Pretrained:
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("pre-training", total=None, loss="")

        def tell(step: int, steps: int, train: float, held_out: float) -> None:
            bar.update(task, completed=step, total=steps, loss=f"held-out loss {held_out:.3f}")

        trained = ma.pretrain(embeddings, sizes.depth, epochs=sizes.epochs, seed=seed, progress=tell)
    console.print(f"pre-trained {sizes.depth} steps in {trained.seconds:.0f} s", highlight=False)
    return trained


def _blocks(
    regret: dict[str, Array], rounds: Ints, rows: list[tuple[str, str]], trained: ma.priors.Pretrained, sizes: Sizes
) -> Section:
    title = f"Cumulative regret with {sizes.actions} items on a Swiss roll"
    code = f"""\
import manyarms as ma

world = ma.worlds.SwissRoll({sizes.actions}, seed=0)
trained = ma.pretrain(world.sample({sizes.embeddings:_}), depth={sizes.depth})
agent = ma.dTS(trained.prior(world.actions), seed=0)
for x in world.contexts({sizes.rounds}):
    a = agent.decide(x)
    agent.observe(x, a, world.reward(x, a))
"""
    about = (
        f"A diffusion model with {sizes.depth} steps learned the law of {sizes.embeddings:,} embeddings in "
        f"{trained.seconds:.0f} s. As a prior it knows where items can lie; LinTS knows their mean and covariance. "
        "One chain per item is what such a prior means; one chain for all is the thesis's model, which ties the "
        "items to one point of the roll."
    )
    blocks = [
        regret_figure(rounds, regret, title),
        report.table(COLUMNS, rows, numbers=COLUMNS[1:]),
        report.paragraph(about),
        report.code(code),
    ]
    answer = least_regret(
        regret, f"With a prior learned from {sizes.embeddings:,} embeddings, for {sizes.actions} new items"
    )
    return Section("A prior learned from item embeddings", answer, blocks)


__all__ = ["Sizes", "diffusion_prior"]
