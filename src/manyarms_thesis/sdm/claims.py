"""Claims about relative reward, V(learned policy) / V(best policy), by size of the log; paired run by run."""

from __future__ import annotations

from collections.abc import Sequence

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, measured
from manyarms_thesis.harness.results import Results

METHOD = "sDM"


def relative(results: Results, panel: str, agent: str) -> Array:
    """(runs, sizes) relative rewards; of a stochastic policy or of its most probable actions, whichever is better on average.

    The second gives the policies learned by gradient what an early end of training may have cost them.
    """
    own = results.values(panel, agent, "relative_reward").astype(float)
    mode = results.values(panel, agent, "mode_relative_reward").astype(float)
    return mode if mode.mean() > own.mean() else own


def sizes_of(results: Results, panel: str) -> list[int]:
    """The sizes of log in a panel."""
    return [int(n) for n in results.values(panel, results.agents(panel)[0], "n")[0]]


def lead(results: Results, panel: str, agent: str, baseline: str) -> dict[int, Measured]:
    """By how much an agent's relative reward exceeds a baseline's, for each size of log."""
    difference = relative(results, panel, agent) - relative(results, panel, baseline)
    return {n: measured(difference[:, i]) for i, n in enumerate(sizes_of(results, panel))}


def beats(results: Results, panel: str, agent: str, baselines: Sequence[str], statement: str, lines: str) -> Claim:
    """An agent is ahead of every baseline at every size of log; the figure is the least convincing difference."""
    leads = {
        f"{name} at n={n:,}": value for name in baselines for n, value in lead(results, panel, agent, name).items()
    }
    nearest, difference = least(leads)
    biggest = sizes_of(results, panel)[-1]
    shown = ", ".join(f"{name} {measured(relative(results, panel, name)[:, -1])}" for name in (agent, *baselines))
    detail = f"relative reward at n={biggest:,}: {shown}; the figure is the least convincing lead, over {nearest}"
    return claim(statement, lines, difference, panel=panel, detail=detail)


def shrinking(results: Results, panel: str, agent: str, baseline: str, statement: str, lines: str) -> Claim:
    """The lead over a baseline is larger on the smallest log than on the largest, run by run."""
    gap = relative(results, panel, agent) - relative(results, panel, baseline)
    leads = lead(results, panel, agent, baseline)
    shown = ", ".join(f"n={n:,}: {value}" for n, value in leads.items())
    return claim(
        statement, lines, measured(gap[:, 0] - gap[:, -1]), panel=panel, detail=f"lead over {baseline}: {shown}"
    )


__all__ = ["METHOD", "beats", "lead", "relative", "shrinking", "sizes_of"]
