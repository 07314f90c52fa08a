"""The demonstration: the package's main jobs on embedded defaults, each within a minute on two cores.

A part shows one job on the console and returns blocks for the report; `PARTS` is the list of them.
"""

from __future__ import annotations

import multiprocessing
import platform
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from manyarms._base import html as report
from manyarms._base.files import write_text_atomically
from manyarms._base.typing import Array, Ints
from manyarms.cli.demo.diffusion import diffusion_prior
from manyarms.cli.demo.learning import offline_learning
from manyarms.cli.demo.safe import safe_to_ship
from manyarms_thesis.harness.claims import Measured, measured
from manyarms_thesis.harness.figures import mean_and_error
from manyarms_thesis.harness.pool import Pool, WorkerDied, cores, workers
from manyarms_thesis.harness.runner import library_version
from manyarms_thesis.harness.simulate import online_regret
from manyarms_thesis.harness.spec import seed_of
from manyarms_thesis.mets.builders import agent_call, mixed_effect_world

REPORT_EVERY = 100
AGENTS = {name: agent_call(name) for name in ("meTS", "LinTS", "LinUCB", "HierTS")}
# the dear ones first, so that no worker is left alone with one of them at the end
STARTING_ORDER = ("LinUCB", "LinTS", "meTS", "HierTS")


@dataclass(frozen=True)
class Sizes:
    """How large the demonstration is; the defaults end within a minute on two cores."""

    actions: int = 100_000
    effects: int = 5
    dim: int = 10
    rounds: int = 2_000
    runs: int = 3


DEFAULT = Sizes()
NEXT = (
    "`manyarms reproduce --list` shows the experiments behind the methods; "
    "`manyarms reproduce mets-synthetic --scale quick` runs one and checks what the thesis states about it.",
    "Give `decide` only what may be shown now: `agent.decide(x, candidates=[3, 17, 4711])`, `exclude=`, or the best "
    "ten with `k=10`.",
    "`agent.save('folder')` and `ma.load('folder')`: the next decision after loading is the same, bit by bit.",
    "`manyarms learn LOG --out POLICY/` learns a policy from your own log; `manyarms evaluate POLICY/ ANOTHER-LOG` judges it.",
    "`manyarms learn LOG --pessimism ls --out POLICY/` learns one with a certificate: a lower end for its value.",
    "`agent.add_actions(...)` and `agent.retire(ids)` while it runs; clicks in place of numbers with "
    "`ma.meTS(prior, ma.Logistic())`.",
)


@dataclass(frozen=True)
class Part:
    """One job of the demonstration: shows itself on the console and returns blocks of the report.

    show: called with the console, the seed, and the folder for pictures.
    """

    title: str
    show: Callable[[Console, int, Path], list[str]]


def run(out: Path | str, *, seed: int = 0, console: Console | None = None) -> Path:
    """Run all parts; the path of the report."""
    console = console or Console()
    started = time.monotonic()
    blocks: list[str] = []
    for part in PARTS:
        blocks += part.show(console, seed, Path(out))
    facts = {
        "seed": str(seed),
        "time": f"{time.monotonic() - started:.0f} s on {cores()} cores",
        "versions": f"manyarms {library_version()}, Python {platform.python_version()}, numpy {np.__version__}",
    }
    blocks += [report.heading("How this was made"), report.facts(facts)]
    path = Path(out) / "report.html"
    lead = "What one run of manyarms demo measured on this machine."
    write_text_atomically(path, report.page("manyarms: a demonstration", lead, *blocks))
    console.print(f"report: {path}", highlight=False, soft_wrap=True)
    return path


# Thompson sampling over a large catalogue ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One run of one agent."""

    agent: str
    run: int
    seed: int
    sizes: Sizes


@dataclass(frozen=True)
class Finished:
    """What one run left."""

    rounds: Ints
    regret: Array
    milliseconds_a_round: float
    nbytes: int


@dataclass(frozen=True)
class Line:
    """An agent's line of the closing table."""

    agent: str
    rounds: Ints
    regret: Array
    milliseconds_a_round: float
    nbytes: int

    @property
    def final(self) -> Measured:
        return measured(self.regret[:, -1])


def large_catalogue(console: Console, seed: int, out: Path, sizes: Sizes = DEFAULT) -> list[str]:
    """meTS against LinTS, LinUCB and HierTS over a catalogue of 100,000 items."""
    console.print(
        f"A catalogue of {sizes.actions:,} items whose {sizes.dim} parameters mix {sizes.effects} shared effects; "
        f"{sizes.rounds:,} rounds, {sizes.runs} runs.\nEach agent sees a context, picks an item, and learns from its "
        "noisy reward alone.",
        highlight=False,
    )
    started = time.monotonic()
    lines = _compete(console, seed, sizes)
    console.print(_closing_table(lines, sizes))
    console.print(f"{time.monotonic() - started:.0f} s", style="dim", highlight=False)
    return _blocks(lines, sizes)


def _compete(console: Console, seed: int, sizes: Sizes) -> list[Line]:
    jobs = [Job(agent, run, seed, sizes) for run in range(sizes.runs) for agent in STARTING_ORDER]
    news: Any = multiprocessing.get_context("spawn").SimpleQueue()
    with workers(min(cores(), len(jobs)), _listen, news) as pool:
        board = _Board(console, sizes.runs * sizes.rounds)
        done = _follow(pool, jobs, news, board)
    return [_line(agent, [done[agent, run] for run in range(sizes.runs)]) for agent in AGENTS]


