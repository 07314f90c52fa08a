"""Four corrections over their parameters, by one objective: what pac-bound and pac-heuristic share (thesis, Section 8.7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from manyarms._base.typing import Array
from manyarms.worlds.supervised import Family
from manyarms_thesis.es.common import PAPER, QUICK, SMOKE, Method, cells
from manyarms_thesis.es.figures import COLOURS, LOGGING, lines, look_of, series, shade
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Look, Series
from manyarms_thesis.harness.learning import by_data, level
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

KINDS = ("Clip", "Har", "IX", "ES")
LETTERS = {"Clip": "tau", "Har": "lambda", "IX": "gamma", "ES": "alpha"}
CLOSE = 0.03  # means that differ by less count as comparable


def swept_name(kind: str, value: float) -> str:
    """A correction with its parameter."""
    return f"{kind}, {LETTERS[kind]}={value:g}"


def cells_of(sizes: Sizes, method: str, family: Family) -> list[Cell]:
    """All corrections at all values of their parameters."""
    methods: dict[str, Method] = {
        swept_name(kind, value): (method, family, {"correction": kind, "value": value})
        for kind in KINDS
        for value in sizes["values"]
    }
    return cells(sizes, methods)


def _of(results: Results, panels: list[str], kind: str) -> list[str]:
    return [name for name in results.methods(panels[0]) if name.startswith(f"{kind}, ")]


def means_of(results: Results, panels: list[str]) -> dict[str, Array]:
    """(runs,) by correction: the mean over parameters and eta_0."""
    return {kind: level(results, panels, _of(results, panels, kind)) for kind in KINDS}


def shown(means: Mapping[str, Array]) -> str:
    """The means in words."""
    return "means over parameters and eta0: " + listed({kind: measured(value) for kind, value in means.items()})


def behind(means: Mapping[str, Array], statement: str, lines: str, data: str) -> Claim:
    """Har is behind all others."""
    nearest, difference = least({kind: measured(means[kind] - means["Har"]) for kind in KINDS if kind != "Har"})
    return claim(statement, lines, difference, panel=data, detail=f"least convincing: {nearest}; {shown(means)}")


def _look(name: str, place: int) -> Look:
    kind, _, rest = name.partition(", ")
    if kind in KINDS and rest:
        return shade(KINDS.index(kind), float(rest.partition("=")[2])), "-"
    return (COLOURS[name], "-") if name in KINDS else look_of(name, place)


def figures(results: Results, folder: Path) -> list[Path]:
    """A drawing for each correction, and one of their means, for each data set."""
    groups: dict[str, Series] = {}
    for data, panels in by_data(results).items():
        mean: dict[str, dict[float, Measured]] = {kind: {} for kind in KINDS}
        for kind in KINDS:
            methods = _of(results, panels, kind)
            groups[f"{data}: {kind}"] = series(results, panels, methods)
            for panel in panels:
                mean[kind][float(results.parameter(panel, "eta0"))] = measured(level(results, [panel], methods))
        groups[f"{data}: means"] = mean
    hidden = [name for name in results.methods(results.panels[0]) if name not in (LOGGING, *KINDS)]
    title = f"{results.experiment}: light is a small parameter, dark a large one"
    return [lines(groups, folder, "regularisations", title, look=_look, columns=len(KINDS) + 1, hidden=hidden)]


SCALES: Mapping[str, Sizes] = {
    "smoke": SMOKE | {"etas": [-0.5, 0.5], "values": [0.1, 0.9], "epochs": 1},
    "quick": QUICK | {"etas": [-0.5, -0.2, 0.0, 0.2, 0.5], "values": [0.1, 0.5, 0.9], "runs": 2, "epochs": 3},
    "paper": PAPER
    | {
        "data": ["mnist", "fashion-mnist"],
        "etas": [round(-0.5 + 0.1 * i, 1) for i in range(11)],
        "values": [round(0.05 + 0.1 * i, 2) for i in range(10)],
    },
}
PARAMETERS = (
    "Har is w / ((1 - lambda) w + lambda), as in Section 8.6: lambda = 1 is IPS. For Clip and IX that is 0, for ES 1. Mean over "
    "parameters compares what one gets without tuning; the same numbers mean different strengths for the four."
)

__all__ = ["CLOSE", "KINDS", "PARAMETERS", "SCALES", "behind", "cells_of", "figures", "means_of", "shown"]
