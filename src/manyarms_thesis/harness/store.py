"""Results that are kept with the project: of each experiment a record (claims, and how they came about) and a tidy summary.

    results/NAME.json   the command, seed, scale, sizes, versions, time and data; the setting in words; every claim
    results/NAME.csv    means and standard errors over runs: variant, panel, method, column, at, mean, standard_error, runs

They are small, differ line by line from release to release, and are what docs/reproduction.md is made of.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.files import write_text_atomically
from manyarms._base.plotting import mean_and_error
from manyarms._base.typing import Array
from manyarms.errors import StorageError
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.experiments import ONLINE_NUMBERS, Experiment
from manyarms_thesis.harness.results import Results

MOST_POINTS = 20  # of a curve
ALONG = ("round", "epoch", "step")  # what curves are drawn against
HEADER = ("variant", "panel", "method", "column", "at", "mean", "standard_error", "runs")


@dataclass(frozen=True)
class Point:
    """A mean over runs, at a place of a curve or (at is None) in the end."""

    at: float | None
    mean: float
    standard_error: float
    runs: int


Curves = Mapping[tuple[str, str, str, str], list[Point]]
"""Points by variant, panel, method and column."""


@dataclass(frozen=True)
class Record:
    """A stored result."""

    about: Mapping[str, Any]
    claims: list[Claim]
    curves: Curves

    @property
    def name(self) -> str:
        """Of the experiment."""
        return str(self.about["experiment"])


def store(
    folder: Path, experiment: Experiment, results: Results, claims: list[Claim], facts: Mapping[str, Any]
) -> list[Path]:
    """Write the record and the summary of an experiment; facts: what the runner knows of the run."""
    about = {
        "experiment": experiment.name,
        "title": experiment.title,
        **facts,
        "sizes": dict(experiment.sizes(results.scale)),
        "smaller_than_the_thesis": {name: list(pair) for name, pair in experiment.smaller(results.scale).items()},
        "fewer_than_the_thesis": {name: list(pair) for name, pair in experiment.fewer(results.scale).items()},
        "notes": experiment.warnings(),
        "setting": experiment.setting_at(results.scale),
        "claims": [one.plain() for one in claims],
    }
    record, summary = (folder / f"{experiment.name}{ending}" for ending in (".json", ".csv"))
    write_text_atomically(record, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    write_text_atomically(summary, summary_of(experiment, results))
    return [record, summary]


def summary_of(experiment: Experiment, results: Results) -> str:
    """The tidy summary as CSV: the columns of the page's table in the end, and the first of them over the rounds."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    wanted = list(experiment.numbers or ONLINE_NUMBERS)
    for panel, cell in results.cells.items():
        bare = panel.removesuffix(f", {cell.variant}") if cell.variant else panel
        for method in cell.methods:
            for place, column in enumerate(wanted):
                for at, mean, error in _points(results, panel, method, column, curve=place == 0):
                    writer.writerow((cell.variant, bare, method, column, at, _short(mean), _short(error), cell.runs))
    return text.getvalue()


def _points(results: Results, panel: str, method: str, column: str, *, curve: bool) -> list[tuple[str, float, float]]:
    columns = results.runs[panel, method, 0]
    if column not in columns:
        return []
    values = results.values(panel, method, column)
    along = next((name for name in ALONG if name in columns), None)
    if curve and along is not None and values.ndim == 2:
        x = results.values(panel, method, along)[0]
        if len(x) == values.shape[1]:
            places = np.unique(np.linspace(0, len(x) - 1, min(MOST_POINTS, len(x))).round().astype(np.int64))
            mean, error = mean_and_error(values)
            return [(f"{x[i]:g}", float(mean[i]), _error(values, float(error[i]))) for i in places]
    final = results.final(panel, method, column)
    mean, error = mean_and_error(final[:, None])
    return [("", float(mean[0]), _error(final, float(error[0])))]


def _error(values: Array, error: float) -> float:
    return error if len(values) > 1 else math.nan


def _short(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def read_records(folder: Path) -> dict[str, Record]:
    """The stored results of a folder by the names of their experiments."""
    return {path.stem: read_record(path) for path in sorted(Path(folder).glob("*.json"))}


def read_record(path: Path) -> Record:
    """One stored result, with its summary beside it."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        claims = [Claim.of_plain(one) for one in about.pop("claims")]
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        curves: dict[tuple[str, str, str, str], list[Point]] = {}
        for row in rows:
            at, error = (float(row[name]) if row[name] else None for name in ("at", "standard_error"))
            mean = float(row["mean"]) if row["mean"] else math.nan
            point = Point(at, mean, math.nan if error is None else error, int(row["runs"]))
            curves.setdefault((row["variant"], row["panel"], row["method"], row["column"]), []).append(point)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: no stored result: {error}") from error
    return Record(about, claims, curves)


__all__ = ["Curves", "Point", "Record", "read_record", "read_records", "store", "summary_of"]