def _follow(pool: Pool, jobs: list[Job], news: Any, board: _Board) -> dict[tuple[str, int], Finished]:
    futures: dict[Future[Finished], Job] = {pool.submit(act, job): job for job in jobs}
    try:
        with board:
            while True:
                state = wait(futures, timeout=0.1, return_when=FIRST_EXCEPTION)
                while not news.empty():
                    board.hear(*news.get())
                if not state.not_done or any(future.exception() for future in state.done):
                    break
        return {(job.agent, job.run): future.result() for future, job in futures.items()}
    except BrokenProcessPool as error:
        raise WorkerDied("a worker process ended without an answer (often: not enough memory)") from error


_news: Any = None


def _listen(news: Any) -> None:
    global _news
    _news = news


def act(job: Job) -> Finished:
    """One run in a worker process; tells how far it is."""
    sizes, world_seed = job.sizes, seed_of("demo", job.seed, job.run)
    world = mixed_effect_world(seed=world_seed, actions=sizes.actions, effects=sizes.effects, dim=sizes.dim)
    agent_seed = seed_of("demo", job.seed, job.agent, job.run)
    agent = AGENTS[job.agent](world=world, rounds=sizes.rounds, seed=agent_seed)

    def tell(rounds: int, regret: float) -> None:
        if _news is not None:
            _news.put((job.agent, job.run, rounds, regret))

    done = online_regret(world, agent, sizes.rounds, progress=tell, chunk=REPORT_EVERY)
    return Finished(done.rounds, done.regret, done.milliseconds_a_round, int(agent.nbytes))


def _line(agent: str, finished: list[Finished]) -> Line:
    return Line(
        agent,
        finished[0].rounds,
        np.stack([one.regret for one in finished]),
        float(np.mean([one.milliseconds_a_round for one in finished])),
        max(one.nbytes for one in finished),
    )


class _Board:
    """The live display: how far each agent is and what it has cost so far; plain lines outside a terminal."""

    def __init__(self, console: Console, rounds: int) -> None:
        self._console, self._rounds = console, rounds
        self._state: dict[tuple[str, int], tuple[int, float]] = {}
        self._live: Live | None = None
        self._next = 0.0

    def __enter__(self) -> _Board:
        if self._console.is_terminal:
            self._live = Live(self._table(), console=self._console, refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*exception)

    def hear(self, agent: str, run: int, rounds: int, regret: float) -> None:
        self._state[agent, run] = (rounds, regret)
        if self._live is not None:
            self._live.update(self._table())
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + 5.0
            parts = [f"{name} {self._done(name):,}/{self._rounds:,}" for name in AGENTS]
            self._console.print("rounds done: " + ", ".join(parts), highlight=False, soft_wrap=True)

    def _done(self, agent: str) -> int:
        return sum(rounds for (name, _), (rounds, _) in self._state.items() if name == agent)

    def _table(self) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for column in ("agent", "rounds", "", "regret a round so far"):
            table.add_column(column, justify="right" if column.startswith("regret") else "left", min_width=6)
        for agent in AGENTS:
            total = sum(regret for (name, _), (_, regret) in self._state.items() if name == agent)
            done = self._done(agent)
            bar = ProgressBar(total=self._rounds, completed=done, width=32)
            table.add_row(agent, bar, f"{done:,}/{self._rounds:,}", f"{total / done:.2f}" if done else "–")
        return table


def _cells(line: Line) -> tuple[str, str, str, str]:
    regret = f"{line.final.mean:,.0f} ± {line.final.standard_error:,.0f}"
    return line.agent, regret, f"{line.milliseconds_a_round:.2f}", f"{line.nbytes / 1e6:,.1f} MB"


COLUMNS = ("agent", "cumulative regret ± se", "ms a round", "memory")


def _closing_table(lines: list[Line], sizes: Sizes) -> Table:
    table = Table(title=f"{sizes.actions:,} items, {sizes.rounds:,} rounds, {sizes.runs} runs", title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "agent" else "right")
    for line in lines:
        table.add_row(*_cells(line))
    return table


def _blocks(lines: list[Line], sizes: Sizes) -> list[str]:
    series = []
    for line in lines:
        mean, error = mean_and_error(line.regret)
        start = np.zeros(1)
        series.append(
            report.Series(
                line.agent,
                np.concatenate([start, line.rounds]),
                np.concatenate([start, mean]),
                np.concatenate([start, error]),
            )
        )
    title = f"Cumulative regret over {sizes.rounds:,} rounds with {sizes.actions:,} items"
    chart = report.line_chart(series, "round", "cumulative expected regret", title=title)
    return [
        report.heading(f"Learning what to show from a catalogue of {sizes.actions:,} items"),
        report.paragraph(
            f"Every item has {sizes.dim} unknown parameters, which mix {sizes.effects} shared effects with known weights and "
            "deviate from them a little. Regret is what the best item would have earned in expectation beyond what was shown: "
            "lower is better. meTS learns the effects from whatever was shown and so knows something about items that "
            "nobody has seen; LinTS and LinUCB learn every item alone (with the right spread); HierTS knows one shared "
            "mean only. All agents of a run met the same catalogue and the same contexts."
        ),
        report.figure(chart, f"{title}; mean of {sizes.runs} runs, the bands are one standard error wide."),
        report.table(COLUMNS, [_cells(line) for line in lines], numbers=COLUMNS[1:]),
        report.paragraph(
            "Milliseconds a round are the agent's own (decide and observe, one thread); memory is the sum of its "
            "arrays."
        ),
        report.heading("The same in ten lines of Python"),
        report.code(_code(sizes)),
        report.heading("What to try next"),
        report.bullets(NEXT),
    ]


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


PARTS: tuple[Part, ...] = (
    Part("a large catalogue", large_catalogue),
    Part("a prior from embeddings", diffusion_prior),
    Part("a policy from a log", offline_learning),
    Part("is it safe to ship", safe_to_ship),
)

__all__ = ["PARTS", "Part", "Sizes", "act", "large_catalogue", "run"]
