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

from manyarms._base.palette import PALETTE
from manyarms._base.plotting import drawing, finish
from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import BLACK, GREY
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve
from manyarms_thesis.pwll.common import PWLL
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


def _exact(value: float) -> Measured:
    """A figure without chance in it."""
    return Measured(value, 0.0)


def _steps(results: Results, agent: str) -> tuple[Array, Array]:
    """K and the steps from the uniform start."""
    panels = results.where(start="uniform")
    K = np.array([results.parameter(panel, "K") for panel in panels], dtype=np.float64)
    return K, np.array([results.final(panel, agent, "steps")[0] for panel in panels])


def exponent(K: Array, steps: Array, least_K: float = 1_000.0) -> float:
    """The slope of log steps against log K, over large K."""
    large = least_K <= K if (least_K <= K).sum() > 1 else np.ones(len(K), dtype=bool)
    return float(np.polyfit(np.log(K[large]), np.log(steps[large]), 1)[0])


def _claims(results: Results) -> Iterator[Claim]:
    K, ips = _steps(results, "cIPS")
    slow, pwll, lpi = (_steps(results, name)[1] for name in ("cIPS, η=0.1", "cLPI", "LPI, uniform logging"))
    early = {
        f"K={k:,.0f}{words}": float(needed - PRINTED * k)
        for words, steps in (("", ips), (", η=0.1", slow))
        for k, needed in zip(K, steps, strict=True)
    }
    for panel in results.where(start="drawn"):
        first, steps = (results.final(panel, "cIPS", column) for column in ("first", "steps"))
        early |= {
            f"{panel}, run {run}": float(steps[run] - PRINTED / first[run])
            for run in np.flatnonzero(first <= 1 / 11)  # where the proof applies
        }
    nearest = min(early, key=early.__getitem__)
    yield claim(
        "Gradient ascent on an IPS-based objective stays in V* - V >= 0.9 for 2K/(9c) iterations, c = 11", "5132-5216",
        _exact(early[nearest]), panel=nearest,
        detail="iterations less the bound, least over K, two steps, drawn starts with π₁ ≤ 1/c (1/π₁ for K)",
    )  # fmt: skip
    falls = max(
        float(results.final(panel, agent, "steepest").max())
        for panel in results.panels
        for agent in results.methods(panel)
        if agent.startswith("cIPS")
    )
    yield claim(
        "In an iteration 1/π(a_K) falls by at most 9/2", "5181-5193", _exact(4.5 - falls),
        detail=f"largest fall seen: {falls:.3g}; this project's bound is K/(K-1) from the uniform policy, 2 from any",
    )  # fmt: skip
    sharp = ips - (K - 10) * (1 - 1 / K)
    yield claim(
        "The iterations on the plateau are at least (K - 10)(1 - 1/K) (this project's sharper form, η = 1)", "5132-5216",
        _exact(float(sharp.min()) + 1e-9), detail="measured less bound: " + ", ".join(f"{value:.1f}" for value in sharp),
    )  # fmt: skip
    slope = exponent(K, ips)
    shown = ", ".join(f"{k:,.0f}: {a:,.0f} / {b:,.0f} / {c:,.0f}" for k, a, b, c in zip(K, ips, pwll, lpi, strict=True))
    yield claim(
        "The iterations grow in proportion to K: their exponent is 1 within 0.02", "2163-2166", _exact(0.02 - abs(slope - 1)),
        detail=f"exponent {slope:.4f}; K: cIPS / cLPI / LPI: {shown}",
    )  # fmt: skip
    growth = 0.1 * float(np.polyfit(np.log(K), _steps(results, "cLPI, η=0.1")[1], 1)[0])
    yield claim(
        "For PWLL (cLPI) they grow as log K: between 1 and 1/0.9 for each unit of log K", "2207",
        _exact(min(growth - 1, 1 / 0.9 - growth)), detail=f"slope against log K, from η = 0.1, times η: {growth:.4f}",
    )  # fmt: skip
    yield claim(
        "PWLL leaves the region in fewer iterations than the IPS-based objective at the largest K", "2207",
        _exact(float(ips[-1] - pwll[-1])), panel=results.where(start="uniform")[-1],
        detail=f"{ips[-1]:,.0f} against {pwll[-1]:,.0f}",
    )  # fmt: skip
    gaps = {
        panel: measured(np.log((1 + results.final(panel, "cIPS", "steps")) / (1 + results.final(panel, "cLPI", "steps"))))
        for panel in results.where(start="drawn")
    }  # fmt: skip
    panel, gap = least(gaps)
    yield claim(
        "The same from drawn starts: PWLL needs fewer iterations", "2207", gap, panel=panel,
        detail="logarithm of the ratio of 1 + iterations: " + ", ".join(f"{name}: {value}" for name, value in gaps.items()),
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
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
                axis.plot(K, steps, dashes, color=colour, marker="o", markersize=3, label=label)
        axes[0].plot(K, PRINTED * K, color=BLACK, linestyle=":", label="thesis's lower bound 2K/99")
        axes[0].plot(K, (K - 10) * (1 - 1 / K), color=GREY, linestyle=":", label="sharper bound (K-10)(1-1/K)")
        axes[0].set_yscale("log")
        for axis in axes[:2]:
            axis.set_xscale("log")
            axis.set_xlabel("K")
            axis.set_ylabel("iterations to leave V* - V ≥ 0.9")
        axes[0].set_title("from the uniform policy")
        axes[1].set_title("PWLL alone")
        axes[1].set_ylim(bottom=0)
        for panel in results.where(start="drawn"):
            for agent, marker in (("cIPS", "o"), ("cLPI", "s")):
                first, steps = (results.final(panel, agent, column) for column in ("first", "steps"))
                # a start beyond the plateau needs no iteration: drawn at one half
                axes[2].loglog(
                    1 / first, np.maximum(steps, 0.5), marker, color=LOOKS[agent][0], markersize=3, alpha=0.6
                )
        axes[2].set_xlabel("1/π₁(a_K)")
        axes[2].set_ylabel("iterations")
        axes[2].set_title("from drawn starts")
        return [finish(figure, axes, folder, "plateau", "Iterations of gradient ascent on the one-hot instance")]


PLATEAU = PWLL.experiment(
    "pwll-plateau",
    order=2,
    title="Plateaus of IPS-based objectives: iterations to leave them grow with K",
    thesis_lines="2163-2166, 5132-5216",
    scales={
        "smoke": {"K": [100, 1_000, 10_000], "drawn": [30, 100], "runs": 5},
        "quick": {"K": [100, 1_000, 10_000, 100_000], "drawn": [30, 100, 300], "runs": 15},
        "paper": {"K": [100, 1_000, 10_000, 100_000, 1_000_000], "drawn": [30, 100, 300, 1_000], "runs": 50},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The proposition says O(K); what its proof gives, and what is checked, is a lower bound: at least 2K/99 iterations. K is "
        "the size of the effective action space: restricting the policy to fewer actions shortens the plateau accordingly.",
        "cIPS and cLPI have weight 1 on a_K, as in the lemma (Appendix D.2, π₀(a_K) ≥ τ). The weight scales the gradient: LPI "
        "with a uniform logging policy has the weight 1/K and needs K log K iterations with the same step. PWLL has no plateau, "
        "but the step must suit its weights; with a step of K it needs what cLPI needs.",
        "The uniform start is computed in one variable (all other actions stay alike) and has no chance in it; drawn starts have "
        "standard normal logits, K of them.",
    ],
    caption="Left and middle: one ascent for each K, without chance. Right: a point a start.",
    numbers={"steps": "iterations to leave", "steepest": "largest fall of 1/π(a_K)"},
)

__all__ = ["PLATEAU", "exponent", "first_logits", "leave_plateau", "steps_from", "steps_to_escape"]
