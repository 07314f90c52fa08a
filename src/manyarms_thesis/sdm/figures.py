"""Figures of the offline chapters: relative reward against the size of the log, or against a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from manyarms._base.html import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Measured, measured
from manyarms_thesis.harness.figures import drawing, finish
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.series import draw_series
from manyarms_thesis.sdm.claims import relative

# sDM is blue and its variants differ in their dashes; direct methods have full lines, the others broken ones
LOOKS: Mapping[str, tuple[str, str]] = {
    "sDM": (PALETTE[0], "-"),
    "sDM-Lin": (PALETTE[0], "-"),
    "sDM-Log": (PALETTE[0], ":"),
    "DM (Bayes)": (PALETTE[1], "-"),
    "DM (Bayes)-Lin": (PALETTE[1], "-"),
    "DM (Freq)": (PALETTE[2], "-"),
    "DM (Freq)-Lin": (PALETTE[2], "-"),
    "IPS": (PALETTE[3], "--"),
    "snIPS": (PALETTE[4], "-."),
    "DR": (PALETTE[5], "--"),
    "MIPS": (PALETTE[6], "-."),
    "PC": (PALETTE[7], "--"),
    "IPS-min": (PALETTE[0], "-"),
    "IPS-max": (PALETTE[1], ":"),
    "cIPS": (PALETTE[0], "--"),
    "ES": (PALETTE[1], "--"),
    "ES-α=0.9": (PALETTE[2], "-"),
    "ES-α=0.95": (PALETTE[4], "-"),
    "covariance-dependent bound": ("#1a1a1a", ":"),
    "covariance-dependent, sharper": ("#8a8a8a", ":"),
    "explicit bound": ("#1a1a1a", "--"),
    "explicit, sharper": ("#8a8a8a", "--"),
    # wrong priors: a colour for each size of the error, dashes for what is wrong
    **{
        f"sDM, v={v}{part}": (PALETTE[colour], dashes)
        for v, colour in (("0.5", 2), ("1", 3), ("1.5", 4))
        for part, dashes in (("", "--"), (", mean only", ":"), (", covariance only", "-."))
    },
}
MARKERS = "oxs^"
OTHERS = [(colour, dashes) for dashes in ("--", ":", "-.") for colour in PALETTE[2:]]


def look_of(name: str, place: int) -> tuple[str, str]:
    """Colour and dashes of a curve."""
    return LOOKS.get(name, OTHERS[place % len(OTHERS)])


def by_size(results: Results, panel: str, agents: Sequence[str] | None = None) -> dict[str, dict[float, Measured]]:
    """Relative reward of the agents of a panel (None: of all) for each size of log."""
    sizes = [float(n) for n in results.values(panel, results.agents(panel)[0], "n")[0]]
    out = {}
    for agent in results.agents(panel) if agents is None else agents:
        values = relative(results, panel, agent)
        out[agent] = {n: measured(values[:, i]) for i, n in enumerate(sizes)}
    return out


def reward_curves(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    columns: int = 3,
    agents: Sequence[str] | None = None,
) -> Path:
    """Relative reward against the size of the log, one drawing a panel; of all agents, or of those named."""
    groups = {panel: by_size(results, panel, agents) for panel in panels}
    return draw_series(groups, look_of, "rows in the log", "relative reward", folder, name, title, columns=columns)


def profile(
    x: Array, lines: Mapping[str, tuple[Array, Array]], truth: Array, folder: Path, name: str, title: str
) -> Path:
    """Estimates (mean and spread) along an axis, with the truth as a line; beside each other where they would cover."""
    with drawing(1, 1) as (figure, axes):
        (axis,) = axes
        axis.plot(x, truth, "-", color="#1a1a1a", linewidth=1.8, label="true value")
        for place, (label, (mean, error)) in enumerate(lines.items()):
            colour, _ = look_of(label, place)
            aside = 0.2 * (place - (len(lines) - 1) / 2)
            axis.errorbar(
                x + aside, mean, error, fmt=MARKERS[place % len(MARKERS)], color=colour, label=label, markersize=3.0,
                elinewidth=0.5, linewidth=0,
            )  # fmt: skip
        axis.set_xlabel("action a")
        axis.set_ylabel("estimated value of playing a")
        return finish(figure, axes, folder, name, title)


__all__ = ["LOOKS", "by_size", "look_of", "profile", "reward_curves"]
