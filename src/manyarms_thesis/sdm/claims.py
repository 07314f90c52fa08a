"""Claims about relative reward, V(learned policy) / V(best policy), by size of the log; paired run by run."""

from __future__ import annotations

from collections.abc import Sequence

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.results import Results

METHOD = "sDM"


def relative(results: Results, panel: str, method: str) -> Array:
    """(runs, sizes) relative rewards; of a stochastic policy or of its most probable actions, whichever is better on average.

    The second gives the policies learned by gradient what an early end of training may have cost them.
    """
    own = results.values(panel, method, "relative_reward")
    mode = results.values(panel, method, "mode_relative_reward")
    return mode if mode.mean() > own.mean() else own


def sizes_of(results: Results, panel: str) -> list[int]:
    """The sizes of log in a panel."""
    return [int(n) for n in results.values(panel, results.methods(panel)[0], "n")[0]]


def by_size(results: Results, panel: str, values: Array) -> dict[float, Measured]:
    """Values (runs, sizes), measured for each size of log."""
    return {n: measured(column) for n, column in zip(sizes_of(results, panel), values.T, strict=True)}


def lead(results: Results, panel: str, method: str, baseline: str) -> dict[float, Measured]:
    """By how much a method's relative reward exceeds a baseline's, for each size of log."""
    return by_size(results, panel, relative(results, panel, method) - relative(results, panel, baseline))


def beats(results: Results, panel: str, method: str, baselines: Sequence[str], statement: str, lines: str) -> Claim:
    """A method is ahead of every baseline at every size of log; the figure is the least convincing difference."""
    leads = {
        f"{name} at n={n:,}": value for name in baselines for n, value in lead(results, panel, method, name).items()
    }
    nearest, difference = least(leads)
    biggest = sizes_of(results, panel)[-1]
    shown = listed({name: measured(relative(results, panel, name)[:, -1]) for name in (method, *baselines)})
    detail = f"relative reward at n={biggest:,}: {shown}; the figure is the least convincing lead, over {nearest}"
    return claim(statement, lines, difference, panel=panel, detail=detail, parts=list(leads.values()))


def shrinking(results: Results, panel: str, method: str, baselines: Sequence[str], statement: str, lines: str) -> Claim:
    """The lead over every baseline is larger on the smallest log than on the largest, run by run."""
    gaps = {name: relative(results, panel, method) - relative(results, panel, name) for name in baselines}
    shrunk = {name: measured(gap[:, 0] - gap[:, -1]) for name, gap in gaps.items()}
    nearest, difference = least(shrunk)
    shown = "; ".join(
        f"{name} {listed({f'n={n:,}': value for n, value in by_size(results, panel, gap).items()})}"
        for name, gap in gaps.items()
    )
    detail = f"the lead on the smallest log less that on the largest, least convincing: {nearest}. Leads over {shown}"
    return claim(statement, lines, difference, panel=panel, detail=detail, parts=list(shrunk.values()))


__all__ = ["METHOD", "beats", "by_size", "lead", "relative", "shrinking", "sizes_of"]
