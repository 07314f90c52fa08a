"""How much alpha and tau matter: 20 values of each, an adaptive alpha, modest and good logging policies (thesis, Section 8.5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manyarms._base.html import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.es.common import LEARNED, OURS, PAPER, QUICK, SAKHI2, SMOKE, Method, above, cells, comparable
from manyarms_thesis.es.figures import every_series, lines, look_of, shade
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Look
from manyarms_thesis.harness.learning import by_data, flag_data, level
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


def _cells(sizes: Sizes) -> list[Cell]:
    methods: dict[str, Method] = {}
    for value in values(sizes["values"]):
        methods[alpha_name(value)] = ("bound", "gaussian", {"correction": "ES", "value": value})
    for value in values(sizes["values"]):
        methods[tau_name(value)] = ("sakhi2", "gaussian", {"correction": "Clip", "value": value})
    methods[ADAPTIVE] = ("bound", "gaussian", {"correction": "ES", "value": "adaptive"})
    return cells(sizes, methods)


def _swept(results: Results, panels: list[str], kind: str) -> dict[str, str]:
    """The parameter's value of every agent of a kind, by agent."""
    return {name: name.rsplit("=", 1)[1] for name in results.methods(panels[0]) if f"{kind}=" in name}


def _table(results: Results, panels: list[str], agents: list[str]) -> Array:
    """(runs, agents): means over panels."""
    return np.stack([level(results, panels, [agent]) for agent in agents], axis=1)


def _claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        alphas, taus = (list(_swept(results, panels, kind)) for kind in ("alpha", "tau"))
        informed = above(results, panels, 0.0)
        found.append(
            comparable(
                level(results, panels, [ADAPTIVE]) - _table(results, panels, alphas).max(axis=1), 0.02,
                "An adaptive alpha is comparable with the best alpha", "2646, 6292", data,
                "adaptive less the best alpha on average over eta0",
            )
        )  # fmt: skip
        leads: dict[str, Measured] = {}
        for panel in informed:
            ours = np.max([results.final(panel, agent, "value") for agent in alphas], axis=0)
            theirs = np.max([results.final(panel, agent, "value") for agent in taus], axis=0)
            leads[panel] = measured(ours - theirs)
        nearest, difference = least(leads)
        found.append(
            claim(
                "Our method with its best alpha outperforms Sakhi et al. 2 with its best tau, logging not being uniform",
                "2646, 6293", difference, panel=data,
                detail=f"least convincing: {nearest}; " + ", ".join(f"{name}: {value}" for name, value in leads.items()),
            )
        )  # fmt: skip
        ours, theirs = (_table(results, informed, agents) for agents in (alphas, taus))
        spread = np.ptp(theirs, axis=1) - np.ptp(ours, axis=1)
        found.append(
            claim(
                "There is no very bad alpha, and there is a very bad tau: the worst loses less than the worst tau", "2646, 6293",
                measured(spread), panel=data,
                detail=f"largest less smallest mean value over eta0 > 0: alpha {measured(np.ptp(ours, axis=1))}, "
                f"tau {measured(np.ptp(theirs, axis=1))}",
            )
        )  # fmt: skip
        small = taus[0]
        gain = level(results, informed, [small]) - level(results, informed, [small], "logging_value")
        other = theirs.max(axis=1) - level(results, informed, [small])
        found.append(
            claim(
                "tau = 1e-5 improves little upon the logging policy, beside the best tau", "2646", measured(other - gain),
                panel=data, detail=f"gain over logging {measured(gain)}; lost to the best tau {measured(other)}",
            )
        )  # fmt: skip
        found += _groups(results, panels, alphas, data)
    return flag_data(results, found)


def _groups(results: Results, panels: list[str], alphas: list[str], data: str) -> list[Claim]:
    """Modest and good logging policies (thesis, Section 8.5 and Appendix E.3.4)."""
    modest = [panel for panel in panels if results.parameter(panel, "eta0") <= MIDDLE]
    good = [panel for panel in panels if results.parameter(panel, "eta0") >= MIDDLE]
    if not modest or not good:
        return []
    numbers = np.array([float(_swept(results, panels, "alpha")[agent]) for agent in alphas])
    table = {name: _table(results, group, alphas) for name, group in (("modest", modest), ("good", good))}
    best = {name: numbers[found.argmax(axis=1)] for name, found in table.items()}
    one = alphas[int(np.argmax(numbers))]
    lost = table["modest"].max(axis=1) - level(results, modest, [one])
    shown = listed({name: measured(value) for name, value in best.items()})
    return [
        claim(
            "For modest logging policies regularisation can be critical: the best alpha is better than alpha = 1", "2656, 6294",
            measured(lost), panel=data, detail=f"mean best alpha over runs: {shown} (the thesis: about 0.7 for modest ones)",
        ),
        comparable(
            best["modest"] - 0.7, 0.15, "alpha of about 0.7 is best across modest logging policies", "2656, 6294", data,
            "best alpha less 0.7",
        ),
        comparable(
            table["good"].max(axis=1) - level(results, good, [one]), 0.02,
            "For good logging policies alpha = 1 also leads to good performance", "2656, 6294", data,
            "best alpha's value less that of alpha = 1",
        ),
    ]  # fmt: skip


def _look(name: str, place: int) -> Look:
    if name == ADAPTIVE:
        return PALETTE[2], "-"
    if "=" not in name:
        return look_of(name, place)
    share = float(name.rsplit("=", 1)[1])
    return shade(1 if "alpha" in name else 0, 1 - share), "-"


def _figures(results: Results, folder: Path) -> list[Path]:
    # of the swept values only the ends are named
    swept = [list(_swept(results, results.panels, kind)) for kind in ("alpha", "tau")]
    hidden = [name for names in swept for name in names[1:-1]]
    averages: dict[str, dict[str, dict[float, Measured]]] = {}
    for data, panels in by_data(results).items():
        swept_alphas = _swept(results, panels, "alpha")
        modest = [panel for panel in panels if results.parameter(panel, "eta0") <= MIDDLE]
        good = [panel for panel in panels if results.parameter(panel, "eta0") >= MIDDLE]
        averages[data] = {
            label: {float(value): measured(level(results, group, [agent])) for agent, value in swept_alphas.items()}
            for label, group in (("modest logging", modest), ("good logging", good))
            if group
        }
    return [
        lines(
            every_series(results),
            folder,
            "parameters",
            "alpha (orange) and tau (blue): light is large",
            look=_look,
            hidden=hidden,
        ),
        lines(averages, folder, "groups", "Our bound, averaged over logging policies", xlabel="alpha", from_zero=False),
    ]


HYPERPARAMETERS = LEARNED.experiment(
    "es-hyperparameters",
    order=3,
    title="Hyper-parameters of smoothing and of clipping",
    thesis_lines="2646-2656, 6289-6294",
    scales={
        "smoke": SMOKE | {"etas": [0.0, 0.5], "values": 3, "epochs": 1},
        "quick": QUICK | {"etas": [0.0, 0.2, 0.5, 1.0], "values": 6, "runs": 2},
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

__all__ = ["HYPERPARAMETERS"]
