"""Experiments in which learners are compared by the value of the policy that they learn from a log: task, cells and claims.

A problem is a log with what is known about it; a learner is a function of the problem, a number of optimiser steps and a
seed, and returns columns, `value` and `mode_value` (of the policy's most probable actions) among them. A cell's `rounds` are
the optimiser's steps, so that a forecast from a few of them knows what the others cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.data import MADE_UP, flagged
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Task, solve

MODE = "mode_value"


def rows_for(steps: int, epochs: int, batch: int) -> int:
    """The rows of a log with which these epochs in batches take a number of steps."""
    return max(1, steps // epochs) * batch


def one_thread() -> None:
    """A worker process is one of many: torch gets a single thread, unless a GPU does the work."""
    import torch

    if torch.get_num_threads() > 1 and not torch.cuda.is_available():
        torch.set_num_threads(1)


def learning_cell(
    panel: str,
    parameters: Mapping[str, Any],
    problem: Call,
    rows: int,
    methods: Mapping[str, Call],
    runs: int,
    task: Task = solve,
) -> Cell:
    """A panel in which all learners take the same number of steps over a log of `rows` rows."""
    steps = {call.parameters["epochs"] * -(-rows // call.parameters["batch"]) for call in methods.values()}
    if len(steps) != 1:
        raise InvalidInput("methods", f"{sorted(steps)} steps", "the same epochs and batch for all learners of a panel")
    return Cell(panel, parameters, problem, methods, steps.pop(), runs, task)


# ---- claims: learners of one panel share their logs, and are compared run by run ---------------------------------------


def lead(results: Results, panel: str, method: str, other: str, column: str = "value") -> Measured:
    """By how much a method's final value is above another's, run by run."""
    return measured(results.final(panel, method, column) - results.final(panel, other, column))


def finals(results: Results, panel: str, methods: Sequence[str], column: str = "value") -> dict[str, Measured]:
    """The final values of some methods of a panel."""
    return {method: measured(results.final(panel, method, column)) for method in methods}


def of_modes(column: str) -> str:
    """What a statement about the values of most probable actions says at its end."""
    return " (value of the most probable actions)" if column == MODE else ""


@dataclass(frozen=True)
class Compared:
    """Some panels whose learners are compared; `data` is what claims call them."""

    results: Results
    panels: Sequence[str]
    data: str = ""

    def where(self, **parameters: Any) -> Compared:
        """Those of the panels whose parameters have these values."""
        those = self.results.where(**parameters)
        return replace(self, panels=[panel for panel in self.panels if panel in those])

    def over(self, method: str, column: str = "value") -> Array:
        """(runs, panels): the final values of a method."""
        return np.stack([self.results.final(panel, method, column) for panel in self.panels], axis=1)

    def level(self, *methods: str, column: str = "value") -> Array:
        """(runs,): the mean final value over the panels and some methods."""
        return np.asarray(np.mean([self.over(method, column).mean(axis=1) for method in methods], axis=0))

    def spread(self, method: str, column: str = "value") -> Array:
        """(runs,): how much of the best panel's value is lost in the worst, 1 - min / max."""
        values = self.over(method, column)
        return np.asarray(1 - values.min(axis=1) / np.maximum(values.max(axis=1), 1e-12))

    def claim(self, statement: str, lines: str, difference: Measured, detail: str) -> Claim:
        """A claim about these panels."""
        return claim(statement, lines, difference, panel=self.data, detail=detail)

    def ahead(self, method: str, others: Sequence[str], statement: str, lines: str, column: str = "value") -> Claim:
        """A method is above every other in every panel; the figure is the least convincing lead."""
        results, panels = self.results, self.panels
        leads = {
            f"{other} in {name}": lead(results, name, method, other, column) for name in panels for other in others
        }
        nearest, difference = least(leads)
        won = sum(value.above_zero for value in leads.values())
        lost = sum(Measured(-value.mean, value.standard_error).above_zero for value in leads.values())
        shown = "; ".join(f"{name}: {listed(finals(results, name, (method, *others), column))}" for name in panels[:12])
        more = f" and {len(panels) - 12} more panels" if len(panels) > 12 else ""
        of = " of the most probable actions" if column == MODE else ""
        detail = (
            f"{won} of {len(leads)} comparisons hold by two standard errors, {lost} hold the other way round; the figure is the "
            f"least convincing lead, over {nearest}. Values{of}: {shown}{more}"
        )
        return self.claim(statement + of_modes(column), lines, difference, detail)

    def ahead_both(self, method: str, others: Sequence[str], statement: str, lines: str) -> list[Claim]:
        """The claim for the policies as they are, and for their most probable actions."""
        return [self.ahead(method, others, statement, lines, column) for column in ("value", MODE)]

    def steadier(
        self, robust: Sequence[str], sensitive: Sequence[str], statement: str, lines: str, column: str = "value"
    ) -> Claim:
        """The methods `robust` lose less between their best and worst panel than `sensitive` do, on average over each group."""
        lost = {method: self.spread(method, column) for method in (*robust, *sensitive)}
        difference = np.mean([lost[a] for a in sensitive], axis=0) - np.mean([lost[a] for a in robust], axis=0)
        shown = listed({method: measured(values) for method, values in lost.items()})
        detail = (
            f"share of the best configuration's value lost in the worst: {shown}; the figure is the difference of means. "
            "What never leaves its start counts as steady"
        )
        return self.claim(statement + of_modes(column), lines, measured(difference), detail)


def by_data(results: Results) -> dict[str, list[str]]:
    """The panels of every data set."""
    names = dict.fromkeys(results.parameter(panel, "data") for panel in results.panels)
    return {data: results.where(data=data) for data in names}


def flag_data(results: Results, claims: Iterable[Claim]) -> list[Claim]:
    """Statements about made-up data, or about all data with made-up ones among them, say so."""
    return flagged(results, claims, "made-up data", lambda made: MADE_UP in made.panel or not made.panel)


def on_every_data(judge: Callable[[Compared], Iterable[Claim]]) -> Callable[[Results], list[Claim]]:
    """What a function claims of the panels of one data set, for every data set; made-up ones are named as such."""

    def claims(results: Results) -> list[Claim]:
        sets = [Compared(results, panels, data) for data, panels in by_data(results).items()]
        return flag_data(results, chain.from_iterable(map(judge, sets)))

    return claims


__all__ = [
    "MODE", "Compared", "by_data", "finals", "flag_data", "lead", "learning_cell", "of_modes", "on_every_data", "one_thread",
    "rows_for",
]  # fmt: skip
