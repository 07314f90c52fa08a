"""Who leaves the plateau of an IPS-based objective, and when: the mechanism behind collapsed policies, as an experiment.

What is expected, with its derivation, stands in `escape_ascent`: at the uniform policy the gradient of cIPS is that of cLPI
over K. Gradient ascent with a rate that suits cLPI waits about K times as long; Adam does not notice the factor unless it
brings gradients below its eps. A start that is far from uniform (the logging policy's own parameters) has no factor of 1/K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve
from manyarms_thesis.pwll.common import PWLL
from manyarms_thesis.pwll.escape_ascent import (
    Catalogue,
    Optimiser,
    ascend,
    at_zero,
    draw_catalogue,
    first_gradients,
    tuned_rate,
)
from manyarms_thesis.pwll.escape_figures import (
    EPSILONS,
    LEFT,
    OPTIMISERS,
    STARTS,
    figures,
    left_share,
    method_name,
    waited,
)
from manyarms_thesis.pwll.everywhere import by_panel, extremes, for_all
from manyarms_thesis.pwll.finite_softmax import Objective

OBJECTIVES: dict[str, Objective] = {"cIPS": "value", "cLPI": "likelihood"}
ADAM_RATE = 0.01  # that of the experiments with learned policies
TUNING = 200  # steps after which the rates of SGD are compared
# four contexts in eight dimensions, in each of which 100 actions are logged, rewarded about once in 400 times
WORLD = {"contexts": 4, "dim": 8, "k0": 100, "rows": 100_000, "luck": 0.01, "tau": 0.01, "scale": 2.0, "spread": 1.0}
KINDS = 400  # different starts among actions that were never logged
TOLERANCE = 1e-9


def leave_plateau(*, problem: Catalogue, steps: int, seed: int, objective: Objective, epsilon: float | None) -> Columns:
    """One ascent with SGD (no epsilon), at the rate that suits cLPI on this problem, or with Adam at a fixed rate.

    Values are in parts of the value of the policy that maximises cLPI.
    """
    best = problem.value(problem.best_likelihood)
    if epsilon is None:
        optimiser = Optimiser("SGD", tuned_rate(problem, "SGD", 0.0, TUNING))
    else:
        optimiser = Optimiser("Adam", ADAM_RATE, epsilon)
    found = ascend(problem, objective, optimiser, steps, LEFT * best)
    likelihood, value = first_gradients(at_zero(problem))
    own = first_gradients(problem)[objective == "value"]
    return {
        "t": np.array(found.times, dtype=np.float64),
        "value": found.values / best,
        "mode_value": found.mode_values / best,
        "left": float(np.isfinite(found.left)),
        "waited": float(np.nan_to_num(found.left, nan=steps)),
        "rate": optimiser.rate,
        "gradient": float(np.median(np.abs(own[problem.logged]))),
        "identity": float(np.abs(problem.actions * value - likelihood).max() / np.abs(likelihood).max()),
    }


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = {
        method_name(name, words): Call(leave_plateau, {"objective": objective, "epsilon": epsilon})
        for words, epsilon in zip(OPTIMISERS, (None, *EPSILONS), strict=True)
        for name, objective in OBJECTIVES.items()
    }
    for start in sizes["starts"]:
        for K in sizes["K"]:
            # from a zero start all actions that were never logged are of one kind
            world = {"K": K, **WORLD, "kinds": 1 if start == "zero" else KINDS, "start": start}
            parameters = {"K": K, "start": start, "steps": sizes["steps"]}
            yield Cell(
                f"{start} start, K={K:,}", parameters, Call(draw_catalogue, world), methods, sizes["steps"], sizes["runs"], solve
            )  # fmt: skip


def _shown(results: Results, panels: Sequence[str], names: Sequence[tuple[str, str]]) -> str:
    """Steps, and how many runs left where not all did, for a detail."""
    found = {}
    for panel in panels:
        parts = []
        for objective, optimiser in names:
            steps = measured(results.final(panel, method_name(objective, optimiser), "waited"))
            share = float(left_share(results, panel, objective, optimiser).mean())
            parts.append(
                f"{objective}, {optimiser} {steps}" + ("" if share == 1 else f" ({share:.0%} of the runs left)")
            )
        found[panel] = ", ".join(parts)
    return by_panel(found)


def _growing(results: Results, start: str, optimiser: str) -> dict[str, Measured]:
    """How much longer cIPS waits at one K than at the one before, in powers of ten.

    Only where most runs left at the smaller K: two that both never left do not compare.
    """
    panels = sorted(results.where(start=start), key=lambda panel: int(results.parameter(panel, "K")))
    steps = [
        (before, after)
        for before, after in pairwise(panels)
        if left_share(results, before, "cIPS", optimiser).mean() > 0.5
    ] or list(pairwise(panels))[:1]  # fmt: skip
    return {
        f"{before} to {after}": measured(waited(results, after, "cIPS", optimiser))
        - measured(waited(results, before, "cIPS", optimiser))
        for before, after in steps
    }


def _all(statement: str, lines: str, parts: dict[str, Measured], detail: str) -> Claim:
    panel, difference = least(parts)
    return claim(statement, lines, difference, panel=panel, detail=detail, parts=list(parts.values()))


def _claims(results: Results) -> Iterator[Claim]:
    yield from _of_gradient_ascent(results)
    yield from _of_adam(results)
    yield from _of_values(results)


def _of_gradient_ascent(results: Results) -> Iterator[Claim]:
    deviations = np.concatenate(
        [results.final(panel, method_name("cIPS", "SGD"), "identity") for panel in results.panels]
    )
    yield claim(
        "At the uniform policy the gradient of cIPS is that of cLPI over K", "",
        for_all(np.log10(TOLERANCE) - np.log10(np.maximum(deviations, 1e-18))),
        detail=f"powers of ten by which the largest difference, over the largest entry, is below {TOLERANCE:g}; differences: "
        + extremes(deviations),
    )  # fmt: skip
    zero = results.where(start="zero")
    yield _all(
        "Gradient ascent on an IPS-based objective stays on its plateau the longer the more actions there are", "",
        _growing(results, "zero", "SGD"),
        "powers of ten, from one K to the next, as long as runs leave within the budget; steps: "
        + _shown(results, zero, [("cIPS", "SGD")]),
    )  # fmt: skip
    yield _all(
        "PWLL has no such plateau: cLPI leaves within the budget from all starts, with all optimisers, at all K", "",
        {
            f"{panel}, {optimiser}": measured(
                np.log10(float(results.parameter(panel, "steps"))) - waited(results, panel, "cLPI", optimiser)
            )
            for panel in results.panels
            for optimiser in OPTIMISERS
        },
        "powers of ten of the budget that are left over; steps with SGD: " + _shown(results, results.panels, [("cLPI", "SGD")]),
    )  # fmt: skip
    near = [
        panel
        for panel in results.panels
        if results.parameter(panel, "K") >= 100_000 and results.parameter(panel, "start") != "logging"
    ]
    if near:
        yield _all(
            "With SGD at the rate that suits cLPI, cIPS never leaves a zero or random start of K ≥ 100,000 within the budget, "
            "and cLPI does", "",
            {
                panel: measured(left_share(results, panel, "cLPI", "SGD") - left_share(results, panel, "cIPS", "SGD") - 0.5)
                for panel in near
            },
            "share of the runs that left, cLPI less cIPS, less one half; steps: "
            + _shown(results, near, [("cIPS", "SGD"), ("cLPI", "SGD")]),
        )  # fmt: skip
    starts = {
        str(results.parameter(panel, "K")): (panel, other)
        for panel in zero
        for other in results.where(start="logging", K=results.parameter(panel, "K"))
    }
    if starts:
        yield _all(
            "From the logging policy's own parameters SGD leaves the plateau of cIPS sooner than from zero", "",
            {
                f"K={int(K):,}": measured(waited(results, panel, "cIPS", "SGD"))
                - measured(waited(results, other, "cIPS", "SGD"))
                for K, (panel, other) in starts.items()
            },
            "powers of ten (at least, where runs did not leave); steps: "
            + _shown(results, results.where(start="logging"), [("cIPS", "SGD")]),
        )  # fmt: skip


def _of_adam(results: Results) -> Iterator[Claim]:
    small, usual, large = OPTIMISERS[1:]
    yield _all(
        "Adam cancels the factor: with ε = 1e-14 cIPS leaves in less than twice the steps of cLPI, from all starts and "
        "at all K", "",
        {
            panel: measured(
                np.log10(2) + waited(results, panel, "cLPI", small) - waited(results, panel, "cIPS", small)
            )
            for panel in results.panels
        },
        "powers of ten that are left below a factor of two; steps: "
        + _shown(results, results.panels, [("cIPS", small), ("cLPI", small)]),
    )  # fmt: skip
    panel = max(results.where(start="zero"), key=lambda one: int(results.parameter(one, "K")))
    gradients = measured(results.final(panel, method_name("cIPS", small), "gradient"))
    yield _all(
        "Unless gradients sink below its ε: from a zero start at the largest K, cIPS stays longer with ε = 1e-8 than with "
        "1e-14, and with 1e-6 than with 1e-8", "",
        {
            f"{before} to {after}": measured(waited(results, panel, "cIPS", after) - waited(results, panel, "cIPS", before))
            for before, after in ((small, usual), (usual, large))
        },
        f"{panel}; powers of ten; a logged action's gradient of cIPS at the start: {gradients}; steps: "
        + _shown(results, [panel], [("cIPS", one) for one in (small, usual, large)]),
    )  # fmt: skip
    yield _all(
        "With ε = 1e-6, and gradients of cIPS below it, the time on Adam's plateau grows with K, as on that of SGD", "",
        _growing(results, "zero", large),
        "powers of ten, from one K to the next, as long as runs leave; steps: "
        + _shown(results, results.where(start="zero"), [("cIPS", large)]),
    )  # fmt: skip


def _of_values(results: Results) -> Iterator[Claim]:
    def final(panel: str, objective: str, optimiser: str, column: str) -> Array:
        return results.final(panel, method_name(objective, optimiser), column)

    small = OPTIMISERS[1]
    ahead = {
        panel: measured(final(panel, "cIPS", small, "value") - final(panel, "cLPI", small, "value"))
        for panel in results.panels
    }
    yield _all(
        "Once it has left, cIPS ends above cLPI in the value of drawn actions: its best policy plays one action, cLPI's "
        "spreads", "",
        ahead, "Adam with ε = 1e-14, in parts of the value of the policy that maximises cLPI: "
        + by_panel({panel: f"{measured(final(panel, 'cIPS', small, 'value'))} against "
                    f"{measured(final(panel, 'cLPI', small, 'value'))}" for panel in results.panels}),
    )  # fmt: skip
    K = max(results.levels("K"))
    modes = {
        start: measured(final(panel, "cIPS", "SGD", "mode_value"))
        for start in ("zero", "random")
        for panel in results.where(start=start, K=K)
    }
    if len(modes) == 2:
        yield claim(
            "A policy that never left looks well by its most probable action from a zero start, and not from a random one", "",
            modes["zero"] - modes["random"], panel=f"K={K:,}",
            detail="value of the most probable action with cIPS and SGD, in parts of the value of the policy that "
            "maximises cLPI: "
            + by_panel({f"{start} start": value for start, value in modes.items()})
            + ". From zero the least slope orders actions rightly; a random start orders them before any step does",
        )  # fmt: skip


ESCAPE = PWLL.experiment(
    "pwll-escape",
    order=5,
    title="Leaving the plateau: cIPS and cLPI under SGD and Adam, K from a thousand to a million",
    thesis_lines="2147-2198, 5132-5216",
    question="Why do policies that are learned with an IPS-based objective stay where they start when there are many actions, "
    "and which optimisers and starts free them?",
    setting="A log of 4 contexts, in each of which 100 of K actions (K = {K}) are ever shown, and rewarded about once in 400 "
    "times. cIPS and cLPI climb it with exact gradients for {steps} steps from {starts} starts, by SGD and by Adam with three "
    "values of ε; {runs} logs for each.",
    scales={
        "smoke": {"K": [1_000, 10_000], "starts": [*STARTS], "steps": 1_500, "runs": 3},
        "quick": {"K": [1_000, 10_000, 100_000, 1_000_000], "starts": [*STARTS], "steps": 5_000, "runs": 5},
        "paper": {"K": [1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000], "starts": [*STARTS], "steps": 50_000, "runs": 10},
    },
    build=_cells,
    claims=_claims,
    figures=figures,
    remarks=[
        "The derivation: pi(a|x) ∝ exp(xᵀβ_a); a row's gradient of π(A|X) is π(A|X) times that of log π(A|X), and at the "
        "uniform policy π(A|X) = 1/K for all rows. So the gradient of cIPS is that of cLPI over K, exactly. Adam divides by "
        "the size of gradients, and the factor with it, unless ε is larger than they are; then it is SGD with a rate of rate/ε.",
        "The plateau counts as left once the value of drawn actions is half of that of the policy that maximises cLPI (w/W, "
        f"known in closed form). SGD has, for each log and start, the rate of nine from 1 to 10,000 after whose {TUNING} steps "
        f"cLPI is largest, for both objectives; Adam has {ADAM_RATE:g}, as in the experiments with learned policies, and is "
        "not tuned: a larger rate shortens its waits. Gradients are exact (all rows), so SGD is gradient ascent here.",
        "Embeddings are normal with standard deviation 2 along a context; the logging policy plays the 100 actions of largest "
        "score, with softmax probabilities, 100,000 times a context; τ = 0.01. Mean rewards are 0.01 u³, u uniform, for "
        "actions that may be shown, and 0 for all others. Random starts are standard normal; the logging start is the "
        "actions' embeddings.",
        "Two settings were chosen after pilot runs of one seed, so that the effect of ε falls among these K. With rewards a "
        "hundred times as frequent, and Adam's rate tuned for cLPI (0.3), ε = 1e-6 cost little at K = 1,000,000: 39 steps "
        "against 14 of cLPI. With these rewards and a tuned rate (1, the largest tried) it was 438 against 5, and cIPS left. "
        "So that Adam stays is a matter of rewards, rate and budget; that its wait depends on gradients over ε is what "
        "is tested.",
        "SGD has one rate for both objectives. A rate of its own for cIPS, up to K times as large, was not tried; the "
        "statement is that a rate which suits cLPI does not move cIPS, not that no rate does.",
        "Actions that were never logged and start alike stay alike. From a zero start that makes all of them one kind; random "
        f"and logging starts have {KINDS} different vectors for them, each shared by an equal number of actions. That is "
        "exact, and the same as K separate actions with these starts (tested).",
    ],
    numbers={"left": "runs that left", "waited": "steps until then", "value": "value, drawn actions",
             "mode_value": "value, most probable action", "rate": "rate", "gradient": "gradient at the start"},
)  # fmt: skip

__all__ = ["ESCAPE", "leave_plateau"]
