"""The demonstration's first part: Thompson sampling over a catalogue of 100,000 items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

import manyarms as ma
from manyarms._base import html as report
from manyarms._base.seeds import seed_of
from manyarms._base.typing import Array, Ints
from manyarms.agents.agent import Agent
from manyarms.cli.demo.parts import Section, least_regret, plus_minus, regret_figure, show_table, timed
from manyarms.engine import cores, local, tell

REPORT_EVERY = 100
COLUMNS = ("agent", "cumulative regret ± se", "ms per round", "memory")


@dataclass(frozen=True)
class Sizes:
    """How large this part is; the defaults end within a minute on two cores."""

    actions: int = 100_000
    effects: int = 5
    dim: int = 10
    rounds: int = 2_000
    runs: int = 3


DEFAULT = Sizes()
AGENTS: dict[str, Callable[[ma.worlds.MixedEffect, int, int], Agent]] = {
    "meTS": lambda world, rounds, seed: ma.meTS(world.prior(), seed=seed),
    "LinTS": lambda world, rounds, seed: ma.LinTS(world.action_prior(), seed=seed),
    "LinUCB": lambda world, rounds, seed: ma.LinUCB(
        world.action_prior(), horizon=rounds, context_norm=world.kappa_x**0.5, seed=seed
    ),
    "HierTS": lambda world, rounds, seed: ma.HierTS(world.hierarchical_prior(), seed=seed),
}
# the dear ones first, so that no worker is left alone with one of them at the end
STARTING_ORDER = ("LinUCB", "LinTS", "meTS", "HierTS")
NEXT = (
    "`manyarms reproduce --list` shows the experiments behind the methods; "
    "`manyarms reproduce mets-synthetic --scale quick` runs one and checks what the thesis states about it.",
    "Give `decide` only what may be shown now: `agent.decide(x, candidates=[3, 17, 4711])`, `exclude=`, or the best "
    "ten with `k=10`.",
    "`agent.save('folder')` and `ma.load('folder')`: the next decision after loading is the same, bit by bit.",
    "`manyarms learn LOG --out POLICY/` learns a policy from your own log; `manyarms evaluate POLICY/ ANOTHER-LOG` judges it.",
    "`manyarms learn LOG --pessimism ls --out POLICY/` learns one with a certificate: a lower end for its value.",
    "`agent.add_actions(...)`, `agent.retire(ids)`, `agent.reinstate(ids)` while it runs; clicks in place of numbers with "
    "`ma.meTS(prior, ma.Logistic())`.",
)


@dataclass(frozen=True)
class Job:
    """One run of one agent."""

    agent: str
    run: int
    seed: int
    sizes: Sizes


@dataclass(frozen=True)
class Finished(ma.worlds.OnlineRun):
    """What one run left; nbytes: the agent's memory."""

    nbytes: int


