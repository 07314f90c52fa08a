"""How much alpha and tau matter: 20 values of each, an adaptive alpha, modest and good logging policies (thesis, Section 8.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.es.common import (
    LEARNED,
    OURS,
    PAPER,
    QUICK,
    SAKHI2,
    SMOKE,
    Method,
    above,
    cells,
    comparable,
    every,
    on_data_of_the_thesis,
)
from manyarms_thesis.es.figures import every_series, lines, look_of, shade
from manyarms_thesis.harness.claims import Claim, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, Look
from manyarms_thesis.harness.learning import Compared, best_elsewhere, by_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

ADAPTIVE = f"{OURS}, adaptive alpha"
MIDDLE = 0.5  # modest logging policies have an eta_0 up to here, good ones from here on
SMALLEST = 1e-5


def alpha_name(alpha: float) -> str:
    """Our bound at an alpha."""
    return f"{OURS}, alpha={alpha:.3g}"


def tau_name(tau: float) -> str:
    """The best baseline at a tau."""
    return f"{SAKHI2}, tau={tau:.3g}"


def values(count: int) -> list[float]:
    """Evenly spaced values from all but 0 to 1."""
    return [float(value) for value in np.linspace(SMALLEST, 1.0, count)]


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods: dict[str, Method] = {}
    for value in values(sizes["values"]):
        methods[alpha_name(value)] = ("bound", "gaussian", {"correction": "ES", "value": value})
    for value in values(sizes["values"]):
        methods[tau_name(value)] = ("sakhi2", "gaussian", {"correction": "Clip", "value": value})
    methods[ADAPTIVE] = ("bound", "gaussian", {"correction": "ES", "value": "adaptive"})
    return cells(sizes, methods)


def _swept(results: Results, kind: str) -> dict[str, str]:
    """The parameter's value of every agent of a kind, by agent."""
    return {name: name.rsplit("=", 1)[1] for name in results.methods(results.panels[0]) if f"{kind}=" in name}


def _table(on: Compared, agents: Iterable[str]) -> Array:
    """(runs, agents): means over panels."""
    return np.stack([on.level(agent) for agent in agents], axis=1)


def _logging(on: Compared) -> dict[str, Compared]:
    """The panels with modest, and with good, logging policies."""
    eta0 = {panel: on.results.parameter(panel, "eta0") for panel in on.panels}
    modest, good = [p for p in on.panels if eta0[p] <= MIDDLE], [p for p in on.panels if eta0[p] >= MIDDLE]
    return {"modest": replace(on, panels=modest), "good": replace(on, panels=good)}


@on_data_of_the_thesis
def _claims(on: Compared) -> Iterator[Claim]:
    alphas, taus = (list(_swept(on.results, kind)) for kind in ("alpha", "tau"))
    informed = above(on, 0.0)
    yield comparable(
        on.level(ADAPTIVE) - _table(on, alphas).max(axis=1), 0.02, "An adaptive alpha is comparable with the best alpha",
        "2646, 6292", on.data, "adaptive less the best alpha on average over eta0",
    )  # fmt: skip
    highest = [np.max([informed.over(agent) for agent in agents], axis=0) for agents in (alphas, taus)]
    leads = {panel: measured(lead) for panel, lead in zip(informed.panels, (highest[0] - highest[1]).T, strict=True)}
    yield every(
        on, leads, "Our method consistently outperforms Sakhi et al. 2 with its best tau when the logging policy is not uniform",
        "2646, 6293", "our best alpha less the best tau",
    )  # fmt: skip
    ours, theirs = (_table(informed, agents) for agents in (alphas, taus))
    lost, lost_by_tau = np.ptp(ours, axis=1), np.ptp(theirs, axis=1)
    yield on.claim(
        "There is no very bad choice of alpha, in contrast with tau: the worst loses less than the worst tau", "2646, 6293",
        measured(lost_by_tau - lost),
        f"largest less smallest mean value over eta0 > 0: alpha {measured(lost)}, tau {measured(lost_by_tau)}",
    )  # fmt: skip
    small = informed.level(taus[0])
    gain, other = small - informed.level(taus[0], column="logging_value"), theirs.max(axis=1) - small
    yield on.claim(
        "tau = 1e-5 leads to minimal improvement upon the logging policies, beside the best tau", "2646", measured(other - gain),
        f"gain over logging {measured(gain)}; lost to the best tau {measured(other)}",
    )  # fmt: skip
    yield from _groups(on)


