"""A part of an experiment at one of its scales: fewer runs, or some of the sizes that are lists, in the same worlds.

    part_of(find("mets-grid"), "paper", runs=10, only={"K": ["20", "100"]})

Every run that is left is the very run of the whole experiment: what a run meets depends on its number and its panel alone. The
worlds are the scale's, so that a part of "paper" judges the thesis's statements at the thesis's sizes, with wider errors.
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

RUNS = "runs"


def part_of(
    experiment: Experiment, scale: str, *, runs: int | None = None, only: Mapping[str, Sequence[str]] | None = None
) -> Experiment:
    """The experiment with fewer runs at a scale, and only some of the values of some sizes, which are given as text."""
    sizes = experiment.sizes(scale)
    chosen = {name: _chosen(experiment.name, sizes, name, values) for name, values in (only or {}).items()}
    words = [f"--only {shlex.quote(name + '=' + ','.join(map(str, values)))}" for name, values in chosen.items()]
    fewer: dict[str, Any] = {}
    if runs is not None:
        fewer = _fewer_runs(experiment.name, sizes, validate.count("runs", runs))
        words.insert(0, f"--runs {runs}")
    made = {**sizes, **chosen, **fewer}
    if chosen and TOLD in made:
        told = ", ".join(f"{name} {in_words(values)}" for name, values in chosen.items())
        made[TOLD] = f"{made[TOLD]} (here in part: {told})"
    return replace(
        experiment, scales={**experiment.scales, scale: made}, full=experiment.full_sizes, part=" ".join(words)
    )


def _fewer_runs(experiment: str, sizes: Sizes, runs: int) -> dict[str, int]:
    """All numbers of runs, none of them above `runs`."""
    own = {name: size for name, size in sizes.items() if name == RUNS or name.endswith(f"_{RUNS}")}
    if RUNS not in own:
        raise InvalidInput("runs", str(runs), f"none: {experiment} sets its runs by panel")
    if runs > own[RUNS]:
        raise InvalidInput("runs", str(runs), f"at most {own[RUNS]}, the runs of this scale")
    return {name: min(size, runs) for name, size in own.items()}


def _chosen(experiment: str, sizes: Sizes, name: str, values: Sequence[str]) -> list[Any]:
    """The values of a size that are wanted, in their own order."""
    listed = {key: size for key, size in sizes.items() if isinstance(size, list) and size and _plain(size)}
    if name not in listed:
        expected = "one of " + ", ".join(listed) if listed else f"none: {experiment} has no sizes to choose among"
        raise InvalidInput("only", repr(name), expected)
    there = {str(value): value for value in listed[name]}
    unknown = [value for value in values if value not in there]
    if unknown or not values:
        came = ", ".join(map(repr, unknown)) or "no value"
        raise InvalidInput("only", f"{came} for {name}", "some of " + ", ".join(there))
    return [value for text, value in there.items() if text in values]


def _plain(values: Sequence[Any]) -> bool:
    return all(isinstance(value, (int, float, str)) for value in values)


__all__ = ["part_of"]
