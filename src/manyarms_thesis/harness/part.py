"""A part of an experiment at one of its scales: fewer runs, or only some of its panels.

    part_of(find("mets-grid"), "paper", runs=10, only={"K": ["20", "100"]})

Panels are chosen by what describes them (the columns of the results: K, d, data ...), so that each that is left is a panel of the
whole, with its world, methods and seeds, and a part of "paper" judges the thesis's statements at the thesis's sizes.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from manyarms._base import validate
from manyarms._base.text import in_words
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.experiments import TOLD, Experiment, Sizes
from manyarms_thesis.harness.spec import Cell

RUNS = "runs"


def part_of(
    experiment: Experiment, scale: str, *, runs: int | None = None, only: Mapping[str, Sequence[str]] | None = None
) -> Experiment:
    """The experiment with fewer runs at a scale, and only the panels with some of the values of a column, given as text."""
    sizes = dict(experiment.sizes(scale))
    words = [experiment.part] if experiment.part else []
    if runs is not None and (fewer := _fewer_runs(experiment.name, sizes, validate.count("runs", runs))):
        sizes |= fewer
        words.append(f"--runs {runs}")
    chosen = dict(experiment.chosen)
    cells = experiment.build(sizes)
    for name, values in (only or {}).items():
        there = _values(cells, experiment.name, name)
        wanted = _wanted(there, name, values)
        chosen[name] = wanted, chosen.get(name, (there, there))[1]
        cells = _with(cells, {name: wanted})
        words.append(f"--only {shlex.quote(name + '=' + ','.join(map(str, wanted)))}")
    if only and TOLD in sizes:
        told = ", ".join(f"{name} {in_words(wanted)}" for name, (wanted, _) in chosen.items())
        sizes[TOLD] = f"{sizes[TOLD]} (here in part: {told})"
    return replace(
        experiment,
        scales={**experiment.scales, scale: sizes},
        build=lambda sizes: _with(experiment.build(sizes), {name: wanted for name, (wanted, _) in chosen.items()}),
        full=experiment.full_sizes,
        part=" ".join(words),
        chosen=chosen,
    )


def _fewer_runs(experiment: str, sizes: Sizes, runs: int) -> dict[str, int]:
    """The numbers of runs that become fewer, so that none is above `runs`."""
    own = {name: size for name, size in sizes.items() if name == RUNS or name.endswith(f"_{RUNS}")}
    if RUNS not in own:
        raise InvalidInput("runs", str(runs), f"none: {experiment} sets its runs by panel")
    if runs > own[RUNS]:
        raise InvalidInput("runs", str(runs), f"at most {own[RUNS]}, the runs of this scale")
    return {name: runs for name, size in own.items() if size > runs}


def _with(cells: Sequence[Cell], wanted: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """The panels whose columns have wanted values."""
    return [cell for cell in cells if all(cell.parameters.get(name) in values for name, values in wanted.items())]


def _values(cells: Sequence[Cell], experiment: str, name: str) -> list[Any]:
    """The values that a column has among panels, in their order."""
    columns = {key: None for cell in cells for key in cell.parameters}
    if name not in columns:
        expected = "one of " + ", ".join(columns) if columns else f"none: {experiment} has nothing to choose among"
        raise InvalidInput("only", repr(name), expected)
    return list(dict.fromkeys(cell.parameters[name] for cell in cells if name in cell.parameters))


def _wanted(there: Sequence[Any], name: str, values: Sequence[str]) -> list[Any]:
    """The values of a column that are wanted, in its own order."""
    unknown = [value for value in values if value not in map(str, there)]
    if unknown or not values:
        came = ", ".join(map(repr, unknown)) or "no value"
        raise InvalidInput("only", f"{came} for {name}", "some of " + ", ".join(map(str, there)))
    return [value for value in there if str(value) in values]


__all__ = ["part_of"]