def _groups(on: Compared) -> Iterator[Claim]:
    """Modest and good logging policies (thesis, Section 8.5 and Appendix E.3.4)."""
    groups, alphas = _logging(on), _swept(on.results, "alpha")
    if not all(group.panels for group in groups.values()):
        return
    numbers = np.array([float(value) for value in alphas.values()])
    table = {name: _table(group, alphas) for name, group in groups.items()}
    best = {name: numbers[found.argmax(axis=1)] for name, found in table.items()}
    lost = {name: left_out_best(found) - found[:, numbers.argmax()] for name, found in table.items()}
    shown = listed({name: measured(value) for name, value in best.items()})
    yield on.claim(
        "For modest logging policies regularisation can be critical: the best alpha beats alpha = 1", "2656, 6294",
        measured(lost["modest"]), f"mean best alpha over runs: {shown} (the thesis: about 0.7 for modest ones); for the figure "
        "it is chosen on the other runs",
    )  # fmt: skip
    yield comparable(
        best["modest"] - 0.7, 0.15, "alpha of about 0.7 is best across modest logging policies", "2656, 6294", on.data,
        "best alpha less 0.7",
    )  # fmt: skip
    yield comparable(
        lost["good"], 0.02, "For good logging policies alpha = 1 also leads to good performance", "2656, 6294", on.data,
        "best alpha's value less that of alpha = 1",
    )  # fmt: skip
    good, plain = groups["good"], alpha_name(1.0)
    clipped = np.max([good.over(agent) for agent in _swept(on.results, "tau")], axis=0)
    leads = {panel: measured(lead) for panel, lead in zip(good.panels, (good.over(plain) - clipped).T, strict=True)}
    yield every(
        on, leads, "Our bound applied to standard IPS outperforms clipping when the logging policy is relatively well-performing",
        "2656", "alpha = 1 less the best tau",
    )  # fmt: skip


def left_out_best(table: Array) -> Array:
    """(runs,): for each run the value of the column that is best on average over the other runs."""
    return np.asarray(table[np.arange(len(table)), best_elsewhere(table)])


def _look(name: str, place: int) -> Look:
    if name == ADAPTIVE:
        return PALETTE[2], "-"
    if "=" not in name:
        return look_of(name, place)
    share = float(name.rsplit("=", 1)[1])
    return shade(1 if "alpha" in name else 0, 1 - share), "-"


def _figures(results: Results, folder: Path) -> list[Drawn]:
    alphas, taus = (_swept(results, kind) for kind in ("alpha", "tau"))
    # of the swept values only the ends are named
    hidden = [*list(alphas)[1:-1], *list(taus)[1:-1]]
    averages = {
        data: {
            f"{name} logging": {float(value): measured(group.level(agent)) for agent, value in alphas.items()}
            for name, group in _logging(Compared(results, panels)).items()
            if group.panels
        }
        for data, panels in by_data(results).items()
    }
    title = "Each alpha (orange) and each tau (blue)"
    return [
        lines(
            every_series(results), folder, "parameters", title, look=_look, hidden=hidden,
            seen="What our bound learns at each alpha (orange) and with an adaptive one (green), and Sakhi et al. 2's at each "
            "tau (blue), light where it is large, the better the logging.",
        ),
        lines(
            averages, folder, "groups", "Our bound, averaged over logging policies", xlabel="alpha", from_zero=False,
            seen="Which alpha is best on average over modest and over good logging policies.",
        ),
    ]  # fmt: skip


HYPERPARAMETERS = LEARNED.experiment(
    "es-hyperparameters",
    order=3,
    title="Hyper-parameters of smoothing and of clipping",
    thesis_lines="2646-2656, 6289-6294",
    question="How much do the exponent of smoothing and the threshold of clipping matter, does an adaptive exponent find the "
    "best one, and when is none needed?",
    setting="The bandit logs of es-bounds ({data}, those that are found; eta0={etas}), Gaussian policies, {epochs} epochs: our "
    "bound at {values} values of alpha and with an adaptive one, Sakhi et al. 2's at {values} values of tau; exact values on "
    "test rows, over {runs} logs.",
    scales={
        "smoke": SMOKE | {"etas": [0.0, 0.5], "values": 3, "epochs": 1},
        "quick": QUICK | {"etas": [0.0, 0.2, 0.5, 1.0], "values": 11, "runs": 5},
        "paper": PAPER
        | {"data": ["mnist", "fashion-mnist", "emnist"], "etas": [round(0.1 * i, 1) for i in range(11)], "values": 20},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Values are evenly spaced from 1e-5 to 1, both included: the thesis says (0, 1) and speaks of tau = 1e-5 and alpha = 1.",
    ],
)

__all__ = ["HYPERPARAMETERS", "left_out_best"]
