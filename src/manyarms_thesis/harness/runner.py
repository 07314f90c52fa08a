"""Runs an experiment: all its work on all cores, resumable, the same for a seed whatever the number of workers."""

from __future__ import annotations

import json
import os
import platform
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
from manyarms.engine import cores, local
from manyarms.errors import ManyArmsError, MissingExtra
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import Experiment
from manyarms_thesis.harness.finished import Finished
from manyarms_thesis.harness.forecast import forecast
from manyarms_thesis.harness.pages import experiment_page
from manyarms_thesis.harness.progress import tracking
from manyarms_thesis.harness.results import Outcomes, Results
from manyarms_thesis.harness.spec import Item, items_of
from manyarms_thesis.harness.work import execute

FILES = ("results.parquet", "claims.json", "report.html")
FOLDERS = ("parts", "figures", "cache")


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
    console: Console | None = None,
) -> Outcome:
    """Run an experiment and write results.parquet, figures, claims.json and report.html into `folder`.

    Work that `folder/parts` already holds is not done again, unless `force` says so.
    """
    console = console or Console(stderr=True)
    folder = require_folder("folder", folder, *FILES, folders=FOLDERS)
    count = validate.count("workers", workers_wanted if workers_wanted is not None else cores())
    seed = validate.seed(seed)
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
        + f"; {rounds:,} rounds to run on {count} worker{'s' if count > 1 else ''}",
    )
    for text in experiment.warnings():
        console.print(f"NOTE: {text}", style="bold", markup=False, highlight=False, soft_wrap=True)
    with _cache_beside(folder):
        if pending:
            _work(experiment, scale, pending, len(cells), count, finished, console, outcomes)
        by_run = {
            (item.cell.panel, item.method, run): columns
            for item in items
            for run, columns in outcomes[item.key(__version__)].items()
        }
        results = Results(experiment.name, scale, cells, by_run)
        return _write(experiment, results, folder, seed, started, reused, count)


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
    count: int,
    finished: Finished,
    console: Console,
    outcomes: dict[str, Outcomes],
) -> None:
    done = 0
    try:
        with local(min(count, len(pending))) as engine:
            if scale == "paper":
                _say(console, "timing a few hundred rounds of everything for a forecast ...")
                _say(console, f"forecast: about {duration(forecast(engine, pending))} on {count} workers")
            with tracking(console, experiment.name, pending, cells) as tracker:
                for item, outcome in engine.map(execute, pending):
                    finished.write(item, outcome)
                    outcomes[item.key(__version__)] = outcome
                    done += 1
                    tracker.done(item)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted after {done} of {len(pending)} pieces of work, which are in {finished.folder}; "
            "run the same command again to go on from there"
        ) from None


def _write(
    experiment: Experiment, results: Results, folder: Path, seed: int, started: float, reused: int, count: int
) -> Outcome:
    results.write(folder / "results.parquet")
    claims = experiment.claims(results)
    write_text_atomically(
        folder / "claims.json",
        json.dumps({"claims": [claim.plain() for claim in claims]}, indent=2, ensure_ascii=False) + "\n",
    )
    figures = experiment.figures(results, folder / "figures")
    seconds = time.monotonic() - started
    facts = {
        "scale": results.scale,
        "seed": str(seed),
        "workers": str(count),
        "time": duration(seconds) + (f" ({reused} pieces of work came from an earlier run)" if reused else ""),
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": f"manyarms {__version__}, Python {platform.python_version()}, numpy {np.__version__}",
    }
    page = experiment_page(experiment, results, claims, figures, facts)
    write_text_atomically(folder / "report.html", page)
    return Outcome(folder, results, claims, seconds, reused)


def require_extras() -> None:
    """Refuse to start without what is needed at the end."""
    for package, purpose in (("pyarrow", "writing results as Parquet"), ("matplotlib", "drawing figures")):
        if util.find_spec(package) is None:
            raise MissingExtra(package, "experiments", purpose)


__all__ = ["Interrupted", "Outcome", "run"]
