"""Figures of the offline chapters: relative reward against the size of the log, or against a parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from manyarms._base.palette import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn, Look, draw_grid, draw_series
from manyarms_thesis.harness.results import Results
from manyarms_thesis.sdm.claims import by_size, relative

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# sDM is blue and its variants differ in their dashes; direct methods have full lines, the others broken ones
LOOKS: Mapping[str, Look] = {
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
    "covariance-dependent bound": (BLACK, ":"),
    "covariance-dependent, sharper": (GREY, ":"),
    "explicit bound": (BLACK, "--"),
    "explicit, sharper": (GREY, "--"),
    # wrong priors: a colour for each size of the error, dashes for what is wrong
    **{
        f"sDM, v={v}{part}": (PALETTE[colour], dashes)
        for v, colour in (("0.5", 2), ("1", 3), ("1.5", 4))
        for part, dashes in (("", "--"), (", mean only", ":"), (", covariance only", "-."))
    },
}
MARKERS = "oxs^"
OTHERS = [(colour, dashes) for dashes in ("--", ":", "-.") for colour in PALETTE[2:]]


def look_of(name: str, place: int) -> Look:
    """Colour and dashes of a curve."""
    return LOOKS.get(name, OTHERS[place % len(OTHERS)])


# `draw_series` with what the figures of relative rewards have in common
draw_rewards = partial(draw_series, xlabel="rows in the log", ylabel="relative reward", look=look_of, from_zero=False)


def reward_curves(
    results: Results,
    panels: Sequence[str],
    folder: Path,
    name: str,
    title: str,
    *,
    columns: int = 3,
    learners: Sequence[str] | None = None,
    seen: str = "",
) -> Drawn:
    """Relative reward against the size of the log, one drawing a panel; of all learners, or of those named."""
    groups: dict[str, dict[str, dict[float, Measured]]] = {}
    for panel in panels:
        named = results.methods(panel) if learners is None else learners
        groups[panel] = {one: by_size(results, panel, relative(results, panel, one)) for one in named}
    return draw_rewards(groups, folder, name, title, columns=columns, seen=seen)


def profile(
    x: Array, lines: Mapping[str, tuple[Array, Array]], truth: Array, folder: Path, name: str, title: str, caption: str
) -> Drawn:
    """Estimates (mean and spread) along an axis, with the truth as a line; beside each other where they would cover."""

    def draw(axis: Axes, lines: Mapping[str, tuple[Array, Array]]) -> None:
        axis.plot(x, truth, "-", color=BLACK, linewidth=1.8, label="true value")
        for place, (label, (mean, error)) in enumerate(lines.items()):
            colour, _ = look_of(label, place)
            aside = 0.2 * (place - (len(lines) - 1) / 2)
            axis.errorbar(
                x + aside, mean, error, fmt=MARKERS[place % len(MARKERS)], color=colour, label=label, markersize=3.0,
                elinewidth=0.5, linewidth=0,
            )  # fmt: skip
        axis.set_xlabel("action a")
        axis.set_ylabel("estimated value of playing a")

    return draw_grid({"": lines}, draw, folder, name, title, caption=caption)


__all__ = ["LOOKS", "draw_rewards", "look_of", "profile", "reward_curves"]
