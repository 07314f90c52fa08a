"""The two bounds on the Bayesian suboptimality against what is measured (thesis, Section 6.4.2 and Appendix C.3.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.typing import Array, Bools
from manyarms.theory import sdm_covariance_bound as covariance_bound
from manyarms.theory.suboptimality import second_moment
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Columns, Run
from manyarms_thesis.sdm.claims import METHOD, by_size, sizes_of
from manyarms_thesis.sdm.common import SDM, latent_cell
from manyarms_thesis.sdm.figures import draw_rewards
from manyarms_thesis.sdm.learners import EVALUATED, LEARNERS, Problem, value_by_size

SIGMA, SIGMA0, TAU = 0.5, 1.0, math.sqrt(3.0)
BAYES = "DM (Bayes)"
ENOUGH = 10  # rows an action from which a log counts as large
KINDS = {
    "covariance": "covariance-dependent bound",
    "covariance, tight": "covariance-dependent, sharper",
    "explicit": "explicit bound",
    "explicit, tight": "explicit, sharper",
}


def value_and_moments(run: Run) -> Columns:
    """One run, with what the explicit bound averages over the best actions' logging probabilities."""
    found = dict(value_by_size(run))
    problem: Problem = run.draw_problem()
    X = problem.world.contexts(EVALUATED)
    rho = problem.logging.probabilities_of(X, problem.world.optimal(X)[0])
    d = problem.world.dim
    of: dict[str, float] = dict(noise=SIGMA**2, sigma0=SIGMA0, tau=TAU, g=1 / (3 * d), kappa_x=1.0, kappa_w=1.0)
    for name, tight in (("second_moment", False), ("second_moment_tight", True)):
        found[name] = np.array(
            [float(second_moment(rho, int(n), d, tight=tight, **of).mean()) for n in np.atleast_1d(found["n"])]
        )
    return found


def bounds_by_run(results: Results, panel: str, kind: str, agent: str = METHOD) -> Array:
    """(runs, sizes): a bound for each size of log, with each run's part in its error.

    A bound is alpha s + remainder, s an average over all runs, or the root of one: by the delta method, a run moves it by
    alpha times its distance from s. The mean over runs is the bound itself.
    """
    K, d = int(results.parameter(panel, "K")), int(results.parameter(panel, "d"))
    tight = kind.endswith("tight")
    if kind.startswith("covariance"):
        spread = results.values(panel, agent, "spread")
    else:
        moment = results.values(panel, agent, "second_moment_tight" if tight else "second_moment")
        root = np.sqrt(moment.mean(axis=0))
        spread = root + (moment - moment.mean(axis=0)) / (2 * root)
    told: dict[str, Any] = {"sigma0": SIGMA0, "tau": TAU, "tight": tight}
    levels = zip(sizes_of(results, panel), spread.mean(axis=0), strict=True)
    bounds = [covariance_bound(K, n, d, float(level), **told) for n, level in levels]
    alpha, remainder = (np.array([getattr(bound, part) for bound in bounds]) for part in ("alpha", "remainder"))
    return np.asarray(alpha * spread + remainder)


def bounds_of(results: Results, panel: str, kind: str, agent: str = METHOD) -> Array:
    """A bound for each size of log, from the averages over all runs."""
    return np.asarray(bounds_by_run(results, panel, kind, agent).mean(axis=0))


def vacuous(results: Results, panel: str, kind: str) -> Bools:
    """(sizes,): where a bound is no lower than what is known without any log.

    Contexts are symmetric around 0, so that a policy that plays at random has the value 0 in every world: it loses all that
    the best policy earns, and the greedy policy loses no more than it.
    """
    at_random = results.values(panel, METHOD, "optimal").mean()
    return np.asarray(bounds_of(results, panel, kind) >= at_random)


def _cells(sizes: Sizes) -> Iterator[Cell]:
    learners = {name: LEARNERS[name] for name in (METHOD, BAYES)}
    for logging in ("uniform", "skewed"):
        for K in sizes["K"]:
            yield latent_cell(
                sizes, K, sizes["latent"], learners, logging=logging, task=value_and_moments, dim=sizes["d"], noise=SIGMA,
                matrices="orthonormal", unit_contexts=True, name=f"{logging} logging, K={K:,}",
            )  # fmt: skip


def _gap(results: Results, panel: str, agent: str = METHOD) -> Array:
    """(runs, sizes) suboptimality."""
    return results.values(panel, agent, "regret")


