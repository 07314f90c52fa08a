"""How long gradient ascent stays on the plateau of the one-hot instance (thesis, Section 7.1.3 and Appendix D.2).

One context, K actions, weights w = c 1[a = a_K], softmax of free logits from theta = 0. All other actions stay alike, so
that p = pi(a_K) = 1 / (1 + (K-1) exp(-u)) with u = theta_K - theta_other, and a step of size eta adds to u

    IPS    V = c pi(a_K)         eta c p (1-p) K/(K-1)
    PWLL   U = c log pi(a_K)     eta c (1-p) K/(K-1)

IPS: 1/p - 1 = (K-1) exp(-u) falls in a step by (1/p - 1)(1 - exp(-du)) <= eta c (1-p)² K/(K-1), hence at least
(K - 10)(1 - 1/K) / (eta c) steps to p > 1/10: the thesis's proof has 9/2 in place of K/(K-1). (From any start the fall is
at most eta c ((1-p)² + sum_{a != a_K} pi(a)²) <= 2 eta c.) PWLL: u must grow to
log((K-1)/9) with steps between 0.9 eta c and eta c K/(K-1): about log K / (eta c) steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from manyarms._base.palette import PALETTE, marker_of
from manyarms._base.plotting import drawing, finish
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, claim, least, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, GREY, Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve
from manyarms_thesis.pwll.common import PWLL
from manyarms_thesis.pwll.everywhere import by_panel, extremes, for_all
from manyarms_thesis.pwll.finite_softmax import Objective

ESCAPED = 0.1  # the region is V* - V >= 0.9
PRINTED = 2 / (9 * 11)  # t0 / K with the smallest admissible c
PATIENCE = 25  # no objective here needs more than 25 K steps
LOOKS = {
    "cIPS": (PALETTE[1], "-"),
    "cIPS, η=0.1": (PALETTE[1], "--"),
    "cLPI": (PALETTE[0], "-"),
    "cLPI, η=0.1": (PALETTE[0], "--"),
    "LPI, uniform logging": (PALETTE[2], ":"),
}


def steps_to_escape(
    K: int, objective: Objective, step: float, weight: float = 1.0, most: int | None = None
) -> tuple[float, float]:
    """Steps until pi(a_K) > 1/10 from the uniform policy, and by how much 1/pi(a_K) fell at most in one of them.

    In u alone: two exponentials a step, whatever K. Not a number when `most` steps do not suffice.
    """
    u, scale = 0.0, step * weight * K / (K - 1)
    p, steepest = 1 / K, 0.0
    for t in range(most if most is not None else 10**12):
        if p > ESCAPED:
            return float(t), steepest
        u += scale * (1 - p) * (p if objective == "value" else 1.0)
        before, p = p, 1 / (1 + (K - 1) * math.exp(-u))
        steepest = max(steepest, 1 / before - 1 / p)
    return math.nan, steepest


def steps_from(
    logits: Array, objective: Objective, step: float, weight: float = 1.0, most: int = 10**9
) -> tuple[float, float]:
    """The same from any logits, with all K of them; the last action is a_K."""
    theta = logits.copy()
    hot = np.zeros(len(theta))
    hot[-1] = 1.0
    steepest, before = 0.0, math.nan
    for t in range(most):
        pi = np.exp(theta - theta.max())
        pi /= pi.sum()
        p = float(pi[-1])
        steepest = max(steepest, 1 / before - 1 / p) if t else 0.0
        if p > ESCAPED:
            return float(t), steepest
        theta += step * weight * (hot - pi) * (p if objective == "value" else 1.0)
        before = p
    return math.nan, steepest


Start = tuple[int, Array | None]


def first_logits(*, K: int, spread: float, seed: int) -> Start:
    """The number of actions, and the first logits where they are drawn."""
    if spread == 0:
        return K, None
    return K, spread * np.random.default_rng(seed).standard_normal(K)


def leave_plateau(
    *, problem: Start, steps: int, seed: int, objective: Objective, step: float = 1.0, logging: str = "favourite"
) -> Columns:
    """One ascent; under a uniform logging policy, and without clipping, the rewarded action has the weight 1/K."""
    K, logits = problem
    weight = 1 / K if logging == "uniform" else 1.0
    if logits is None:
        needed, steepest = steps_to_escape(K, objective, step, weight, steps)
        first = 1 / K
    else:
        needed, steepest = steps_from(logits, objective, step, weight, steps)
        shifted = np.exp(logits - logits.max())
        first = float(shifted[-1] / shifted.sum())
    return {"steps": needed, "steepest": steepest, "first": first}


CLIMBERS: Mapping[str, Call] = {
    "cIPS": Call(leave_plateau, {"objective": "value"}),
    "cIPS, η=0.1": Call(leave_plateau, {"objective": "value", "step": 0.1}),
    "cLPI": Call(leave_plateau, {"objective": "likelihood"}),
    "cLPI, η=0.1": Call(leave_plateau, {"objective": "likelihood", "step": 0.1}),
    "LPI, uniform logging": Call(leave_plateau, {"objective": "likelihood", "logging": "uniform"}),
}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    few = {name: CLIMBERS[name] for name in ("cIPS", "cLPI")}
    for K in sizes["K"]:
        problem = Call(first_logits, {"K": K, "spread": 0.0})
        yield Cell(f"K={K:,}", {"K": K, "start": "uniform"}, problem, CLIMBERS, PATIENCE * K, 1, solve)
    for K in sizes["drawn"]:
        problem, parameters = Call(first_logits, {"K": K, "spread": 1.0}), {"K": K, "start": "drawn"}
        yield Cell(f"K={K:,}, drawn starts", parameters, problem, few, 100 * PATIENCE * K, sizes["runs"], solve)


def _steps(results: Results, agent: str) -> tuple[Array, Array]:
    """K and the steps from the uniform start."""
    panels = results.where(start="uniform")
    K = np.array([results.parameter(panel, "K") for panel in panels], dtype=np.float64)
    return K, np.array([results.final(panel, agent, "steps")[0] for panel in panels])


def exponent(K: Array, steps: Array, least_K: float = 1_000.0) -> float:
    """The slope of log steps against log K, over large K."""
    large = least_K <= K if (least_K <= K).sum() > 1 else np.ones(len(K), dtype=bool)
    return float(np.polyfit(np.log(K[large]), np.log(steps[large]), 1)[0])


def _exponents(K: Array, steps: Array, least_K: float = 1_000.0) -> Array:
    """The slopes of log steps against log K from each K to the next, over large K."""
    large = least_K <= K if (least_K <= K).sum() > 1 else np.ones(len(K), dtype=bool)
    return np.diff(np.log(steps[large])) / np.diff(np.log(K[large]))


def _bounds(results: Results) -> Iterator[Claim]:
    """What the proof says, on all instances: sizes, steps, starts."""
    K, ips = _steps(results, "cIPS")
    slow = _steps(results, "cIPS, η=0.1")[1]
    room = {"uniform start, η = 1": ips / (PRINTED * K), "uniform start, η = 0.1": slow / (PRINTED * K)}
    for panel in results.where(start="drawn"):
        first, steps = (results.final(panel, "cIPS", column) for column in ("first", "steps"))
        proved = first <= 1 / 11  # where the proof applies
        if proved.sum() > 1:
            room[panel] = steps[proved] * first[proved] / PRINTED
    parts = {name: for_all(np.log10(values)) for name, values in room.items()}
    nearest, difference = least(parts)
    yield claim(
        "Gradient ascent on an IPS-based objective stays in V* - V ≥ 0.9 for 2K/(9c) iterations, c = 11", "5132-5216",
        difference, panel=nearest, parts=list(parts.values()),
        detail="powers of ten by which the iterations exceed the bound, mean over K or drawn starts (with π₁ ≤ 1/c, and 1/π₁ "
        f"for K), none below zero; iterations over bound: {by_panel({name: extremes(values) for name, values in room.items()})}",
    )  # fmt: skip
    falls = np.concatenate([
        results.final(panel, agent, "steepest")
        for panel in results.panels
        for agent in results.methods(panel)
        if agent.startswith("cIPS")
    ])  # fmt: skip
    yield claim(
        "In an iteration 1/π(a_K) falls by at most 9/2", "5181-5193", for_all(4.5 - falls),
        detail=f"9/2 less the largest fall of a run, mean over all runs, none below zero; falls: {extremes(falls)}; this "
        "project's bound is K/(K-1) from the uniform policy, 2 from any",
    )  # fmt: skip
    sharp = ips - (K - 10) * (1 - 1 / K)
    yield claim(
        "The iterations on the plateau are at least (K - 10)(1 - 1/K): a sharper form of the bound, for η = 1", "",
        for_all(sharp, 1e-9), detail="measured less bound: " + ", ".join(f"{value:.1f}" for value in sharp),
    )  # fmt: skip


def _claims(results: Results) -> Iterator[Claim]:
    yield from _bounds(results)
    K, ips = _steps(results, "cIPS")
    slow, pwll, lpi = (_steps(results, name)[1] for name in ("cIPS, η=0.1", "cLPI", "LPI, uniform logging"))
    slopes = np.concatenate([_exponents(K, ips), _exponents(K, slow)])
    shown = ", ".join(f"{k:,.0f}: {a:,.0f} / {b:,.0f} / {c:,.0f}" for k, a, b, c in zip(K, ips, pwll, lpi, strict=True))
    yield claim(
        "There are instances where gradient ascent on an IPS-based objective remains trapped for a number of iterations in "
        "proportion to K", "2163-2166",
        for_all(0.02 - np.abs(slopes - 1)),
        detail="0.02 less the distance of the exponent from 1, from each K to the next and for two step sizes, none below "
        f"zero; exponents {extremes(slopes, '.4f')}; iterations at K, cIPS / cLPI / LPI: {shown}",
    )  # fmt: skip
    ratios = np.concatenate([ips / pwll, slow / _steps(results, "cLPI, η=0.1")[1]])
    gaps = {"uniform start": for_all(np.log10(ratios))}
    for panel in results.where(start="drawn"):
        both = (results.final(panel, name, "steps") for name in ("cIPS", "cLPI"))
        gaps[panel] = measured(np.log10(np.divide(*(1 + steps for steps in both))))
    panel, gap = least(gaps)
    yield claim(
        "PWLL removes the plateau: it leaves the region in fewer iterations than the IPS-based objective", "2207", gap,
        panel=panel,
        parts=list(gaps.values()),
        detail="powers of ten between the iterations (from drawn starts: between 1 + iterations): "
        + by_panel(gaps),
    )  # fmt: skip
    gentle = _steps(results, "cLPI, η=0.1")[1]
    growth = 0.1 * np.diff(gentle) / np.diff(np.log(K))
    yield claim(
        "For PWLL (cLPI) the iterations grow as log K: between 0.9 and 1.2 for each unit of log K, at η = 1", "",
        for_all(np.minimum(growth - 0.9, 1.2 - growth)),
        detail=f"from each K to the next, measured with η = 0.1 and times η: {extremes(growth)}; the figure is the room "
        "to 0.9 or 1.2",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    with drawing(1, 3) as (figure, axes):
        for agent, (colour, dashes) in LOOKS.items():
            K, steps = _steps(results, agent)
            logarithmic = agent.startswith("cLPI")
            growth = float(np.polyfit(np.log(K), steps, 1)[0])
            label = (
                f"{agent}: {growth:.2f} a unit of log K"
                if logarithmic
                else f"{agent}: exponent {exponent(K, steps):.2f}"
            )
            for axis in axes[: 1 + logarithmic]:
                axis.plot(K, steps, dashes, color=colour, marker=marker_of(colour), markersize=3, label=label)
        axes[0].plot(K, PRINTED * K, color=BLACK, linestyle=":", label="thesis's lower bound 2K/99")
        axes[0].plot(K, (K - 10) * (1 - 1 / K), color=GREY, linestyle=":", label="sharper bound (K-10)(1-1/K)")
        axes[0].set_yscale("log")
        for axis in axes[:2]:
            axis.set_xscale("log")
            axis.set_xlabel("K")
            axis.set_ylabel("iterations on the plateau")
        axes[0].set_title("from the uniform policy")
        axes[1].set_title("PWLL alone")
        axes[1].set_ylim(bottom=0)
        for panel in results.where(start="drawn"):
            for agent in ("cIPS", "cLPI"):
                first, steps = (results.final(panel, agent, column) for column in ("first", "steps"))
                # a start beyond the plateau needs no iteration: drawn at one half
                axes[2].loglog(
                    1 / first,
                    np.maximum(steps, 0.5),
                    marker_of(LOOKS[agent][0]),
                    color=LOOKS[agent][0],
                    markersize=3,
                    alpha=0.6,
                )
        axes[2].set_xlabel("1/π₁(a_K)")
        axes[2].set_ylabel("iterations")
        axes[2].set_title("from drawn starts")
        path = finish(figure, axes, folder, "plateau", "Iterations of gradient ascent on the one-hot instance")
    yield Drawn(
        path,
        "cIPS waits K iterations, cLPI about log K. Left: iterations of gradient ascent from the uniform policy until V* - V < "
        "0.9, one ascent for each K, without chance, and the bounds from below; LPI under a uniform logging policy has weights "
        "of 1/K. Middle: cLPI alone. Right: from drawn starts, a point a start, against one over the first probability "
        "of the best action.",
    )


PLATEAU = PWLL.experiment(
    "pwll-plateau",
    order=2,
    title="Plateaus of IPS-based objectives: iterations to leave them grow with K",
    thesis_lines="2163-2166, 5132-5216",
    question="For how many iterations does gradient ascent stay on the plateau of an IPS-based objective when there are K "
    "actions, and for how many with a policy-weighted log-likelihood?",
    setting="The instance of the thesis's proof: one context, one action of {K} is rewarded, a softmax with a free logit for "
    "each action. Gradient ascent on cIPS and cLPI with two step sizes, from the uniform policy and from {runs} drawn "
    "starts (K = {drawn}).",
    scales={
        "smoke": {"K": [100, 1_000, 10_000], "drawn": [30, 100], "runs": 5},
        "quick": {"K": [100, 1_000, 10_000, 100_000], "drawn": [30, 100, 300], "runs": 15},
        "paper": {"K": [100, 1_000, 10_000, 100_000, 1_000_000], "drawn": [30, 100, 300, 1_000], "runs": 50},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The proposition says O(K); what its proof gives, and what is checked, is a lower bound: at least 2K/99 iterations. K "
        "is the size of the effective action space: restricting the policy to fewer actions shortens the plateau accordingly.",
        "cIPS and cLPI have weight 1 on a_K, as in the lemma (Appendix D.2, π₀(a_K) ≥ τ). The weight scales the gradient: LPI "
        "with a uniform logging policy has the weight 1/K and needs K log K iterations with the same step. PWLL has no "
        "plateau, but the step must suit its weights; with a step of K it needs what cLPI needs.",
        "The uniform start is computed in one variable (all other actions stay alike) and has no chance in it; drawn starts "
        "have standard normal logits, K of them.",
    ],
    numbers={"steps": "iterations to leave", "steepest": "largest fall of 1/π(a_K)"},
)

__all__ = ["PLATEAU", "exponent", "first_logits", "leave_plateau", "steps_from", "steps_to_escape"]
