"""Local maxima of an IPS-based objective, exponentially many in the number of actions (thesis, Section 7.1.3 and Appendix D.2).

The thesis cites a theorem and gives no instance. With one context and a free logit for each action there is none: the
gradient is pi(a)(r(a) - V), which vanishes nowhere unless all rewards are equal. With shared features it is true, and this
is an instance. theta in R^d; for each coordinate j eight actions:

    one at e_j with reward 1, one at -e_j with reward 1 - delta_j, one each at ±b e_j with reward 0, four at 0 with reward 0.

V = N/D with N = sum_j N_j(theta_j), D = sum_j D_j(theta_j). Where V = v is stationary, so is sum_j h_j, h_j = N_j - v D_j,
coordinate by coordinate, and the Hessian of V there is diag(h_j'') / D. Each h_j' is a sum of four exponentials whose signs
alternate: at most three zeros, a minimum between two maxima. A choice of a maximum in each coordinate fixes v (the sum of
the h_j falls in v and must be 0): at most 2^d local maxima, and 2^d = 2^(K/8) where v is small enough for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.palette import PALETTE, marker_of
from manyarms._base.plotting import drawing, finish
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, claim, least, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve
from manyarms_thesis.pwll.common import PWLL
from manyarms_thesis.pwll.everywhere import by_panel, for_all
from manyarms_thesis.pwll.finite_softmax import FiniteSoftmax, Objective, climb, lattice, strict_maxima

WALL = 1.25  # b
CENTRE = 4  # actions at 0 for each coordinate
PER_COORDINATE = CENTRE + 4
DELTAS = (0.02, 0.12)
BLOCK = 256  # starts climbed at a time
OBJECTIVES: Mapping[str, Objective] = {"IPS": "value", "PWLL": "likelihood"}


def instance(deltas: Array) -> FiniteSoftmax:
    """The construction for these deltas: 8 d actions, one context. Weights are the rewards (π₀(a) ≥ τ, n large)."""
    d = len(deltas)
    unit = np.eye(d)
    features = np.concatenate([unit, -unit, WALL * unit, -WALL * unit, np.zeros((CENTRE * d, d))])
    rewards = np.concatenate([np.ones(d), 1 - deltas, np.zeros((2 + CENTRE) * d)])
    return FiniteSoftmax(features[None], rewards[None])


def drawn_instance(*, dim: int, seed: int) -> FiniteSoftmax:
    """The construction with drawn deltas."""
    return instance(np.random.default_rng(seed).uniform(*DELTAS, size=dim))


def maxima_from(problem: FiniteSoftmax, starts: Array, objective: Objective) -> tuple[Array, Array]:
    """The distinct strict local maxima that are reached from the starts, and how many starts reach each."""
    ends = np.concatenate([climb(problem, starts[i : i + BLOCK], objective) for i in range(0, len(starts), BLOCK)])
    sure = np.concatenate(
        [strict_maxima(problem, ends[i : i + BLOCK], objective, 1e-6) for i in range(0, len(ends), BLOCK)]
    )
    # + 0.0 turns -0.0 into 0.0, which np.unique would keep apart
    places, counts = np.unique(np.round(ends[sure], 3) + 0.0, axis=0, return_counts=True)
    return places, counts.astype(np.float64)


def corners(dim: int, side: float = 1.0) -> Array:
    """(2^dim, dim) all choices of a side in each coordinate."""
    return lattice(-side, side, 2, dim)


def find_maxima(*, problem: FiniteSoftmax, steps: int, seed: int, objective: Objective) -> Columns:
    """Maxima from `steps` drawn starts and from all corners, and what the policies there are worth."""
    d = problem.features.shape[2]
    drawn = 3.0 * np.random.default_rng(seed).standard_normal((steps, d))
    places, counts = maxima_from(problem, drawn, objective)
    every, _ = maxima_from(problem, corners(d, 4.0), objective)
    worth = problem.of(every, "value")  # of both objectives: the true value, as weights are rewards
    best = int(problem.of(places, objective).argmax())
    return {
        "found": len(places),
        "enumerated": len(every),
        "best_share": float(counts[best] / steps),
        "stuck": float(1 - counts.sum() / steps),
        "lowest": float(worth.min()),
        "highest": float(worth.max()),
        "mean": float((problem.of(places, "value") * counts).sum() / counts.sum()),
    }


def starts_for(dim: int) -> int:
    """Starts enough to meet 2^dim equally likely maxima all at least once, but for a chance of about e^-4."""
    return int(np.ceil(2**dim * (dim * np.log(2) + 4)))


def _cells(sizes: Sizes) -> list[Cell]:
    climbers = {name: Call(find_maxima, {"objective": objective}) for name, objective in OBJECTIVES.items()}
    return [
        Cell(
            f"K={PER_COORDINATE * d}", {"K": PER_COORDINATE * d, "d": d}, Call(drawn_instance, {"dim": d}), climbers,
            starts_for(d), sizes["runs"], solve,
        )
        for d in sizes["d"]
    ]  # fmt: skip


def _claims(results: Results) -> Iterator[Claim]:
    panels = results.panels

    def final(column: str, name: str = "IPS") -> dict[str, Array]:
        """(runs,) by panel."""
        return {panel: results.final(panel, name, column) for panel in panels}

    d = np.array([results.parameter(panel, "d") for panel in panels], dtype=float)
    found, every = (np.stack(list(values.values())) for values in (final("found"), final("enumerated")))
    shown = ", ".join(
        f"{panel}: {np.median(a):.0f} of {2**n:.0f}" for panel, a, n in zip(panels, found, d, strict=True)
    )
    yield claim(
        "An IPS-based objective of one context can have a number of local maxima that is exponential in K", "2168-2171, "
        "5218-5238",
        measured(_doublings(d, every)),
        detail="doublings of the number of strict local maxima for each 8 actions, over instances; from drawn starts alone "
        f"{measured(_doublings(d, found))}, and of the maxima were found so: {shown}",
    )  # fmt: skip
    yield claim(
        "This instance has 2^(K/8) local maxima, all of which are found", "", for_all(-np.abs(every - 2.0 ** d[:, None]), 0.5),
        detail="one half less the difference between the strict local maxima found from all corners and 2^(K/8), over instances",
    )  # fmt: skip
    single = np.stack(list(final("found", "PWLL").values())) - 1 + np.stack(list(final("stuck", "PWLL").values()))
    yield claim(
        "PWLL is concave: it has one maximum on the same instances, reached from every start", "2207-2211", for_all(-single, 0.5),
        detail="one half less the number of further maxima and the share of starts that end elsewhere, over instances",
    )  # fmt: skip
    low, high, mean, pwll = final("lowest"), final("highest"), final("mean"), final("mean", "PWLL")
    values = by_panel({
        p: f"IPS {measured(low[p])} to {measured(high[p])}, mean over starts {measured(mean[p])}, PWLL {measured(pwll[p])}"
        for p in panels
    })  # fmt: skip
    lost = {panel: measured(high[panel] - mean[panel]) for panel in panels}
    nearest, difference = least(lost)
    yield claim(
        "Local maxima are worse than the best one: a start ends below it on average", "2168-2173", difference, panel=nearest,
        parts=list(lost.values()), detail=f"value of the best maximum less the mean over starts; values: {values}",
    )  # fmt: skip
    shares = {panel: measured(share) for panel, share in final("best_share").items()}
    yield claim(
        "The chance of a start to reach the best maximum falls with K", "", shares[panels[0]] - shares[panels[-1]],
        panel=f"{panels[0]} to {panels[-1]}", detail=by_panel(shares),
    )  # fmt: skip
    below = {panel: measured(low[panel] - pwll[panel]) for panel in panels}
    nearest, difference = least(below)
    yield claim(
        "One maximum need not be a good one: PWLL's is worth less here than the worst local maximum of IPS", "", difference,
        panel=nearest, parts=list(below.values()), detail="value of the worst maximum of IPS less that of PWLL's; "
        f"values: {values}",
    )  # fmt: skip


def _doublings(d: Array, numbers: Array) -> Array:
    """(runs,) the slope of log2 of the numbers (panels, runs) against d."""
    return np.array([np.polyfit(d, np.log2(column), 1)[0] for column in numbers.T])


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    K = np.array([results.parameter(panel, "K") for panel in results.panels], dtype=float)

    def mean(name: str, column: str) -> Array:
        """(panels,) over the runs."""
        return np.array([results.final(panel, name, column).mean() for panel in results.panels])

    with drawing(1, 3) as (figure, axes):
        for name, colour in (("IPS", PALETTE[1]), ("PWLL", PALETTE[0])):
            look: dict[str, Any] = {"color": colour, "marker": marker_of(colour), "markersize": 4}
            axes[0].semilogy(K, mean(name, "found"), label=name, **look)
            axes[2].plot(K, mean(name, "mean"), **look)
        axes[0].semilogy(K, 2 ** (K / PER_COORDINATE), ":", color=BLACK, label="2^(K/8)")
        axes[0].set_ylabel("local maxima found")
        axes[0].set_xlabel("K")
        low, high = mean("IPS", "lowest"), mean("IPS", "highest")
        axes[2].fill_between(K, low, high, color=PALETTE[1], alpha=0.2, linewidth=0, label="IPS, worst to best maximum")
        axes[2].set_xlabel("K")
        axes[2].set_ylabel("value reached, mean over starts")
        _picture(axes[1])
        path = finish(figure, axes, folder, "maxima", "Local maxima of an IPS-based objective and of PWLL")
    yield Drawn(
        path,
        "IPS has 2^(K/8) local maxima, PWLL one, between them and worth less. Left: local maxima that ascents from drawn "
        f"starts found, mean over {results.cells[results.panels[0]].runs} instances for each K. Middle: the value on an "
        "instance with two parameters (brighter is higher), with the maxima of both objectives. Right: the value that is "
        "reached, mean over starts and instances, and the range from the worst to the best local maximum of IPS.",
    )


def _picture(axis: Any) -> None:
    """The instance with two coordinates."""
    problem, points = instance(np.array([0.05, 0.1])), 81
    ground = lattice(-9.0, 9.0, points)
    values = problem.of(ground, "value").reshape(points, points)
    axis.contourf(*(ground[:, i].reshape(points, points) for i in range(2)), values, levels=24, cmap="viridis")
    for objective, marker, colour, label in (
        ("value", "^", "#ffffff", "maxima of IPS (d = 2)"), ("likelihood", "s", "#e34a33", "maximum of PWLL (d = 2)"),
    ):  # fmt: skip
        places, _ = maxima_from(problem, corners(2, 4.0), objective)  # type: ignore[arg-type]
        axis.plot(*places.T, marker, color=colour, markeredgecolor=BLACK, label=label)
    axis.set_title("value, K = 16")
    axis.set_xlabel("θ₁")
    axis.set_ylabel("θ₂")
    axis.grid(False)


MAXIMA = PWLL.experiment(
    "pwll-maxima",
    order=3,
    title="Local maxima of IPS-based objectives, exponentially many in K",
    thesis_lines="2168-2171, 5218-5238",
    question="Can an IPS-based objective have exponentially many local maxima, are they poor, and what does a policy-weighted "
    "log-likelihood have in their place?",
    setting="Instances of one context with {d} parameters and eight times as many actions, made to have a local maximum for "
    "each choice of sides; {runs} for each size. Newton's method climbs IPS and PWLL from drawn starts and from all corners.",
    scales={
        "smoke": {"d": [1, 2, 3, 4], "runs": 3},
        "quick": {"d": [1, 2, 3, 4, 5, 6], "runs": 5},
        "paper": {"d": [1, 2, 3, 4, 5, 6, 7, 8], "runs": 20},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The proof refers to a theorem elsewhere and has no instance. This one is this project's own; its number of local "
        "maxima, 2^(K/8), is proved in pwll/maxima.py and found by ascent here. The proposition needs shared features φ(x, a): "
        "with one context and a free logit for each action (the heavyweight form with a single context) a linear objective has "
        "no stationary point at all unless all rewards are equal, only plateaus.",
        "Ascent is Newton's method with the absolute values of the Hessian's eigenvalues and a bounded step, which leaves "
        "saddles; every end is checked to be a strict local maximum (no gradient, all curvatures negative). Drawn starts are "
        "normal with standard deviation 3. Rewards stand for the linearised ones, π₀ uniform, n large.",
        "One maximum need not be a good one. The instance is made to have many maxima; PWLL imitates the logged rewards, which "
        "point to both sides of every coordinate alike, and its policy stays between them: it is worth less here (0.24) than "
        "even the worst local maximum of IPS (0.29).",
    ],
    numbers={"found": "maxima from drawn starts", "enumerated": "maxima from all corners", "best_share": "starts at the best one",
             "mean": "value reached"},
)  # fmt: skip

__all__ = ["MAXIMA", "corners", "drawn_instance", "find_maxima", "instance", "maxima_from"]
