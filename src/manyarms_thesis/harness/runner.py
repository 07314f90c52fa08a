"""Runs an experiment: all its work on all cores or on a cluster, resumable, the same for a seed whatever works where."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import util
from pathlib import Path

import numpy as np
from rich.console import Console

from manyarms import __version__
from manyarms._base import validate
from manyarms._base.files import require_folder, write_text_atomically
from manyarms._base.text import duration
from manyarms.engine import IN_THIS_PROCESS, Engine, On, checked_on, cores, opened
from manyarms.errors import ManyArmsError, MissingExtra
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Experiment
from manyarms_thesis.harness.finished import Finished
from manyarms_thesis.harness.forecast import forecast
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.progress import tracking
from manyarms_thesis.harness.results import Outcomes, Results
from manyarms_thesis.harness.spec import Item, items_of, worlds_met
from manyarms_thesis.harness.store import names_of, store
from manyarms_thesis.harness.work import MADE_WITH, RUN_SECONDS, execute, versions_here, versions_of

FILES = ("results.parquet", "claims.json", "report.html")
FOLDERS = ("parts", "figures", "variants", "cache")


class Interrupted(ManyArmsError):
    """The user stopped an experiment; what was finished is stored."""

    exit_code = 130


@dataclass(frozen=True)
class Outcome:
    """What an experiment left behind."""

    folder: Path
    results: Results
    claims: list[Claim]
    seconds: float
    reused: int


def run(
    experiment: Experiment,
    scale: str,
    folder: Path | str,
    *,
    workers_wanted: int | None = None,
    seed: int = 0,
    force: bool = False,
    kept: Path | str | None = None,
    on: On = IN_THIS_PROCESS,
    console: Console | None = None,
) -> Outcome:
    """Run an experiment and write results.parquet, figures, claims.json and report.html into `folder`.

    Work that `folder/parts` already holds is not done again, unless `force` says so. kept: a folder for the record and the
    summary that the book of results is made of. on: where the work is done, "local" (worker processes of this machine), "ray",
    "ray://host:port", or an engine that is open.
    """
    console = console or Console(stderr=True)
    folder = require_folder("folder", folder, *FILES, folders=FOLDERS)
    count = validate.count("workers", workers_wanted if workers_wanted is not None else cores())
    on = checked_on(on)
    seed = validate.seed(seed)
    store_folder = None if kept is None else require_folder("kept", kept, *names_of(experiment))
    cells = experiment.cells(scale)
    require_extras()
    started = time.monotonic()
    finished = Finished(folder / "parts", __version__)
    items = items_of(experiment.name, cells, seed)
    outcomes: dict[str, Outcomes] = {}
    pending: list[Item] = []
    for item in items:
        stored = None if force else finished.read(item)
        if stored is None:
            pending.append(item)
        else:
            outcomes[item.key(__version__)] = stored
    reused = len(outcomes)
    rounds = sum(item.rounds for item in pending)
    _say(
        console,
        f"{experiment.name} ({scale}): {len(cells)} cells, {len(items)} pieces of work"
        + (f", {reused} already done" if reused else "")
        + f"; {rounds:,} rounds to run on {_place(on, count)}",
    )
    for text in experiment.warnings():
        console.print(f"NOTE: {text}", style="bold", markup=False, highlight=False, soft_wrap=True)
    with _cache_beside(folder):
        if pending:
            count = _work(experiment, scale, pending, len(cells), on, count, finished, console, outcomes)
        by_run = {
            (item.cell.panel, item.method, run): columns
            for item in items
            for run, columns in outcomes[item.key(__version__)].items()
        }
        met = worlds_met(experiment.name, cells, seed)
        results = Results(experiment.name, scale, cells, by_run, met)
        return _write(experiment, results, folder, seed, started, reused, count, store_folder)


def _place(on: On, count: int) -> str:
    """Where work is going to be done, before anything is opened."""
    if isinstance(on, Engine):
        return _workers(on.workers)
    return _workers(count) if on == IN_THIS_PROCESS else on


def _workers(count: int) -> str:
    return f"{count} worker{'s' if count > 1 else ''}"


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _cache_beside(folder: Path) -> Iterator[None]:
    """What is prepared once for many runs (pre-trained priors) is stored beside the results, unless the user named a place."""
    if os.environ.get("MANYARMS_CACHE"):
        yield
        return
    os.environ["MANYARMS_CACHE"] = str((folder / "cache").resolve())
    try:
        yield
    finally:
        os.environ.pop("MANYARMS_CACHE", None)


def _work(
    experiment: Experiment,
    scale: str,
    pending: list[Item],
    cells: int,
    on: On,
    count: int,
    finished: Finished,
    console: Console,
    outcomes: dict[str, Outcomes],
) -> int:
    """All that is pending, on the engine that `on` names; how many workers it has."""
    done = 0
    try:
        with opened(on, workers=min(count, len(pending))) as engine:
            if scale == "paper":
                _say(console, "timing a few hundred rounds of everything for a forecast ...")
                _say(console, f"forecast: about {duration(forecast(engine, pending))} on {_workers(engine.workers)}")
            with tracking(console, experiment.name, pending, cells) as tracker:
                for item, outcome in engine.map(execute, pending):
                    finished.write(item, outcome)
                    outcomes[item.key(__version__)] = outcome
                    done += 1
                    tracker.done(item)
            return engine.workers
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after {done} of {len(pending)} pieces of work, which are in {finished.folder}; "
            "run the same command again to go on from there"
        ) from None


def _write(
    experiment: Experiment,
    results: Results,
    folder: Path,
    seed: int,
    started: float,
    reused: int,
    count: int,
    kept: Path | None,
) -> Outcome:
    results.write(folder / "results.parquet")
    claims = experiment.judge(results)
    write_text_atomically(
        folder / "claims.json",
        json.dumps({"claims": [claim.plain() for claim in claims]}, indent=2, ensure_ascii=False) + "\n",
    )
    figures = experiment.draw(results, folder)
    seconds = time.monotonic() - started
    work = processor_seconds(results)
    facts = {
        "command": " ".join(
            filter(None, (f"manyarms reproduce {experiment.name} --scale {results.scale}", experiment.part))
        )
        + (f" --seed {seed}" if seed else ""),
        "scale": results.scale,
        "seed": seed,
        "processor_seconds": None if work is None else round(work),
        "finished": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": {"manyarms": __version__, **made_with(results)},
    }
    shown = {
        **{name: str(value) for name, value in facts.items() if name in ("command", "finished")},
        "seed": str(seed),
        "time": duration(seconds)
        + f" on {_workers(count)}"
        + (f" ({reused} pieces came from an earlier run)" if reused else ""),
        "work": "not known" if work is None else f"{duration(work)} of one core",
        "versions": ", ".join(f"{name} {version}" for name, version in facts["versions"].items()),  # type: ignore[attr-defined]
    }
    page = experiment_page(experiment, results, claims, figures, shown)
    write_text_atomically(folder / "report.html", page)
    if kept is not None:
        store(kept, experiment, results, claims, facts)
    return Outcome(folder, results, claims, seconds, reused)


def processor_seconds(results: Results) -> float | None:
    """What all runs took together, whenever they were done; None where some do not say."""
    taken = [run[RUN_SECONDS] for run in results.runs.values() if RUN_SECONDS in run]
    return float(np.sum(taken)) if len(taken) == len(results.runs) else None


def made_with(results: Results) -> dict[str, str]:
    """The versions that all runs were made with; of one that does not say, those of this process."""
    here = json.dumps(versions_here())
    return versions_of(str(run.get(MADE_WITH, here)) for run in results.runs.values())


def require_extras() -> None:
    """Refuse to start without what is needed at the end."""
    for package, purpose in (("pyarrow", "writing results as Parquet"), ("matplotlib", "drawing figures")):
        if util.find_spec(package) is None:
            raise MissingExtra(package, "experiments", purpose)


__all__ = ["Interrupted", "Outcome", "run"]
