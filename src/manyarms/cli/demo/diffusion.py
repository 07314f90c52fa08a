"""The demonstration's second part: a diffusion prior pre-trained on item embeddings, then dTS beside LinTS."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress, TextColumn
from rich.table import Table

import manyarms as ma
from manyarms._base import html as report
from manyarms._base.typing import Array, Ints
from manyarms.errors import MissingExtra
from manyarms_thesis.harness.claims import measured
from manyarms_thesis.harness.figures import mean_and_error
from manyarms_thesis.harness.simulate import online_regret
from manyarms_thesis.harness.spec import seed_of


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


def diffusion_prior(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> list[str]:
    """Pre-train on a Swiss roll of item embeddings, then let dTS and LinTS choose among new items."""
    console.print(
        f"\nA prior learned from {sizes.embeddings:,} item embeddings that lie on a Swiss roll; then {sizes.actions} new items, "
        f"{sizes.rounds:,} rounds, {sizes.runs} runs.",
        highlight=False,
    )
    started = time.monotonic()
    roll = ma.worlds.SwissRoll(sizes.actions, seed=seed)
    try:
        trained = _train(console, roll.sample(sizes.embeddings, seed), sizes, seed)
    except MissingExtra as missing:
        console.print(f"left out: {missing}", style="yellow", highlight=False)
        return [report.heading("A prior from embeddings"), report.warning(f"Left out: {missing}")]
    curves: dict[str, list[Array]] = {}
    rounds: Ints = np.zeros(0, dtype=np.int64)
    for run in range(sizes.runs):
        for name in ("dTS, one chain per item", "dTS, one chain for all", "LinTS"):
            world = ma.worlds.SwissRoll(sizes.actions, seed=seed_of("roll", seed, run))
            agent_seed = seed_of("roll", seed, name, run)
            if name == "LinTS":
                agent = ma.LinTS(world.action_prior(), seed=agent_seed)
            else:
                agent = ma.dTS(trained.prior(sizes.actions, shared="all" in name), seed=agent_seed)
            done = online_regret(world, agent, sizes.rounds)
            curves.setdefault(name, []).append(done.regret)
            rounds = done.rounds
    regret = {name: np.stack(runs) for name, runs in curves.items()}
    rows = [(name, _plus_minus(values[:, -1])) for name, values in regret.items()]
    table = Table(
        title=f"{sizes.actions} items on a Swiss roll, {sizes.rounds:,} rounds, {sizes.runs} runs", title_justify="left"
    )
    table.add_column("agent")
    table.add_column("cumulative regret ± se", justify="right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"{time.monotonic() - started:.0f} s", style="dim", highlight=False)
    return _blocks(regret, rounds, rows, trained, sizes)


def _train(console: Console, embeddings: Array, sizes: Sizes, seed: int) -> ma.Pretrained:
    columns = (*Progress.get_default_columns(), TextColumn("{task.fields[loss]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("pre-training", total=None, loss="")

        def tell(step: int, steps: int, train: float, held_out: float) -> None:
            bar.update(task, completed=step, total=steps, loss=f"held-out loss {held_out:.3f}")

        trained = ma.pretrain(embeddings, sizes.depth, epochs=sizes.epochs, seed=seed, progress=tell)
    console.print(f"pre-trained {sizes.depth} steps in {trained.seconds:.0f} s", highlight=False)
    return trained


def _plus_minus(values: Array) -> str:
    figure = measured(values)
    return f"{figure.mean:,.0f} ± {figure.standard_error:,.0f}"


def _blocks(
    regret: dict[str, Array], rounds: Ints, rows: list[tuple[str, str]], trained: ma.Pretrained, sizes: Sizes
) -> list[str]:
    zero = np.zeros(1)
    series = []
    for name, values in regret.items():
        mean, error = mean_and_error(values)
        at, mean, error = (np.concatenate([zero, part]) for part in (rounds, mean, error))
        series.append(report.Series(name, at, mean, error))
    title = f"Cumulative regret with {sizes.actions} items on a Swiss roll"
    chart = report.line_chart(series, "round", "cumulative expected regret", title=title)
    code = f"""\
import manyarms as ma

world = ma.worlds.SwissRoll({sizes.actions}, seed=0)
trained = ma.pretrain(world.sample({sizes.embeddings:_}), depth={sizes.depth})
agent = ma.dTS(trained.prior(world.actions), seed=0)
for x in world.contexts({sizes.rounds}):
    a = agent.decide(x)
    agent.observe(x, a, world.reward(x, a))
"""
    return [
        report.heading("A prior learned from item embeddings"),
        report.paragraph(
            f"A diffusion model with {sizes.depth} steps learned the law of {sizes.embeddings:,} embeddings in "
            f"{trained.seconds:.0f} s. As a prior it knows where items can lie; LinTS knows their mean and covariance. "
            "One chain per item is what such a prior means; one chain for all is the thesis's model, which ties the "
            "items to one point of the roll."
        ),
        report.figure(chart, f"{title}; mean of {sizes.runs} runs, the bands are one standard error wide."),
        report.table(("agent", "cumulative regret ± se"), rows, numbers=("cumulative regret ± se",)),
        report.code(code),
    ]
