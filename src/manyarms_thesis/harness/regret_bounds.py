"""Claims about a regret bound beside the regret that was measured, for any agent that has one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from manyarms_thesis.harness.claims import Claim, Measured, claim, least, logarithm, measured, saved, slope
from manyarms_thesis.harness.figures import Drawn, Look, draw_series, final_series, online_looks
from manyarms_thesis.harness.results import Results


def below_bound(
    results: Results, method: str, column: str, statement: str, lines: str, *, no_learning: str = ""
) -> Claim:
    """The regret is below a bound (a column of the results) in every panel; the figure is the least convincing room.

    no_learning: a method that never looks at rewards. A bound that is not below its regret promises nothing that needs learning:
    it is vacuous there, and the panel does not count. Where all panels are such, nothing is decided.
    """
    promised = {
        panel: measured(results.final(panel, no_learning) - results.final(panel, method, column))
        for panel in results.panels
        if no_learning
    }
    telling = [panel for panel in results.panels if panel not in promised or promised[panel].above_zero]
    vacuous = [panel for panel in results.panels if panel not in telling]
    if not telling:
        panel = max(promised, key=lambda name: promised[name].mean)
        return claim(
            statement, lines, Measured(promised[panel].mean, math.nan), panel=panel,
            detail=f"the bound is vacuous in all {len(vacuous)} panels: above what is lost without learning, so that regret "
            f"below it shows nothing. The figure is what is lost without learning less the bound, where it is largest; the bound "
            f"is {_times(results, vacuous, method, column, no_learning)} times what is lost without learning",
        )  # fmt: skip
    room = {panel: measured(results.final(panel, method, column) - results.final(panel, method)) for panel in telling}
    panel, nearest = least(room)
    left_out = (
        f". In {len(vacuous)} of {len(results.panels)} panels the bound is vacuous, above what is lost without learning, and "
        f"they do not count: {'; '.join(vacuous)}"
        if vacuous
        else ""
    )
    return claim(
        statement, lines, nearest, panel=panel, parts=list(room.values()),
        detail="bound less regret, where it is least convincing; the bound is "
        f"{_times(results, telling, method, column, method)} times the measured regret{left_out}",
    )  # fmt: skip


def _times(results: Results, panels: Sequence[str], method: str, column: str, of: str) -> str:
    """Between what and what the bound lies, in multiples of a method's regret."""
    ratios = [float(results.final(panel, method, column).mean() / results.final(panel, of).mean()) for panel in panels]
    return f"{min(ratios):.1f} to {max(ratios):.1f}"


def sublinear(results: Results, method: str, statement: str, lines: str) -> Claim:
    """Regret grows more slowly than T: the exponent of T between T/2 and T is below 1, in every panel."""
    exponents = {}
    for panel in results.panels:
        values = results.values(panel, method, "regret")
        middle, end = values[:, values.shape[1] // 2 - 1], values[:, -1]
        error = measured(end / end.mean() - middle / middle.mean()).standard_error / math.log(2)
        exponents[panel] = Measured(1 - math.log2(end.mean() / middle.mean()), error, len(end) - 1)
    panel, room = least(exponents)
    shown = [1 - value.mean for value in exponents.values()]
    return claim(
        statement, lines, room, panel=panel, parts=list(exponents.values()),
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
    gains = {panel: saved(results, panel, method, "LinTS") for panel in (fewest, most)}
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
    seen: str = "",
) -> Drawn:
    """Regret and bounds (columns of the results) against each of the parameters that vary."""
    groups = {
        f"varying {symbols[name]}": final_series(results, panels, name)
        | {bound: final_series(results, panels, name, methods=[method], column=bound)[method] for bound in columns}
        for name, panels in varied.items()
    }
    labels = {f"varying {symbols[name]}": symbols[name] for name in varied}
    look = online_looks(looks)
    return draw_series(groups, folder, "bound", title, xlabel=labels, ylabel=ylabel, look=look, log_y=True, seen=seen)


__all__ = ["below_bound", "draw_bounds", "effective_actions", "effective_share", "sublinear"]