def _sized(results: Results, values: Mapping[str, Array]) -> dict[str, Measured]:
    """Values (runs, sizes) by panel, measured for each size of log."""
    return {
        f"{panel}, n={n:,}": value for panel in values for n, value in by_size(results, panel, values[panel]).items()
    }


def _claims(results: Results) -> Iterator[Claim]:
    for kind, words, lines in (
        ("covariance", "covariance-dependent", "1945-1957"),
        ("explicit", "explicit", "4455-4476"),
    ):
        statement = f"The Bayesian suboptimality of sDM is at most the {words} bound"
        yield below(results, kind, statement, lines)
        yield below(results, f"{kind}, tight", f"{statement} with this project's sharper steps", "")
    # the posterior of the best action is narrower than DM (Bayes)'s, so that the bound is smaller
    theirs, ours = ({p: results.values(p, agent, "spread") for p in results.panels} for agent in (BAYES, METHOD))
    wider = _sized(results, {panel: theirs[panel] - ours[panel] for panel in ours})
    nearest, difference = least(wider)
    yield claim(
        "The posterior covariance of the best action is larger under the non-structured prior than under sDM", "1962", difference,
        detail=f"E‖X‖ in the posterior covariance of the best action: DM (Bayes) less sDM, least convincing: {nearest}",
        parts=list(wider.values()),
    )  # fmt: skip
    yield _more_so(results)
    yield from _coverage(results)
    yield from _rate(results)


def below(results: Results, kind: str, statement: str, lines: str) -> Claim:
    """What is measured is below the bound in every panel, at every size of log at which the bound says anything."""
    bounds = {panel: bounds_by_run(results, panel, kind) for panel in results.panels}
    room = _sized(results, {panel: bounds[panel] - _gap(results, panel) for panel in bounds})
    idle = dict(zip(room, np.concatenate([vacuous(results, panel, kind) for panel in bounds]), strict=True))
    said = {name: value for name, value in room.items() if not idle[name]}
    counted = f"{len(room) - len(said)} of {len(room)} bounds are vacuous, at or above what random play loses, and do not count"
    if not said:
        nearest, difference = least(room)
        return claim(statement, lines, Measured(difference.mean, math.nan), detail=f"{counted}; nearest: {nearest}")
    nearest, difference = least(said)
    ratios = [bounds[p].mean(axis=0) / _gap(results, p).mean(axis=0) for p in bounds]
    times = np.concatenate(ratios)[[not one for one in idle.values()]]
    return claim(
        statement, lines, difference, parts=list(said.values()),
        detail=f"bound less measured, least convincing: {nearest}; the bound is {times.min():.3g} to {times.max():.3g} times "
        f"what is measured; {counted}",
    )  # fmt: skip


def _more_so(results: Results) -> Claim:
    """The gain in width grows with K."""
    panels = sorted(results.where(logging="uniform"), key=lambda panel: int(results.parameter(panel, "K")))
    few, many = panels[0], panels[-1]
    share = {
        panel: measured(1 - (results.values(panel, METHOD, "spread") / results.values(panel, BAYES, "spread"))[:, -1])
        for panel in (few, many)
    }
    return claim(
        "The difference is more pronounced when the number of actions is large", "1962", share[many] - share[few],
        detail=f"part of DM (Bayes)'s width that sDM saves on the largest log: {share[few]} ({few}), {share[many]} ({many})",
    )  # fmt: skip


def _coverage(results: Results) -> Iterator[Claim]:
    """The bound is larger where the logging policy covers the best actions worse, and so is the suboptimality."""
    pairs = {
        panel: results.where(logging="skewed", K=results.parameter(panel, "K"))[0]
        for panel in results.where(logging="uniform")
    }
    bounds = {panel: bounds_by_run(results, panel, "explicit") for panel in results.panels}
    gaps = {panel: _gap(results, panel) for panel in results.panels}
    worse = "larger where the logging policy covers the optimal actions less"
    for statement, lines, values in (
        (f"The bound becomes {worse}", "1988", bounds),
        (f"The Bayesian suboptimality too is {worse}", "", gaps),
    ):
        found = {panel: measured(value[:, -1]) for panel, value in values.items()}
        steps = {f"K={results.parameter(panel, 'K'):,}": found[other] - found[panel] for panel, other in pairs.items()}
        nearest, difference = least(steps)
        yield claim(
            statement, lines, difference, parts=list(steps.values()),
            detail=f"on the largest log: {listed(found)}; skewed less uniform, least convincing: {nearest}",
        )  # fmt: skip


