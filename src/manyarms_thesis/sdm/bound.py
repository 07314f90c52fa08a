"""The two bounds on the Bayesian suboptimality against what is measured (thesis, Section 6.4.2 and Appendix C.3.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms.theory import sdm_covariance_bound as covariance_bound
from manyarms.theory.suboptimality import second_moment
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, logarithm, measured, slope
from manyarms_thesis.harness.experiments import Sizes
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


def bounds_of(results: Results, panel: str, kind: str, agent: str = METHOD) -> Array:
    """A bound for each size of log, from the averages over all runs."""
    K, d = int(results.parameter(panel, "K")), int(results.parameter(panel, "d"))
    tight = kind.endswith("tight")
    if kind.startswith("covariance"):
        spread = results.values(panel, agent, "spread").mean(axis=0)
    else:
        spread = np.sqrt(results.values(panel, agent, "second_moment_tight" if tight else "second_moment").mean(axis=0))
    sizes = zip(sizes_of(results, panel), spread, strict=True)
    told: dict[str, Any] = {"sigma0": SIGMA0, "tau": TAU, "tight": tight}
    return np.array([covariance_bound(K, n, d, float(s), **told).total for n, s in sizes])


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
        for version, sharper in ((kind, ""), (f"{kind}, tight", " with this project's sharper steps")):
            bounds = {panel: bounds_of(results, panel, version) for panel in results.panels}
            ratios = np.concatenate([bound / _gap(results, panel).mean(axis=0) for panel, bound in bounds.items()])
            nearest, difference = least(
                _sized(results, {panel: bounds[panel] - _gap(results, panel) for panel in bounds})
            )
            yield claim(
                f"The Bayesian suboptimality of sDM is below the {words} bound{sharper}, everywhere", lines, difference,
                panel=nearest, detail=f"bound less measured; the bound is {ratios.min():.3g} to {ratios.max():.3g} times it",
            )  # fmt: skip
    # the posterior of the best action is narrower than DM (Bayes)'s, so that the bound is smaller
    theirs, ours = ({p: results.values(p, agent, "spread") for p in results.panels} for agent in (BAYES, METHOD))
    nearest, difference = least(_sized(results, {panel: theirs[panel] - ours[panel] for panel in ours}))
    yield claim(
        "The posterior of the best action is narrower under sDM than under the non-structured prior", "1962", difference,
        panel=nearest, detail="E‖X‖ in the posterior covariance of the best action: DM (Bayes) less sDM, least convincing",
    )  # fmt: skip
    yield _more_so(results)
    yield from _coverage(results)
    yield from _rate(results)


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
    """Bound and suboptimality are larger where the logging policy covers the best actions worse."""
    for panel in results.where(logging="uniform"):
        (other,) = results.where(logging="skewed", K=results.parameter(panel, "K"))
        gap = {name: measured(_gap(results, name)[:, -1]) for name in (panel, other)}
        bound = {name: float(bounds_of(results, name, "explicit, tight")[-1]) for name in (panel, other)}
        yield claim(
            "Suboptimality grows where the logging policy covers the best actions less, as the bound does", "1988",
            gap[other] - gap[panel], panel=f"K={results.parameter(panel, 'K'):,}",
            detail=f"on the largest log: uniform {gap[panel]} (bound {bound[panel]:.3g}), skewed {gap[other]} "
            f"(bound {bound[other]:.3g})",
        )  # fmt: skip


def _rate(results: Results) -> list[Claim]:
    """Where n is large beside K, the suboptimality falls at least as fast as n^(-1/2): slopes of its logarithm."""
    slopes = {}
    for panel in results.where(logging="uniform"):
        sizes = np.array(sizes_of(results, panel), dtype=float)
        large = sizes >= ENOUGH * int(results.parameter(panel, "K"))
        means = [measured(column) for column in _gap(results, panel)[:, large].T]
        if large.sum() < 2 or min(one.mean for one in means) <= 0:
            continue
        slopes[panel] = slope(np.log(sizes[large]), [logarithm(one) for one in means])
    if not slopes:
        return []
    panel, slowest = least({name: Measured(-0.5 - value.mean, value.standard_error) for name, value in slopes.items()})
    shown = ", ".join(f"{name}: {value}" for name, value in slopes.items())
    return [
        claim(
            "For n large enough the Bayesian suboptimality is of the order 1/√n: it falls at least as fast", "1974-1986",
            slowest, panel=panel,
            detail=f"exponents of n, over logs with at least {ENOUGH} rows an action: {shown}; the figure is -1/2 less the "
            "exponent",
        )
    ]  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
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
        )
    ]  # fmt: skip


BOUND = SDM.experiment(
    "sdm-bound",
    order=7,
    title="Bounds on the Bayesian suboptimality of sDM against what is measured",
    thesis_lines="1945-1988, 4443-4476",
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
        f"over θ*, logs and contexts are averages over the runs and {EVALUATED:,} contexts each.",
        "“Sharper” replaces the ball around each parameter by the scalars that matter (a union bound over K Gaussians) and "
        "Hoeffding's inequality for the rows of an action by Chernoff's (theory/suboptimality.py). The thesis prints no "
        "experiment for its theorems: the sizes are this project's choice.",
    ],
)

__all__ = ["BOUND", "bounds_of", "value_and_moments"]
