"""How much alpha and tau matter: 20 values of each, an adaptive alpha, modest and good logging policies (thesis, Section 8.5)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from manyarms._base.palette import PALETTE
from manyarms._base.typing import Array
from manyarms_thesis.es.common import (
    COMPARABLE,
    LEARNED,
    OURS,
    PAPER,
    QUICK,
    SAKHI2,
    SMOKE,
    Method,
    above,
    cells,
    every,
    left_out_best,
    on_data_of_the_thesis,
    tuned_lead,
)
from manyarms_thesis.es.figures import every_series, lines, look_of, shade
from manyarms_thesis.harness.claims import Claim, Measured, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, Look
from manyarms_thesis.harness.learning import Compared, by_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

ADAPTIVE = f"{OURS}, adaptive alpha"
MIDDLE = 0.5  # modest logging policies have an eta_0 up to here, good ones from here on
SMALLEST = 1e-5
MINIMAL = 0.1  # less than this share of the best gain is minimal, and more than it a large margin
NEAR = 0.15  # alphas of about 0.7


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
    informed, logging = above(on, 0.0), on.over(alphas[0], "logging_value")
    # (runs, panels, values of the parameter)
    ours, theirs = (np.stack([on.over(agent) for agent in agents], axis=2) for agents in (alphas, taus))
    best, best_tau = ours.max(axis=2), theirs.max(axis=2)
    lost = best - on.over(ADAPTIVE)
    yield every(
        on, _by_panel(on, COMPARABLE * np.ptp(ours, axis=2) - lost),
        "An adaptive alpha is comparable with the best alpha: it loses less than a quarter of what the worst alpha loses",
        "2646, 6292",
        f"adaptive below the best alpha of each run by {listed(_by_panel(on, lost))}; the worst alpha by "
        f"{listed(_by_panel(on, np.ptp(ours, axis=2)))}; a quarter of the latter less the former",
    )  # fmt: skip
    yield every(
        on, tuned_lead(informed, alphas, taus),
        "Our method with its best alpha outperforms Sakhi et al. 2 with its best tau when the logging policy is not uniform",
        "2646", "our best alpha less the best tau, both chosen on the other runs",
    )  # fmt: skip
    yield _wide_range(informed, alphas, taus)
    spread, spread_of_tau = (np.ptp(_table(informed, agents), axis=1) for agents in (alphas, taus))
    yield on.claim(
        "There is no very bad choice of alpha, in contrast with tau: the worst loses less than the worst tau", "2646, 6293",
        measured(spread_of_tau - spread),
        f"largest less smallest mean value over eta0 > 0: alpha {measured(spread)}, tau {measured(spread_of_tau)}",
    )  # fmt: skip
    start = _start(on, taus[0])
    learned = (
        f"the Gaussian policy at the start is above the logging policy by {listed(_by_panel(on, start - logging))}"
    )
    for statement, stated, below in (
        (
            "tau = 1e-5 leads to minimal improvement upon all logging policies: below a tenth of the best tau's",
            "2646",
            logging,
        ),
        # a Gaussian policy with the logging policy's parameters is better than that before it has learned anything
        ("tau = 1e-5 learns next to nothing: less than a tenth of what the best tau adds to the start", "", start),
    ):
        gained, gained_best = theirs[:, :, 0] - below, best_tau - below
        yield every(
            on, _by_panel(on, MINIMAL * gained_best - gained), statement, stated,
            f"tau = 1e-5 gains {listed(_by_panel(on, gained))}; the best tau {listed(_by_panel(on, gained_best))}; {learned}; a "
            "tenth of the best tau's gain less that of 1e-5",
        )  # fmt: skip
    yield from _groups(on)


def _start(on: Compared, agent: str) -> Array:
    """(runs, panels): what the policy is worth that learning starts from."""
    return np.stack([on.results.values(panel, agent, "value")[:, 0] for panel in on.panels], axis=1)


def _by_panel(on: Compared, table: Array) -> dict[str, Measured]:
    """The columns of a table (runs, panels), measured."""
    return {panel: measured(column) for panel, column in zip(on.panels, table.T, strict=True)}


def _wide_range(informed: Compared, alphas: Sequence[str], taus: Sequence[str]) -> Claim:
    """The middle one of all alphas is above the best tau exactly where at least half of them are."""
    ours = np.sort(np.stack([informed.over(agent) for agent in alphas], axis=2), axis=2)
    theirs = np.max([informed.over(agent) for agent in taus], axis=0)
    return every(
        informed, _by_panel(informed, ours[:, :, len(alphas) // 2] - theirs),
        "For a wide range of alpha, half of those tried or more, our method outperforms Sakhi et al. 2 with its best tau when "
        "the logging policy is not uniform", "6293",
        f"of {len(alphas)} alphas the middle one by value, less the best tau of each run; alphas above that tau, mean over runs: "
        + listed(_by_panel(informed, np.asarray((ours > theirs[:, :, None]).sum(axis=2), dtype=np.float64))),
    )  # fmt: skip


def _groups(on: Compared) -> Iterator[Claim]:
    """Modest and good logging policies (thesis, Section 8.5 and Appendix E.3.4)."""
    groups, alphas = _logging(on), _swept(on.results, "alpha")
    if not all(group.panels for group in groups.values()):
        return
    numbers = np.array([float(value) for value in alphas.values()])
    table = {name: _table(group, alphas) for name, group in groups.items()}
    best = {name: on_a_grid(numbers[found.argmax(axis=1)], numbers) for name, found in table.items()}
    lost = {name: left_out_best(found) - found[:, numbers.argmax()] for name, found in table.items()}
    yield on.claim(
        "For modest logging policies regularisation can be critical: the best alpha beats alpha = 1", "2656, 6294",
        measured(lost["modest"]), f"mean best alpha over runs: {listed(best)} (the thesis: about 0.7 for modest ones); for the "
        "figure it is chosen on the other runs",
    )  # fmt: skip
    yield about(on, table["modest"], numbers)
    good = groups["good"]
    gain = left_out_best(table["good"]) - _start(good, alpha_name(1.0)).mean(axis=1)
    yield on.claim(
        "For good logging policies alpha = 1 also leads to good performance: it learns three quarters of the best alpha's gain",
        "2656, 6294", measured(COMPARABLE * gain - lost["good"]),
        f"the best alpha, chosen on the other runs, is {measured(gain)} above the policy that learning starts from, and "
        f"{measured(lost['good'])} above alpha = 1; a quarter of the former less the latter",
    )  # fmt: skip
    yield on.claim(
        "The better the logging policy the less regularisation is needed: the best alpha is higher for good than for modest ones",
        "2656, 6294", best["good"] - best["modest"],
        f"mean best alpha over runs: {listed(best)}, with the error of a grid where all runs agree",
    )  # fmt: skip
    clipped = np.max([good.over(agent) for agent in _swept(on.results, "tau")], axis=0)
    leads, gains = good.over(alpha_name(1.0)) - clipped, clipped - good.over(alpha_name(1.0), "logging_value")
    yield every(
        on, _by_panel(good, leads - MINIMAL * gains),
        "Our bound applied to standard IPS outperforms clipping by a large margin, a tenth of its gain or more, when the logging "
        "policy is relatively well-performing", "2656",
        f"alpha = 1 above the best tau of each run by {listed(_by_panel(good, leads))}; less a tenth of what the latter gains on "
        "the logging policy",
    )  # fmt: skip


def on_a_grid(picked: Array, grid: Array) -> Measured:
    """The mean of what runs picked from a grid; it is not known better than to a step of it, even where all runs agree."""
    found = measured(picked)
    return replace(
        found, standard_error=max(found.standard_error, float(np.diff(np.sort(grid)).mean()) / math.sqrt(12))
    )


def about(on: Compared, table: Array, numbers: Array) -> Claim:
    """The best alpha near 0.7 is above the best one below, and above the best one beyond: table (runs, alphas)."""
    below, near, beyond = numbers < 0.7 - NEAR - 1e-9, np.abs(numbers - 0.7) <= NEAR + 1e-9, numbers > 0.7 + NEAR + 1e-9
    statement, lines = "alpha of about 0.7 is best across modest logging policies", "2656, 6294"
    if not (below.any() and near.any() and beyond.any()):  # a few values only
        return on.claim(
            statement, lines, Measured(math.nan, math.nan, 0), f"no alpha of about 0.7 among {len(numbers)}"
        )
    best = left_out_best(table[:, near])
    apart = {
        f"below {0.7 - NEAR:.2f}": measured(best - left_out_best(table[:, below])),
        f"above {0.7 + NEAR:.2f}": measured(best - left_out_best(table[:, beyond])),
    }
    what = f"the best alpha within {NEAR:g} of 0.7 less the best one elsewhere, each chosen on the other runs"
    return every(on, apart, statement, lines, what)


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
        "smoke": SMOKE | {"etas": [0.0, 0.5], "values": 5, "epochs": 1},
        "quick": QUICK | {"etas": [0.0, 0.2, 0.5, 1.0], "values": 11, "runs": 5},
        "paper": PAPER
        | {"data": ["mnist", "fashion-mnist", "emnist"], "etas": [round(0.1 * i, 1) for i in range(11)], "values": 20},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Values are evenly spaced from 1e-5 to 1, both included: the thesis says (0, 1) and speaks of tau = 1e-5 and alpha = 1.",
        "The thesis gives no numbers for “comparable”, “minimal”, “good” and “a large margin”. Here a loss is comparable, or "
        "a performance good, within a quarter of what is at stake: what the worst alpha loses, or what the best one adds to the "
        "policy that learning starts from; a tenth of a gain is where minimal ends and a large margin begins.",
    ],
)

__all__ = ["HYPERPARAMETERS", "about", "on_a_grid"]
