"""Claims about a regret bound beside the regret that was measured, for any agent that has one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from manyarms_thesis.harness.claims import Claim, Measured, claim, least, logarithm, measured, slope
from manyarms_thesis.harness.figures import Look, draw_series, final_series, online_looks
from manyarms_thesis.harness.results import Results


def below_bound(results: Results, method: str, column: str, statement: str, lines: str) -> Claim:
    """The regret is below a bound (a column of the results) in every panel; the figure is the least convincing room."""
    panels = results.panels
    room = {panel: measured(results.final(panel, method, column) - results.final(panel, method)) for panel in panels}
    ratios = [float(results.final(p, method, column).mean() / results.final(p, method).mean()) for p in panels]
    panel, nearest = least(room)
    return claim(
        statement, lines, nearest, panel=panel,
        detail=f"bound less regret, where it is least convincing; the bound is {min(ratios):.1f} to {max(ratios):.1f} times the "
        "measured regret",
    )  # fmt: skip


def sublinear(results: Results, method: str, statement: str, lines: str) -> Claim:
    """Regret grows more slowly than T: the exponent of T between T/2 and T is below 1, in every panel."""
    exponents = {}
    for panel in results.panels:
        values = results.values(panel, method, "regret")
        middle, end = values[:, values.shape[1] // 2 - 1], values[:, -1]
        error = measured(end / end.mean() - middle / middle.mean()).standard_error / math.log(2)
        exponents[panel] = Measured(1 - math.log2(end.mean() / middle.mean()), error)
    panel, room = least(exponents)
    shown = [1 - value.mean for value in exponents.values()]
    return claim(
        statement, lines, room, panel=panel,
        detail=f"one less the exponent of T between T/2 and T; the exponents are {min(shown):.2f} to {max(shown):.2f}, and 0.5 "
        "is the bound's",
    )  # fmt: skip


def effective_share(results: Results, panel: str, method: str) -> float:
    """K_eff / K of a panel."""
    return float(results.final(panel, method, "effective_actions")[0]) / float(results.parameter(panel, "K"))


def effective_actions(
    results: Results, panels: list[str], method: str, scale: Callable[[str], float], root: str, lines: tuple[str, str]
) -> list[Claim]:
    """K_eff, a column of the results: regret follows sqrt(K_eff scale(panel)), and a small K_eff means a large gain."""
    effective = {panel: float(results.final(panel, method, "effective_actions")[0]) for panel in panels}
    share = {panel: effective_share(results, panel, method) for panel in panels}
    rate = np.array([0.5 * math.log(effective[panel] * scale(panel)) for panel in panels])
    logs = [logarithm(measured(results.final(panel, method))) for panel in panels]
    fewest, most = min(panels, key=share.__getitem__), max(panels, key=share.__getitem__)
    gains = {
        panel: measured(1 - results.final(panel, method) / results.final(panel, "LinTS").mean())
        for panel in (fewest, most)
    }
    return [
        claim(
            f"Regret grows with {root}, K_eff the effective number of actions", lines[0], slope(rate, logs),
            detail="slope of log regret against the logarithm of that root, over all panels; 1 would be proportional",
        ),
        claim(
            f"The smaller K_eff / K, the larger the share of LinTS's regret that {method.partition('-')[0]} saves", lines[1],
            gains[fewest] - gains[most],
            detail=f"saved {gains[fewest]} at K_eff / K = {share[fewest]:.2f} ({fewest}), {gains[most]} at "
            f"{share[most]:.2f} ({most})",
        ),
    ]  # fmt: skip


def draw_bounds(
    results: Results,
    varied: Mapping[str, Sequence[str]],
    symbols: Mapping[str, str],
    method: str,
    looks: Mapping[str, Look],
    folder: Path,
    title: str,
    *,
    columns: Sequence[str] = ("bound",),
    ylabel: str = "final regret",
) -> Path:
    """Regret and bounds (columns of the results) against each of the parameters that vary."""
    groups = {
        f"varying {symbols[name]}": final_series(results, panels, name)
        | {bound: final_series(results, panels, name, methods=[method], column=bound)[method] for bound in columns}
        for name, panels in varied.items()
    }
    labels = {f"varying {symbols[name]}": symbols[name] for name in varied}
    look = online_looks(looks)
    return draw_series(groups, folder, "bound", title, xlabel=labels, ylabel=ylabel, look=look, log_y=True)


__all__ = ["below_bound", "draw_bounds", "effective_actions", "effective_share", "sublinear"]
