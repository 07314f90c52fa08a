"""Four corrections of importance weights over their parameters, under our bound and the heuristic (thesis, Section 8.7.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manyarms._base.typing import Array
from manyarms.worlds.supervised import Family
from manyarms_thesis.es.common import (
    LEARNED,
    PAPER,
    QUICK,
    SMOKE,
    Method,
    cells,
    every,
    improves,
    named,
    on_data_of_the_thesis,
    within,
)
from manyarms_thesis.es.figures import COLOURS, lines, look_of, series, shade
from manyarms_thesis.harness.claims import Claim, Measured, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, Look, Series
from manyarms_thesis.harness.learning import Compared, by_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

KINDS = ("Clip", "Har", "IX", "ES")
LETTERS = {"Clip": "tau", "Har": "lambda", "IX": "gamma", "ES": "alpha"}
BOUNDED = "bound"  # what the heuristic is compared with


def swept_name(kind: str, value: float) -> str:
    """A correction with its parameter."""
    return f"{kind}, {LETTERS[kind]}={value:g}"


def _swept(sizes: Sizes, method: str, family: Family) -> dict[str, Method]:
    """All corrections at all values of their parameters."""
    return {
        swept_name(kind, value): (method, family, {"correction": kind, "value": value})
        for kind in KINDS
        for value in sizes["values"]
    }


def _with_bounds(sizes: Sizes) -> Iterator[Cell]:
    """The heuristic, and for comparison the bound with each correction at the middle one of the values."""
    middle = sizes["values"][len(sizes["values"]) // 2]
    bounds: dict[str, Method] = {
        f"{BOUNDED}, {swept_name(kind, middle)}": ("general", "mixed-logit", {"correction": kind, "value": middle})
        for kind in KINDS
    }
    return cells(sizes, {**_swept(sizes, "heuristic", "softmax"), **bounds})


def _means(on: Compared) -> tuple[dict[str, Array], str]:
    """(runs,) by correction: the mean over parameters and eta_0; and the means in words."""
    means = {kind: on.level(*named(on, kind)) for kind in KINDS}
    return means, "means over parameters and eta0: " + listed({kind: measured(value) for kind, value in means.items()})


def _apart(on: Compared, chosen: str, sign: int, statement: str, lines: str) -> Claim:
    """A correction is above all others on average (sign 1), or below them (sign -1)."""
    means, shown = _means(on)
    others = {kind: measured(sign * (means[chosen] - means[kind])) for kind in KINDS if kind != chosen}
    return every(
        on, others, statement, lines, f"{shown}; {chosen} {'above' if sign > 0 else 'below'} each other one by"
    )


@on_data_of_the_thesis
def _under_bound(on: Compared) -> Iterator[Claim]:
    means, shown = _means(on)
    yield improves(on, "All regularisations improve over the logging policy", "2771")
    yield _apart(on, "Har", -1, "Har shows less improvement than the others", "2771")
    linear = np.stack([means[kind] for kind in ("Clip", "IX", "ES")])
    apart, exception = np.ptp(linear, axis=0), linear.mean(axis=0) - means["Har"]
    yield on.claim(
        "Clip, IX and ES achieve comparable performance: their range is less than a quarter of Har's distance", "2771",
        within(apart, exception),
        f"largest less smallest of the three {measured(apart)}, their mean less Har {measured(exception)}; {shown}",
    )  # fmt: skip


@on_data_of_the_thesis
def _under_heuristic(on: Compared) -> Iterator[Claim]:
    means, shown = _means(on)
    yield _apart(on, "ES", 1, "ES outperforms the others on average", "2779")
    yield _apart(on, "Har", -1, "Har underperforms", "2779")
    middle, apart = (means["Clip"] + means["IX"]) / 2, means["Clip"] - means["IX"]
    exception = np.minimum(means["ES"] - middle, middle - means["Har"])
    yield on.claim(
        "Clip and IX have comparable average performance: nearer than a quarter of the distance to ES or Har", "2779",
        within(apart, exception),
        f"Clip less IX {measured(apart)}, from their mean to the nearer of ES and Har {measured(exception)}; {shown}",
    )  # fmt: skip
    methods = [method for kind in KINDS for method in named(on, kind)]
    yield improves(on, "The heuristic improves over the logging policy throughout", "", methods)
    yield from _objectives(on)


def _objectives(on: Compared) -> Iterator[Claim]:
    """The heuristic beside the bound, with the same corrections at the same parameters; means over eta_0."""
    bounds = {method.split(", ", 1)[1]: on.level(method) for method in named(on, BOUNDED)}
    heuristics = {method: on.level(method) for method in bounds}
    gains = {method: heuristics[method] - bounds[method] for method in bounds}
    yield every(
        on, {method: measured(gain) for method, gain in gains.items()},
        "Heuristic optimisation achieves better performance than bound optimisation", "2779",
        "the heuristic less the bound with the same correction and parameter, means over eta0",
    )  # fmt: skip
    changed = np.mean(list(gains.values()), axis=0)
    ranges = {name: np.ptp(list(of.values()), axis=0) for name, of in (("heuristic", heuristics), ("bound", bounds))}
    yield every(
        on, {f"beside the {name}'s": measured(np.abs(changed) - found) for name, found in ranges.items()},
        "The choice of the objective has a larger impact than the choice of the regularisation", "2779, 2788",
        f"from the bound to the heuristic, mean over corrections: {measured(changed)}; from the worst correction to the best: "
        + listed({name: measured(found) for name, found in ranges.items()}) + "; the former less the latter",
    )  # fmt: skip


def _look(name: str, place: int) -> Look:
    kind, _, rest = name.partition(", ")
    if kind in KINDS and rest:
        return shade(KINDS.index(kind), float(rest.partition("=")[2])), "-"
    return (COLOURS[name], "-") if name in KINDS else look_of(name, place)


def _figures(results: Results, folder: Path) -> list[Drawn]:
    """A drawing for each correction, and one of their means, for each data set."""
    groups: dict[str, Series] = {}
    for data, panels in by_data(results).items():
        on = Compared(results, panels)
        mean: dict[str, dict[float, Measured]] = {}
        for kind in KINDS:
            methods = named(on, kind)
            groups[f"{data}: {kind}"] = series(results, panels, methods)
            mean[kind] = {
                float(results.parameter(panel, "eta0")): measured(Compared(results, [panel]).level(*methods))
                for panel in panels
            }
        groups[f"{data}: means"] = mean
    hidden = results.methods(results.panels[0])
    title = f"Four corrections, {'bound' if results.experiment == 'pac-bound' else 'heuristic'} optimisation"
    seen = (
        "Each correction at each value of its parameter, light for a small one and dark for a large one, and on the right the "
        "means over these, the better the logging policy."
    )
    return [
        lines(
            groups,
            folder,
            "regularisations",
            title,
            look=_look,
            columns=len(KINDS) + 1,
            hidden=hidden,
            seen=seen,
            xlabel="eta0",
        )
    ]


SCALES: Mapping[str, Sizes] = {
    "smoke": SMOKE | {"etas": [-0.5, 0.5], "values": [0.1, 0.9], "epochs": 1},
    "quick": QUICK | {"etas": [-0.5, -0.2, 0.0, 0.2, 0.5], "values": [0.1, 0.5, 0.9], "runs": 5, "epochs": 3},
    "paper": PAPER
    | {
        "data": ["mnist", "fashion-mnist"],
        "etas": [round(-0.5 + 0.1 * i, 1) for i in range(11)],
        "values": [round(0.05 + 0.1 * i, 2) for i in range(10)],
    },
}
SETTING = (
    "Bandit logs of {{data}} (those that are found), by softmax policies of inverse temperature eta0={{etas}}, some worse than "
    "uniform; {}, {{epochs}} epochs. Four corrections at parameters {{values}}; exact values on test rows, over {{runs}} logs."
)
PARAMETERS = (
    "Har is w / ((1 - lambda) w + lambda), as in Section 8.6: lambda = 1 is IPS. For Clip and IX that is 0, for ES 1. Mean over "
    "parameters compares what one gets without tuning; the same numbers mean different strengths for the four."
)

BOUND = LEARNED.experiment(
    "pac-bound",
    order=7,
    title="Regularisations of importance weights under our bound",
    thesis_lines="2766-2777",
    question="When the same PAC-Bayes bound is maximised for all of them, does it matter how importance weights are regularised: "
    "by clipping, harmonically, by implicit exploration or by smoothing?",
    setting=SETTING.format("the bound's general form over softmax policies with Gaussian parameters"),
    scales=SCALES,
    build=lambda sizes: cells(sizes, _swept(sizes, "general", "mixed-logit")),
    claims=_under_bound,
    figures=_figures,
    remarks=[
        PARAMETERS,
        "The general form of the bound (Section 8.6.1), for softmax policies with theta ~ N(mu, sigma^2 I), over 32 draws; "
        "such a policy is mixed-logit when it plays. lambda is the best one for the batch (Section 8.7.2).",
    ],
)
HEURISTIC = LEARNED.experiment(
    "pac-heuristic",
    order=8,
    title="Regularisations of importance weights under the heuristic",
    thesis_lines="2766-2767, 2779-2786",
    question="When the same heuristic objective is maximised for all of them, does it matter how importance weights are "
    "regularised: by clipping, harmonically, by implicit exploration or by smoothing?",
    setting=SETTING.format("the heuristic objective with all weights at 1e-5, over softmax policies"),
    scales=SCALES,
    build=_with_bounds,
    claims=_under_heuristic,
    figures=_figures,
    remarks=[
        PARAMETERS,
        "Softmax policies; all three weights are 1e-5 (Section 8.7.2). For comparison the bound of pac-bound is maximised on the "
        "same logs, with each correction at the middle one of the parameters: it has parameters to draw, so that its policies "
        "are mixed-logit.",
    ],
)

__all__ = ["BOUND", "HEURISTIC"]