def _rate(results: Results) -> list[Claim]:
    """Where n is large beside K, the suboptimality falls at least as fast as n^(-1/2): slopes of its logarithm."""
    slopes = {}
    for panel in results.where(logging="uniform"):
        sizes = np.array(sizes_of(results, panel), dtype=float)
        large = sizes >= ENOUGH * int(results.parameter(panel, "K"))
        gap = _gap(results, panel)[:, large]
        if large.sum() < 2 or (gap.mean(axis=0) <= 0).any():
            continue
        centred = np.log(sizes[large]) - np.log(sizes[large]).mean()
        # logarithms of means by the delta method, run by run: the sizes of a run are parts of one log
        logarithms = np.log(gap.mean(axis=0)) + gap / gap.mean(axis=0) - 1
        slopes[panel] = measured(logarithms @ (centred / (centred @ centred)))
    if not slopes:
        return []
    faster = {panel: -value - Measured(0.5, 0.0) for panel, value in slopes.items()}
    nearest, slowest = least(faster)
    return [
        claim(
            "For n large enough the Bayesian suboptimality scales as 1/√n: it falls at least as fast", "1974-1986", slowest,
            detail=f"exponents of n, over logs with at least {ENOUGH} rows an action: {listed(slopes)}; the figure is -1/2 less "
            f"the exponent, least convincing: {nearest}",
            parts=list(faster.values()),
        )
    ]  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Drawn]:
    groups: dict[str, dict[str, dict[float, Measured]]] = {}
    for panel in results.panels:
        groups[panel] = {agent: by_size(results, panel, _gap(results, panel, agent)) for agent in (METHOD, BAYES)}
        for kind, words in KINDS.items():
            bounds = zip(sizes_of(results, panel), bounds_of(results, panel, kind), strict=True)
            groups[panel][words] = {n: Measured(float(bound), 0.0) for n, bound in bounds}
    columns = len(results.where(logging="uniform"))  # a row of drawings for each logging policy
    return [
        draw_rewards(
            groups, folder, "bound", "Bayesian suboptimality and its bounds", ylabel="Bayesian suboptimality",
            columns=columns, log_y=True,
            seen="What sDM (blue) and DM (Bayes) (orange) lose, far below the bounds on what sDM loses; a bound above the best "
            "policy's own reward, which random play loses, says nothing.",
        )
    ]  # fmt: skip


BOUND = SDM.experiment(
    "sdm-bound",
    order=7,
    title="Bounds on the Bayesian suboptimality of sDM against what is measured",
    thesis_lines="1945-1988, 4443-4476",
    question="Do the thesis's two bounds on the Bayesian suboptimality of sDM hold, how far are they from what is measured, and "
    "does that fall as fast as they say?",
    setting="Worlds that fulfil the theorems' assumptions: {K} actions, d={d}, d'={latent}, orthonormal W_a, contexts in the "
    "unit ball, σ=0.5; logs of {n} rows, by a uniform and by a skewed policy. Suboptimality is averaged over {runs} worlds from "
    "the prior, and the bounds' expectations over the same.",
    scales={
        "smoke": {"n": [100, 1_000], "runs": 8, "K": [10, 40], "d": 3, "latent": 5},
        "quick": {"n": [100, 1_000, 10_000, 100_000], "runs": 20, "K": [10, 100, 1_000], "d": 5, "latent": 10},
        "paper": {"n": [100, 1_000, 10_000, 100_000], "runs": 100, "K": [10, 100, 1_000], "d": 5, "latent": 10},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Worlds fulfil the theorems' assumptions: W_a has orthonormal rows, contexts are uniform on the cube inside the unit "
        "ball (g = 1/(3d)), Σ = 3 I, Σ_a = I; σ = 0.5. Neither logging policy looks at the context. The bounds' expectations "
        f"over θ*, logs and contexts are averages over the runs and {EVALUATED:,} contexts each; their sampling error is part of "
        "the standard errors. A bound that is not below what random play loses is vacuous, and is not counted.",
        "“Sharper” replaces the ball around each parameter by the scalars that matter (a union bound over K Gaussians) and "
        "Hoeffding's inequality for the rows of an action by Chernoff's (theory/suboptimality.py). The thesis prints no "
        "experiment for its theorems: the sizes are this project's choice.",
    ],
)

__all__ = ["BOUND", "below", "bounds_by_run", "bounds_of", "vacuous", "value_and_moments"]
