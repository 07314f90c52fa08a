"""A part of an experiment at one of its scales: fewer runs, or only some of its panels.

    part_of(find("mets-grid"), "paper", runs=10, only={"K": ["20", "100"]})

Panels are chosen by what describes them (the columns of the results: K, d, data ..., the variant, or their names), so that each
that is left is a panel of the whole, with its world, methods and seeds, and a part of "paper" judges the thesis's statements at
the thesis's sizes. Some of the methods may be chosen as well: those that are left are what they are in the whole.
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
from manyarms_thesis.harness.spec import METHOD, VARIANT, Cell

RUNS = "runs"
PANEL, PRINTED = "panel", "printed"  # a world as the thesis prints it is no variant, and has no name


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
    """The panels whose columns have wanted values, with the methods that are wanted."""
    columns = {name: values for name, values in wanted.items() if name != METHOD}
    left = [cell for cell in cells if all(_columns(cell).get(name) in values for name, values in columns.items())]
    if METHOD not in wanted:
        return left
    few = [{name: call for name, call in cell.methods.items() if name in wanted[METHOD]} for cell in left]
    return [replace(cell, methods=methods) for cell, methods in zip(left, few, strict=True) if methods]


def _columns(cell: Cell) -> dict[str, Any]:
    """What tells a panel from others."""
    return {**cell.parameters, VARIANT: cell.variant or PRINTED, PANEL: cell.panel}


def _values(cells: Sequence[Cell], experiment: str, name: str) -> list[Any]:
    """The values that a column has among panels, in their order."""
    if name == METHOD:
        return list(dict.fromkeys(method for cell in cells for method in cell.methods))
    columns = {key: None for cell in cells for key in _columns(cell)} | {METHOD: None}
    if name not in columns:
        raise InvalidInput("only", repr(name), "one of " + ", ".join(columns))
    return list(dict.fromkeys(_columns(cell)[name] for cell in cells if name in _columns(cell)))


def _wanted(there: Sequence[Any], name: str, values: Sequence[str]) -> list[Any]:
    """The values of a column that are wanted, in its own order."""
    known = {_one_text(text.split(",")): value for value in there for text in _texts(value)}
    found, unknown, left = list[str](), list[str](), list(values)
    while left:  # a value with commas comes in pieces, as the command line has cut it
        longest = next((n for n in range(len(left), 0, -1) if _one_text(left[:n]) in known), None)
        if longest is None:
            unknown.append(left.pop(0))
        else:
            found.append(_one_text(left[:longest]))
            left = left[longest:]
    if unknown or not found:
        came = ", ".join(map(repr, unknown)) or "no value"
        raise InvalidInput("only", f"{came} for {name}", "some of " + ", ".join(map(str, there)))
    return list(dict.fromkeys(value for text, value in known.items() if text in found))


def _texts(value: Any) -> list[str]:
    """How a value may be written: 50.0 also as 50."""
    return [str(value), f"{value:g}"] if isinstance(value, float) else [str(value)]


def _one_text(pieces: Sequence[str]) -> str:
    return ",".join(piece.strip() for piece in pieces)


__all__ = ["PANEL", "part_of"]
