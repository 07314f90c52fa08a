"""Claims about the value of learned policies; learners of one panel share their logs, and are compared run by run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.pwll.builders import MADE_UP

OF_MODES = "mode_value"
OF_MODES_WORDS = " (value of the most probable actions)"


def final(results: Results, panel: str, agent: str, column: str = "value") -> Array:
    """The value of an agent's last policy for each run."""
    return results.final(panel, agent, column)


def lead(results: Results, panel: str, agent: str, other: str, column: str = "value") -> Measured:
    """By how much an agent's final value is above another's, run by run."""
    return measured(results.final(panel, agent, column) - results.final(panel, other, column))


def ahead(
    results: Results,
    panels: Sequence[str],
    agent: str,
    others: Sequence[str],
    statement: str,
    lines: str,
    *,
    column: str = "value",
    panel: str = "",
) -> Claim:
    """An agent is above every other in every panel; the figure is the least convincing lead."""
    leads = {f"{other} in {name}": lead(results, name, agent, other, column) for name in panels for other in others}
    nearest, difference = least(leads)
    won = sum(value.above_zero for value in leads.values())
    lost = sum(Measured(-value.mean, value.standard_error).above_zero for value in leads.values())
    shown = "; ".join(
        f"{name}: " + ", ".join(f"{who} {measured(results.final(name, who, column))}" for who in (agent, *others))
        for name in panels[:12]
    )
    more = f" and {len(panels) - 12} more panels" if len(panels) > 12 else ""
    of = " of the most probable actions" if column == OF_MODES else ""
    detail = (
        f"{won} of {len(leads)} comparisons hold by two standard errors, {lost} hold the other way round; the figure is the "
        f"least convincing lead, over {nearest}. Values{of}: {shown}{more}"
    )
    named = statement + (OF_MODES_WORDS if of else "")
    return claim(named, lines, difference, panel=panel, detail=detail)


def both(
    results: Results,
    panels: Sequence[str],
    agent: str,
    others: Sequence[str],
    statement: str,
    lines: str,
    *,
    panel: str = "",
) -> list[Claim]:
    """The claim for the policies as they are, and for their most probable actions."""
    return [
        ahead(results, panels, agent, others, statement, lines, column=column, panel=panel)
        for column in ("value", OF_MODES)
    ]


def over(results: Results, panels: Sequence[str], agent: str, column: str = "value") -> Array:
    """(runs, panels): the final values of an agent."""
    return np.stack([results.final(panel, agent, column) for panel in panels], axis=1)


def spread(results: Results, panels: Sequence[str], agent: str, column: str = "value") -> Array:
    """(runs,): how much of the best panel's value is lost in the worst, 1 - min / max."""
    values = over(results, panels, agent, column)
    return np.asarray(1 - values.min(axis=1) / np.maximum(values.max(axis=1), 1e-12))


def steadier(
    results: Results,
    panels: Sequence[str],
    firm: Sequence[str],
    shaky: Sequence[str],
    statement: str,
    lines: str,
    *,
    panel: str = "",
    column: str = "value",
) -> Claim:
    """The agents `firm` lose less between their best and worst panel than `shaky` do, on average over each group."""
    lost = {agent: spread(results, panels, agent, column) for agent in (*firm, *shaky)}
    difference = np.mean([lost[a] for a in shaky], axis=0) - np.mean([lost[a] for a in firm], axis=0)
    shown = ", ".join(f"{agent} {measured(values)}" for agent, values in lost.items())
    detail = (
        f"share of the best configuration's value lost in the worst: {shown}; the figure is the difference of means. "
        "What never leaves its start counts as steady"
    )
    named = statement + (OF_MODES_WORDS if column == OF_MODES else "")
    return claim(named, lines, measured(difference), panel=panel, detail=detail)


def by_data(results: Results) -> Mapping[str, list[str]]:
    """The panels of every data set."""
    names = dict.fromkeys(results.parameter(panel, "data") for panel in results.panels)
    return {data: results.where(data=data) for data in names}


def flagged(results: Results, claims: list[Claim]) -> list[Claim]:
    """Statements about made-up data say so."""
    if all(results.parameter(panel, "data") != MADE_UP for panel in results.panels):
        return claims
    return [
        replace(made, statement=f"[made-up interactions] {made.statement}")
        if MADE_UP in made.panel or not made.panel
        else made
        for made in claims
    ]


__all__ = [
    "OF_MODES",
    "OF_MODES_WORDS",
    "ahead",
    "both",
    "by_data",
    "final",
    "flagged",
    "lead",
    "over",
    "spread",
    "steadier",
]