def large_catalogue(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> Section:
    """meTS against LinTS, LinUCB and HierTS over a catalogue of 100,000 items."""
    about = (
        f"A catalogue of {sizes.actions:,} items whose {sizes.dim} parameters mix {sizes.effects} shared effects; "
        f"{sizes.rounds:,} rounds, {sizes.runs} runs.",
        "Each agent sees a context, picks an item, and learns from its noisy reward alone.",
    )
    with timed(console, *about):
        finished = _compete(console, seed, sizes)
        regret = {agent: np.stack([one.regret for one in runs]) for agent, runs in finished.items()}
        rows = [
            (
                agent,
                plus_minus(regret[agent][:, -1]),
                f"{np.mean([one.milliseconds_a_round for one in runs]):.2f}",
                f"{max(one.nbytes for one in runs) / 1e6:,.1f} MB",
            )
            for agent, runs in finished.items()
        ]
        title = f"{sizes.actions:,} items, {sizes.rounds:,} rounds, {sizes.runs} runs"
        show_table(console, title, COLUMNS, rows)
    return _blocks(finished["meTS"][0].rounds, regret, rows, sizes)


def _compete(console: Console, seed: int, sizes: Sizes) -> dict[str, list[Finished]]:
    """The runs of every agent, on all cores."""
    from manyarms.cli._progress import Board, News

    jobs = [Job(agent, run, seed, sizes) for run in range(sizes.runs) for agent in STARTING_ORDER]
    done: dict[tuple[str, int], tuple[int, float]] = {}
    total = sizes.runs * sizes.rounds

    def hear(message: tuple[str, int, int, float]) -> None:
        agent, run, rounds, regret = message
        done[agent, run] = rounds, regret
        own = [value for (name, _), value in done.items() if name == agent]
        played, lost = sum(rounds for rounds, _ in own), sum(regret for _, regret in own)
        words = f"{played:,} of {total:,} rounds, regret per round {lost / played:.2f}"
        board.tell(News(agent, played, total, words))

    with Board(console, *AGENTS) as board, local(min(cores(), len(jobs)), hear) as engine:
        outcomes = {(job.agent, job.run): outcome for job, outcome in engine.map(act, jobs)}
    return {agent: [outcomes[agent, run] for run in range(sizes.runs)] for agent in AGENTS}


def act(job: Job) -> Finished:
    """One run in a worker process; tells how far it is."""
    sizes = job.sizes
    world = ma.worlds.MixedEffect(sizes.actions, sizes.effects, sizes.dim, seed=seed_of("demo", job.seed, job.run))
    agent = AGENTS[job.agent](world, sizes.rounds, seed_of("demo", job.seed, job.agent, job.run))

    def progress(rounds: int, regret: float) -> None:
        tell((job.agent, job.run, rounds, regret))

    done = ma.worlds.simulate(world, agent, sizes.rounds, progress=progress, chunk=REPORT_EVERY)
    return Finished(**vars(done), nbytes=int(agent.nbytes))


def _blocks(rounds: Ints, regret: dict[str, Array], rows: list[tuple[str, str, str, str]], sizes: Sizes) -> Section:
    title = f"Cumulative regret over {sizes.rounds:,} rounds with {sizes.actions:,} items"
    about = (
        f"Every item has {sizes.dim} unknown parameters, which mix {sizes.effects} shared effects with known weights and "
        "deviate from them a little. Regret is what the best item would have earned in expectation beyond what was shown: "
        "lower is better. meTS learns the effects from whatever was shown and so knows something about items that "
        "nobody has seen; LinTS and LinUCB learn every item alone (with the right spread); HierTS knows one shared "
        "mean only. All agents of a run met the same catalogue and the same contexts."
    )
    blocks = [
        regret_figure(rounds, regret, title),
        report.table(COLUMNS, rows, numbers=COLUMNS[1:]),
        report.paragraph(
            "Milliseconds per round are the agent's own (decide and observe, one thread); memory is the sum of its "
            "arrays."
        ),
        report.paragraph(about),
        report.heading("The same in ten lines of Python"),
        report.code(_code(sizes)),
        report.heading("What to try next"),
        report.bullets(NEXT),
    ]
    answer = least_regret(regret, f"Over {sizes.actions:,} items and {sizes.rounds:,} rounds")
    return Section(f"Learning what to show from a catalogue of {sizes.actions:,} items", [answer], blocks)


def _code(sizes: Sizes) -> str:
    return f"""\
import manyarms as ma

world = ma.worlds.MixedEffect(actions={sizes.actions:_}, effects={sizes.effects}, dim={sizes.dim}, seed=0)
agent = ma.meTS(world.prior(), seed=0)
regret = 0.0
for x in world.contexts({sizes.rounds:_}):
    a = agent.decide(x)
    agent.observe(x, a, world.reward(x, a))
    regret += world.regret(x, a)
print(regret)
"""


__all__ = ["Job", "Sizes", "act", "large_catalogue"]
