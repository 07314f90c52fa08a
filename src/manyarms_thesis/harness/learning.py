"""Experiments in which learners are compared by the value of the policy that they learn from a log: task, cells and claims.

A problem is a log with what is known about it; a learner is a function of the problem, a number of optimiser steps and a
seed, and returns columns, `value` and `mode_value` (of the policy's most probable actions) among them. A cell's `rounds` are
the optimiser's steps, so that a forecast from a few of them knows what the others cost.

Columns that end in "_by_group" have the final value in fixed groups of test users: errors of differences then contain what
test users add (`harness/two_way.py`). A `collapsed` run lost everything, however steady it is at that, and what collapsed in
every run is ahead of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from manyarms._base.text import in_words
from manyarms._base.typing import Array, Bools, Ints
from manyarms.errors import InvalidInput
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.data import MADE_UP, flagged
from manyarms_thesis.harness.results import BY_GROUP, Results
from manyarms_thesis.harness.spec import Call, Cell, Task, solve
from manyarms_thesis.harness.two_way import two_way, with_groups_left_out

MODE = "mode_value"
COLLAPSED = {"value": "collapsed", MODE: "mode_collapsed"}
Place = tuple[str, str]
"""A panel and a method of it."""
# what the two ways to count a policy are called, everywhere
IN_WORDS = {"value": "value of drawn actions", MODE: "value of the most probable action"}


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


def final_by_group(results: Results, panel: str, method: str, column: str) -> Array | None:
    """(runs, groups): the final value in every group of test users, where runs kept it."""
    cell = results.cells[panel]
    if f"{column}{BY_GROUP}" not in results.runs[panel, method, 0]:
        return None
    return np.stack(
        [np.asarray(results.runs[panel, method, run][f"{column}{BY_GROUP}"], dtype=float) for run in range(cell.runs)]
    )


def between(
    results: Results, one: Place, other: Place | None, column: str = "value", *, standing: bool = False
) -> Measured:
    """The final value of a (panel, method), less that of another unless it is None, with runs and test users in its error.

    Methods of a panel share their logs, panels of a data set share their test users: differences are taken run by run and
    group by group, so that what is common drops out. standing: what collapsed in every run is ahead of nothing, its lead counts
    as none.
    """
    runs = results.cells[one[0]].runs
    return between_choices(results, [one] * runs, None if other is None else [other] * runs, column, standing=standing)


def between_choices(
    results: Results,
    ones: Sequence[Place],
    others: Sequence[Place] | None,
    column: str = "value",
    *,
    standing: bool = False,
) -> Measured:
    """`between` where every run has a (panel, method) of its own, such as the one that `best_elsewhere` chose for it."""
    sides = [ones] if others is None else [ones, others]
    values = [np.array([results.final(*place, column)[run] for run, place in enumerate(places)]) for places in sides]
    difference = values[0] - values[1] if len(values) > 1 else values[0]
    kept = np.ones(len(difference))
    if standing:
        fallen = np.array([fell(results, *place, column).all() for place in ones])
        kept[fallen & (difference > 0)] = 0.0
    difference = kept * difference
    known = [groups for places in sides if (groups := _groups_of(results, places, column)) is not None]
    if len(known) < len(sides) or len({groups.shape for groups in known}) != 1:
        return measured(difference)
    table = known[0] - known[1] if len(known) > 1 else known[0]
    return two_way(kept[:, None] * table, float(difference.mean()))


def fell(results: Results, panel: str, method: str, column: str = "value") -> Bools:
    """(runs,): whether a run never left its start or ended below the logging policy, where that is known."""
    name = COLLAPSED.get(column, "collapsed")
    if name not in results.runs[panel, method, 0]:
        return np.zeros(results.cells[panel].runs, dtype=bool)
    return np.asarray(results.final(panel, method, name) > 0)


def _groups_of(results: Results, places: Sequence[Place], column: str) -> Array | None:
    """(runs, groups): the final values in groups of test users, of the (panel, method) of every run."""
    found = {place: final_by_group(results, *place, column) for place in dict.fromkeys(places)}
    known = {place: groups for place, groups in found.items() if groups is not None}
    if len(known) < len(found) or len({groups.shape[1] for groups in known.values()}) != 1:
        return None
    return np.stack([known[place][run] for run, place in enumerate(places)])


def best_elsewhere(table: Array) -> Ints:
    """(runs,): for each run the column of `table` (runs, columns) that is best on average over the other runs.

    The column with a run's own largest value would be above any other by construction, whatever they are.
    """
    return np.asarray((table.sum(axis=0) - table).argmax(axis=1))


def lead(
    results: Results, panel: str, method: str, other: str, column: str = "value", *, standing: bool = False
) -> Measured:
    """By how much a method's final value is above another's, run by run."""
    return between(results, (panel, method), (panel, other), column, standing=standing)


def finals(results: Results, panel: str, methods: Sequence[str], column: str = "value") -> dict[str, Measured]:
    """The final values of some methods of a panel."""
    return {method: between(results, (panel, method), None, column) for method in methods}


def has_modes(results: Results, panel: str) -> bool:
    """Whether the runs know what the most probable actions are worth, so that claims come for both ways to count."""
    return MODE in results.runs[panel, results.methods(panel)[0], 0]


def counted(column: str) -> str:
    """What a statement that is made for both ways to count says at its end."""
    return f" ({IN_WORDS[column]})"


def of_modes(column: str) -> str:
    """What a statement about the values of most probable actions says at its end."""
    return counted(column) if column == MODE else ""


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

    def collapsed(self, method: str, column: str = "value") -> Bools:
        """(runs, panels): whether a run has collapsed."""
        return np.stack([fell(self.results, panel, method, column) for panel in self.panels], axis=1)

    def spread(self, method: str, column: str = "value") -> Array:
        """(runs,): how much of the best panel's value is lost in the worst, 1 - min / max; what collapsed is worth nothing."""
        values = np.where(self.collapsed(method, column), 0.0, self.over(method, column))
        return lost(values)

    def claim(
        self, statement: str, lines: str, difference: Measured, detail: str, parts: Sequence[Measured] = ()
    ) -> Claim:
        """A claim about these panels."""
        return claim(statement, lines, difference, panel=self.data, detail=detail, parts=parts)

    def ahead(self, method: str, others: Sequence[str], statement: str, lines: str, column: str = "value") -> Claim:
        """A method is above every other in every panel; the figure is the least convincing lead."""
        results, panels = self.results, self.panels
        leads = {
            f"{other} in {name}": lead(results, name, method, other, column, standing=True)
            for name in panels
            for other in others
        }
        nearest, difference = least(leads)
        won = sum(value.above_zero for value in leads.values())
        gone = sum(value.below_zero for value in leads.values())
        shown = "; ".join(f"{name}: {listed(finals(results, name, (method, *others), column))}" for name in panels[:12])
        more = f" and {len(panels) - 12} more panels" if len(panels) > 12 else ""
        both = has_modes(results, panels[0])
        fallen = [name for name in panels if fell(results, name, method, column).all()]
        nothing = (
            f"; {method} collapsed in all runs of {in_words(fallen)}, and is ahead of nothing there" if fallen else ""
        )
        detail = (
            f"{won} of {len(leads)} comparisons hold, {gone} hold the other way round; the figure is the least convincing lead, "
            f"over {nearest}{nothing}. {IN_WORDS[column].capitalize() if both else 'Values'}: {shown}{more}"
        )
        end = counted(column) if both else of_modes(column)
        made = self.claim(statement + end, lines, difference, detail, list(leads.values()))
        return replace(made, of_each=True)

    def ahead_both(self, method: str, others: Sequence[str], statement: str, lines: str) -> list[Claim]:
        """The claim for the most probable actions of the policies, and for the policies as they are."""
        return [self.ahead(method, others, statement, lines, column) for column in (MODE, "value")]

    def steadier(
        self, robust: Sequence[str], sensitive: Sequence[str], statement: str, lines: str, column: str = "value"
    ) -> Claim:
        """The methods `robust` lose less between their best and worst panel than `sensitive` do, on average over each group."""
        spreads = {method: self.spread(method, column) for method in (*robust, *sensitive)}
        difference = np.mean([spreads[a] for a in sensitive], axis=0) - np.mean([spreads[a] for a in robust], axis=0)
        shown = listed({method: measured(values) for method, values in spreads.items()})
        gone = {method: int(self.collapsed(method, column).sum()) for method in (*robust, *sensitive)}
        all_runs = self.collapsed(robust[0], column).size
        fallen = listed({method: number for method, number in gone.items() if number}) or "none"
        detail = (
            f"share of the best configuration's value lost in the worst: {shown}; the figure is the difference of means. A "
            "run that never leaves its start or ends below the logging policy has collapsed and lost everything (1); "
            f"collapsed, of {all_runs} runs in all configurations: {fallen}"
        )
        end = counted(column) if has_modes(self.results, self.panels[0]) else of_modes(column)
        return self.claim(statement + end, lines, self._spread_error(robust, sensitive, column, difference), detail)

    def steadier_both(self, robust: Sequence[str], sensitive: Sequence[str], statement: str, lines: str) -> list[Claim]:
        """The claim for the most probable actions of the policies, and for the policies as they are."""
        return [self.steadier(robust, sensitive, statement, lines, column) for column in (MODE, "value")]

    def _spread_error(
        self, robust: Sequence[str], sensitive: Sequence[str], column: str, difference: Array
    ) -> Measured:
        """The mean difference of spreads over runs, with test users in its error, too.

        A spread is no mean over users: what they add is found by leaving out one group after the other (the jackknife).
        """
        by_runs = measured(difference)
        tables = {}
        for method in (*robust, *sensitive):
            found = [final_by_group(self.results, panel, method, column) for panel in self.panels]
            if any(one is None for one in found):
                return by_runs
            stacked = np.stack([one for one in found if one is not None], axis=1)  # (runs, panels, groups)
            tables[method] = np.where(self.collapsed(method, column)[:, :, None], 0.0, stacked)

        def without(group: int) -> float:
            kept = np.arange(tables[robust[0]].shape[2]) != group
            of = {method: float(lost(table[:, :, kept].mean(axis=2)).mean()) for method, table in tables.items()}
            return float(np.mean([of[a] for a in sensitive]) - np.mean([of[a] for a in robust]))

        return with_groups_left_out(by_runs, [without(group) for group in range(tables[robust[0]].shape[2])])


def lost(values: Array) -> Array:
    """(runs,): what is lost of the best of values (runs, panels) in the worst, 1 where the best is nothing."""
    best = values.max(axis=1)
    return np.where(best > 0, 1 - values.min(axis=1) / np.maximum(best, 1e-300), 1.0)


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
    "COLLAPSED", "IN_WORDS", "MODE", "Compared", "Place", "best_elsewhere", "between", "between_choices", "by_data", "counted",
    "fell", "final_by_group", "finals", "flag_data", "lead", "learning_cell", "lost", "of_modes", "on_every_data", "one_thread",
    "rows_for",
]  # fmt: skip
