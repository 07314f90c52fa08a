"""The landscapes of a likelihood and of a value estimate on three actions (thesis, Section 7.2).

No contexts; mean rewards (0.9, 0.7, 0.2); pi0 = (0.002, 0.003, 0.995); a log has n = 60 rows. The policy is a softmax of
(theta1, theta2, 1). cLPI and cIPS share the weights w(a) = 1/n sum_i 1[A_i = a] R_i / max(pi0(A_i), tau): the first climbs
sum_a w(a) log pi(a), the second sum_a w(a) pi(a).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manyarms._base.text import in_words
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import finals, lead
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve
from manyarms_thesis.pwll.common import PWLL
from manyarms_thesis.pwll.everywhere import by_panel, for_all
from manyarms_thesis.pwll.finite_softmax import FiniteSoftmax, Objective, lattice
from manyarms_thesis.pwll.landscape_figures import landscapes, shares

REWARDS = np.array([0.9, 0.7, 0.2])
LOGGING = np.array([0.002, 0.003, 0.995])
FIXED = 1.0  # theta3
WINDOW = 10.0  # both free logits lie in [-10, 10]
NEAR = 0.05  # a policy this near (total variation) to the objective's best one has arrived
FLAT = 0.01  # where the gradient is below this part of its largest norm, the ground is flat
ROUGHLY_ANY = 0.95  # of the starts
ROWS = 60  # of the thesis's log
OBJECTIVES: Mapping[str, Objective] = {"cLPI": "likelihood", "cIPS": "value"}
STEPS = {"": 1.0, ", step × 0.1": 0.1, ", step × 10": 10.0}


def problem_of(weights: Array) -> FiniteSoftmax:
    """The three actions with given weights and a fixed third logit."""
    features = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]])
    return FiniteSoftmax(features, np.asarray(weights, dtype=np.float64)[None], np.array([[0.0, 0.0, FIXED]]))


def logged_weights(*, n: int, tau: float, seed: int) -> FiniteSoftmax:
    """A log of n rows, as the weights of the actions."""
    rng = np.random.default_rng(seed)
    actions = rng.choice(3, size=n, p=LOGGING)
    rewards = rng.random(n) < REWARDS[actions]
    return problem_of(np.bincount(actions[rewards], minlength=3) / np.maximum(LOGGING, tau) / n)


def smoothness(problem: FiniteSoftmax, objective: Objective, points: int = 81) -> float:
    """The largest curvature in the window, found on a grid: steps are measured in it, the same way for both objectives."""
    curvatures = np.linalg.eigvalsh(problem.hessian(lattice(-WINDOW, WINDOW, points), objective))
    return float(np.abs(curvatures).max())


def climb_from_grid(*, problem: FiniteSoftmax, steps: int, seed: int, objective: Objective, multiple: float) -> Columns:
    """Gradient ascent from a grid of starts with a step of `multiple` / L, and the shape of the ground on a finer grid."""
    ground = lattice(-WINDOW, WINDOW, 81)
    curvature = np.linalg.eigvalsh(problem.hessian(ground, objective))
    slope = np.linalg.norm(problem.gradient(ground, objective), axis=1)
    away = problem.distance(ground, objective) > NEAR
    largest = float(np.abs(curvature).max())
    starts = lattice(-WINDOW, WINDOW, 9)
    step = multiple / largest if largest > 0 else 0.0
    ends = problem.ascend(starts, objective, step, steps)
    distance = problem.distance(ends, objective)
    return {
        "start1": starts[:, 0],
        "start2": starts[:, 1],
        "distance": distance,
        "arrived": float((distance <= NEAR).mean()),
        "plateau": float((away & (slope < FLAT * slope.max())).mean()),
        "steep": float((slope > 0.1 * slope.max()).mean()),
        "top_curvature": float(curvature.max()) / largest,
        "convex_share": float((curvature[:, -1] > 1e-9 * largest).mean()),
        "weight1": float(problem.weights[0, 0]),
        "weight2": float(problem.weights[0, 1]),
        "weight3": float(problem.weights[0, 2]),
    }


def _cells(sizes: Sizes) -> list[Cell]:
    climbers = {
        f"{name}{words}": Call(climb_from_grid, {"objective": objective, "multiple": multiple})
        for words, multiple in STEPS.items()
        for name, objective in OBJECTIVES.items()
    }
    return [
        Cell(
            f"n={n:,}, τ={tau:g}", {"n": n, "tau": tau}, Call(logged_weights, {"n": n, "tau": tau}), climbers, sizes["steps"],
            sizes["runs"], solve, "" if n == ROWS else f"a log of {n:,} rows",
        )
        for n, tau in sizes["logs"]
    ]  # fmt: skip


def weights_of(results: Results, panel: str) -> Array:
    """(runs, 3) the weights of the actions in each log."""
    return np.stack([results.final(panel, "cLPI", f"weight{a}") for a in (1, 2, 3)], axis=1)


def _claims(results: Results) -> Iterator[Claim]:
    panels = results.panels
    convex = by_panel({panel: measured(results.final(panel, "cIPS", "convex_share")) for panel in panels})
    concave = {panel: for_all(-results.final(panel, "cLPI", "top_curvature"), 1e-12) for panel in panels}
    panel, room = least(concave)
    yield claim(
        "The PWLL landscape is concave", "2254", room, panel=panel, parts=list(concave.values()),
        detail="minus the largest eigenvalue of the Hessian of cLPI on a grid, in parts of the largest curvature, mean over "
        f"logs, none below zero; for cIPS an eigenvalue is above zero on this share of the window: {convex}",
    )  # fmt: skip
    reliable = {panel: measured(results.final(panel, "cLPI", "arrived") - ROUGHLY_ANY) for panel in panels}
    panel, room = least(reliable)
    yield claim(
        "On PWLL, trajectories converge reliably from roughly any initialisation (19 of 20 starts)", "2254", room, panel=panel,
        parts=list(reliable.values()),
        detail=f"share of starts that end within {NEAR} (total variation) of the policy that maximises cLPI, less {ROUGHLY_ANY}; "
        f"step 1/L: {by_panel({panel: measured(results.final(panel, 'cLPI', 'arrived')) for panel in panels})}",
    )  # fmt: skip
    for statement, better, worse, column, detail in (
        (
            "The IPS-based landscape is more sensitive to initialisation: fewer starts arrive at its maximum", "cLPI", "cIPS",
            "arrived", "share of starts that arrive, step 1/L",
        ),
        (
            "The IPS-based landscape consists of flat regions: more of it is flat, away from the maximum, than of PWLL's", "cIPS",
            "cLPI", "plateau", f"share of the window with a gradient below {FLAT:.0%} of its largest, away from the maximum",
        ),
        (
            "The IPS-based landscape is steep in a narrow band, where PWLL has well-scaled gradients", "cLPI", "cIPS", "steep",
            "share of the window with a gradient above 10% of its largest",
        ),
    ):  # fmt: skip
        leads = {p: lead(results, p, better, worse, column) for p in panels}
        panel, difference = least(leads)
        shown = by_panel({p: listed(finals(results, p, list(OBJECTIVES), column)) for p in panels})
        yield claim(
            statement, "2254", difference, panel=panel, detail=f"{detail}: {shown}", parts=list(leads.values())
        )  # fmt: skip
    yield _sensitive(results)


def _sensitive(results: Results) -> Claim:
    """How much the share of starts that arrive depends on the step."""

    def spread(panel: str, name: str) -> Array:
        return np.asarray(np.ptp([results.final(panel, f"{name}{words}", "arrived") for words in STEPS], axis=0))

    differences = {p: measured(spread(p, "cIPS") - spread(p, "cLPI")) for p in results.panels}
    panel, difference = least(differences)
    shown = by_panel({p: listed(finals(results, p, results.methods(p), "arrived")) for p in results.panels})
    return claim(
        "The IPS-based landscape is more sensitive to the learning rate than PWLL's", "2254", difference, panel=panel,
        parts=list(differences.values()),
        detail=f"share of starts that arrive, largest less smallest over steps 0.1/L, 1/L and 10/L: {shown}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    chosen: dict[str, FiniteSoftmax] = {}
    for panel in results.where(tau=min(results.parameter(panel, "tau") for panel in results.panels)):
        weights = weights_of(results, panel)
        kinds = weights > 0
        for kind in np.unique(kinds, axis=0):
            rewarded = in_words([int(a) + 1 for a in np.flatnonzero(kind)]) or "none"
            count = int((kinds == kind).all(axis=1).sum())
            title = f"{panel}; rewarded: {rewarded} ({count} of {len(kinds)} logs)"
            chosen[title] = problem_of(weights[(kinds == kind).all(axis=1)][0])
    steps = next(iter(results.cells.values())).rounds
    yield landscapes(
        chosen, smoothness, steps, folder, "landscapes", "Landscapes of cLPI and cIPS, and gradient ascent on them"
    )
    yield shares(results, list(STEPS), folder, "arrivals", "Starts from which gradient ascent arrives, over logs")


LOGS = ((ROWS, 0.01), (ROWS, 0.001), (6_000, 0.001))

LANDSCAPE = PWLL.experiment(
    "pwll-landscape",
    order=1,
    title="The landscapes of PWLL and of an IPS-based objective on three actions",
    thesis_lines="2221-2254",
    question="Is the landscape of a policy-weighted log-likelihood easier to climb than that of an IPS-based objective, on the "
    "thesis's example of three actions?",
    setting="Three actions without contexts, mean rewards 0.9, 0.7 and 0.2; the third is logged in 99.5% of the rows. On "
    "each of {runs} logs of 60 rows, gradient ascent on cLPI and on cIPS takes {steps} steps from 81 starts.",
    scales={
        "smoke": {"logs": LOGS, "runs": 6, "steps": 500},
        "quick": {"logs": LOGS, "runs": 50, "steps": 2_000},
        "paper": {"logs": LOGS, "runs": 200, "steps": 2_000},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The thesis draws one log of 60 rows, and names neither it nor τ, the window or the steps. With its logging policy 74% "
        "of such logs hold action 3 only: both objectives then want action 3, at infinity. The pictures therefore show one log "
        "of each kind that was drawn (the first), with how often that kind came; τ = 0.001 clips nothing. A log of 6,000 rows, "
        "which is not the thesis's, shows what happens once all actions were rewarded.",
        f"Window [-{WINDOW:g}, {WINDOW:g}]², 9 × 9 starts, gradient ascent with a constant step. L is the largest curvature "
        "within the window, for each log and objective on its own: both objectives get the step that suits them. Arrived: the "
        f"policy is within {NEAR} in total variation of one that maximises the objective (known in closed form).",
        "A step of 10/L is beyond 2/L, where gradient ascent circles around a maximum at a finite place. cLPI has such a "
        "maximum once all actions were rewarded; that of cIPS always lies at infinity, where the ground is flat. So cLPI bears "
        "too small a step well and too large a one badly, and cIPS the other way round.",
    ],
    numbers={"arrived": "starts that arrive", "plateau": "flat, away from the maximum", "steep": "steep part"},
)

__all__ = ["LANDSCAPE", "climb_from_grid", "logged_weights", "problem_of", "smoothness"]
