"""Results that are kept with the project: of each experiment a record (claims, and how they came about) and a tidy summary.

    results/NAME.json   the command, seed, scale, sizes, versions, time and data; the setting in words; every claim
    results/NAME.csv    means and standard errors over runs: variant, panel, method, column, at, mean, standard_error, runs

They are small, differ line by line from release to release, and are what docs/reproduction.md is made of. A part of an experiment
(some of its panels, at larger sizes than all of them can be run at) is stored as NAME.part.json beside the whole; where both are
about the same, what the part says stands in the whole's place.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
PART = ".part"  # of a record's name, before its ending
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
    """A stored result; part: of some of its panels by themselves, whose claims and curves have taken the place of others.

    file: the name under which it is stored.
    """

    about: Mapping[str, Any]
    claims: list[Claim]
    curves: Curves
    part: Record | None = None
    file: str = ""

    @property
    def name(self) -> str:
        """Of the experiment."""
        return str(self.about["experiment"])

    def is_of_part(self, one: Claim) -> bool:
        """Whether a claim is of the part."""
        return self.part is not None and one in self.part.claims

    def file_of(self, one: Claim) -> str:
        """The name of the file that has a claim."""
        return self.part.file if self.part is not None and self.is_of_part(one) else self.file

    def is_full(self, claims: Sequence[Claim]) -> bool:
        """Whether all of some claims are about worlds of the thesis's sizes."""
        whole, part = (one is None or not one.about["smaller_than_the_thesis"] for one in (self, self.part))
        return all(part if self.is_of_part(one) else whole for one in claims)


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
    record, summary = (folder / name for name in names_of(experiment))
    write_text_atomically(record, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    write_text_atomically(summary, summary_of(experiment, results))
    return [record, summary]


def names_of(experiment: Experiment) -> tuple[str, str]:
    """The names of the files of its record and of its summary."""
    name = experiment.name + (PART if experiment.chosen else "")
    return f"{name}.json", f"{name}.csv"


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
    read = {path.stem: read_record(path) for path in sorted(Path(folder).glob("*.json"))}
    wholes = {name: one for name, one in read.items() if not name.endswith(PART)}
    parts = {name.removesuffix(PART): one for name, one in read.items() if name.endswith(PART)}
    alone = {name: one for name, one in parts.items() if name not in wholes}
    joint = {name: with_part(one, parts[name]) if name in parts else one for name, one in wholes.items()}
    return dict(sorted((joint | alone).items()))


def with_part(whole: Record, part: Record) -> Record:
    """A record in which claims and panels of the part stand in the place of the whole's own; new ones follow the statement's."""
    told = {_about(one): one for one in part.claims}
    claims = [told.pop(_about(one), one) for one in whole.claims]
    for one in told.values():
        same = [place for place, other in enumerate(claims) if _about(other)[:2] == _about(one)[:2]]
        claims.insert(same[-1] + 1 if same else len(claims), one)
    panels = {(variant, panel) for variant, panel, _, _ in part.curves}
    left = {key: points for key, points in whole.curves.items() if key[:2] not in panels}
    return replace(whole, claims=claims, curves={**left, **part.curves}, part=part)


def _about(one: Claim) -> tuple[str, bool, str]:
    """What a claim is about: the same of a whole and of a part."""
    return one.statement, bool(one.thesis_lines), one.panel


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
    return Record(about, claims, curves, file=path.name)


__all__ = [
    "Curves", "Point", "Record", "names_of", "read_record", "read_records", "store", "summary_of", "with_part",
]  # fmt: skip
