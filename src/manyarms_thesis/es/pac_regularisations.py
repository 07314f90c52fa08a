"""The objective fixed to ours, four corrections over their parameters: by the bound and by the heuristic (thesis, 2766-2786)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyarms.worlds.supervised import Family
from manyarms_thesis.es.common import (
    CAPTION,
    NUMBERS,
    PAPER,
    QUICK,
    REMARKS,
    SMOKE,
    cells,
    comparable,
    improves,
    learners,
    level,
    made_up_warnings,
)
from manyarms_thesis.es.figures import COLOURS, LOGGING, Look, Series, lines, look_of, series, shade
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.pwll.claims import by_data, flagged

KINDS = ("Clip", "Har", "IX", "ES")
LETTERS = {"Clip": "tau", "Har": "lambda", "IX": "gamma", "ES": "alpha"}
CLOSE = 0.03  # means that differ by less count as comparable


def agent_name(kind: str, value: float) -> str:
    """A correction with its parameter."""
    return f"{kind}, {LETTERS[kind]}={value:g}"


def _cells(method: str, family: Family) -> Callable[[Mapping[str, Any]], list[Cell]]:
    def made(sizes: Mapping[str, Any]) -> list[Cell]:
        methods: dict[str, tuple[str, Family, Mapping[str, Any]]] = {
            agent_name(kind, value): (method, family, {"correction": kind, "value": value})
            for kind in KINDS
            for value in sizes["values"]
        }
        return cells(sizes, learners(methods, sizes))

    return made


def _of(results: Results, panels: list[str], kind: str) -> list[str]:
    return [name for name in results.agents(panels[0]) if name.startswith(f"{kind}, ")]


def _means(results: Results, panels: list[str]) -> dict[str, Any]:
    """(runs,) by correction: the mean over parameters and eta_0."""
    return {kind: level(results, panels, _of(results, panels, kind)) for kind in KINDS}


def _shown(means: Mapping[str, Any]) -> str:
    return "means over parameters and eta0: " + ", ".join(f"{kind} {measured(value)}" for kind, value in means.items())


def _bound_claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        means = _means(results, panels)
        found.append(improves(results, panels, "All regularisations improve over the logging policy", "2771", data))
        found.append(_behind(means, "Har shows less improvement than the others", "2771", data))
        linear = np.stack([means[kind] for kind in ("Clip", "IX", "ES")])
        found.append(
            comparable(
                np.ptp(linear, axis=0), CLOSE, "Clip, IX and ES achieve comparable performance", "2771", data,
                f"largest less smallest of the three; {_shown(means)}",
            )
        )  # fmt: skip
    return flagged(results, found)


def _behind(means: Mapping[str, Any], statement: str, lines: str, data: str) -> Claim:
    nearest, difference = least({kind: measured(means[kind] - means["Har"]) for kind in KINDS if kind != "Har"})
    return claim(statement, lines, difference, panel=data, detail=f"least convincing: {nearest}; {_shown(means)}")


def _heuristic_claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        means = _means(results, panels)
        nearest, difference = least({kind: measured(means["ES"] - means[kind]) for kind in KINDS if kind != "ES"})
        detail = f"least convincing: {nearest}; {_shown(means)}"
        found.append(claim("ES outperforms the others on average", "2779", difference, panel=data, detail=detail))
        found.append(_behind(means, "Har underperforms", "2779", data))
        found.append(
            comparable(
                means["Clip"] - means["IX"], CLOSE, "Clip and IX have comparable average performance", "2779", data,
                f"Clip less IX; {_shown(means)}",
            )
        )  # fmt: skip
        found.append(
            improves(results, panels, "The heuristic improves over the logging policy throughout", "2779", data)
        )
    return flagged(results, found)


def _look(name: str, place: int) -> Look:
    kind, _, rest = name.partition(", ")
    if kind in KINDS and rest:
        return shade(KINDS.index(kind), float(rest.partition("=")[2])), "-"
    return (COLOURS[name], "-") if name in KINDS else look_of(name, place)


def _figures(results: Results, folder: Path) -> list[Path]:
    groups: dict[str, Series] = {}
    for data, panels in by_data(results).items():
        mean: dict[str, dict[float, Measured]] = {kind: {} for kind in KINDS}
        for kind in KINDS:
            agents = _of(results, panels, kind)
            groups[f"{data}: {kind}"] = series(results, panels, agents)
            for panel in panels:
                mean[kind][float(results.parameter(panel, "eta0"))] = measured(level(results, [panel], agents))
        groups[f"{data}: means"] = mean
    hidden = [name for name in results.agents(results.panels[0]) if name not in (LOGGING, *KINDS)]
    title = f"{results.experiment}: light is a small parameter, dark a large one"
    return [lines(groups, folder, "regularisations", title, look=_look, columns=len(KINDS) + 1, hidden=hidden)]


SMALL: dict[str, Any] = {"etas": [-0.5, 0.5], "values": [0.1, 0.9], "epochs": 1}
SOME: dict[str, Any] = {"etas": [-0.5, -0.2, 0.0, 0.2, 0.5], "values": [0.1, 0.5, 0.9], "runs": 2}
ALL: dict[str, Any] = {
    "data": ["mnist", "fashion-mnist"],
    "etas": [round(-0.5 + 0.1 * i, 1) for i in range(11)],
    "values": [round(0.05 + 0.1 * i, 2) for i in range(10)],
}
PARAMETERS = (
    "Har is w / ((1 - lambda) w + lambda), as in line 2676: lambda = 1 is IPS. For Clip and IX that is 0, for ES 1. Mean over "
    "parameters compares what one gets without tuning; the same numbers mean different strengths for the four."
)

BOUND = Experiment(
    name="pac-bound",
    title="Regularisations of importance weights under our bound",
    thesis_lines="2766-2777",
    scales={"smoke": SMOKE | SMALL, "quick": QUICK | SOME | {"epochs": 3}, "paper": PAPER | ALL},
    build=_cells("general", "mixed-logit"),
    claims=_bound_claims,
    figures=_figures,
    remarks=[
        *REMARKS, PARAMETERS,
        "The general form of the bound (lines 2686-2696), for softmax policies with theta ~ N(mu, sigma^2 I), over 32 draws; "
        "such a policy is mixed-logit when it plays. lambda is the best one for the batch (line 2767).",
    ],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

HEURISTIC = Experiment(
    name="pac-heuristic",
    title="Regularisations of importance weights under the heuristic",
    thesis_lines="2766-2767, 2779-2786",
    scales={"smoke": SMOKE | SMALL, "quick": QUICK | SOME | {"epochs": 3}, "paper": PAPER | ALL},
    build=_cells("heuristic", "softmax"),
    claims=_heuristic_claims,
    figures=_figures,
    remarks=[*REMARKS, PARAMETERS, "Softmax policies; all three weights are 1e-5 (line 2767)."],
    warnings=made_up_warnings,
    caption=CAPTION,
    numbers=NUMBERS,
)

__all__ = ["BOUND", "HEURISTIC", "KINDS", "agent_name"]
