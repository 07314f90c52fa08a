"""Figures of values against eta_0 or a hyper-parameter, with one look for each method or one shade for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from manyarms._base.palette import PALETTE
from manyarms_thesis.es.common import LONDON, OURS, SAKHI1, SAKHI2
from manyarms_thesis.harness.claims import Measured
from manyarms_thesis.harness.figures import GREY, Look, Series, draw_series, final_series
from manyarms_thesis.harness.learning import by_data
from manyarms_thesis.harness.results import Results

LOGGING = "logging policy"
COLOURS: Mapping[str, str] = {
    OURS: PALETTE[0], LONDON: PALETTE[1], SAKHI1: PALETTE[2], SAKHI2: PALETTE[3], "Su et al.": PALETTE[1],
    "Metelli et al.": PALETTE[3], "SVP": PALETTE[2], "Clip": PALETTE[1], "Har": PALETTE[3], "IX": PALETTE[2], "ES": PALETTE[0],
}  # fmt: skip
SHADES = ("Blues", "Oranges", "Greens", "Purples", "Greys")
INSIDE = 40.0  # per cent of a colour map that are too light to be seen on white


def look_of(name: str, place: int) -> Look:
    """Colour by method, dashes by what comes after the comma."""
    if name == LOGGING:
        return GREY, ":"
    base, _, rest = name.partition(", ")
    dashes = "--" if rest in ("mixed-logit", "LP") else "-."
    return COLOURS.get(base, PALETTE[place % len(PALETTE)]), "-" if rest in ("", "Gaussian", "bound") else dashes


def shade(family: int, share: float) -> str:
    """A colour of a family of lines, light for a share of 0 and dark for 1."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return to_hex(colormaps[SHADES[family % len(SHADES)]]((INSIDE + (100 - INSIDE) * share) / 100))


def series(
    results: Results, panels: Sequence[str], methods: Sequence[str] | None = None
) -> dict[str, dict[float, Measured]]:
    """Final values of methods (None: of all) against eta_0, and those of the logging policy."""
    names = results.methods(panels[0]) if methods is None else methods
    logging = final_series(results, panels, "eta0", methods=names[:1], column="logging_value")[names[0]]
    return {
        **final_series(results, panels, "eta0", methods=names, column="value"),
        LOGGING: {x: Measured(value.mean, 0.0) for x, value in logging.items()},
    }


def every_series(results: Results) -> dict[str, Series]:
    """`series` of all methods, for each data set."""
    return {data: series(results, panels) for data, panels in by_data(results).items()}


# `draw_series` with what the figures of this chapter have in common
lines = partial(
    draw_series, xlabel="eta0, quality of the logging policy", ylabel="value, test rows", look=look_of, ticks="auto"
)

__all__ = ["COLOURS", "LOGGING", "every_series", "lines", "look_of", "series", "shade"]
