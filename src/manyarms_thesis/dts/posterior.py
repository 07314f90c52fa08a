"""How good dTS's posterior is, against the truth in the plane (thesis, Appendix B.6.3).

One action, one chain, more and more observations. Two priors: pre-trained on N(0, I), as in the thesis, where the posterior under
the true prior is known in closed form; and pre-trained on a Swiss roll, where only sampling gives the truth (sampling.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.files import write_text_atomically
from manyarms._base.palette import PALETTE
from manyarms._base.typing import Array
from manyarms.beliefs.messages import RULES, Chain
from manyarms.errors import InvalidInput
from manyarms.priors.diffusion import DiffusionPrior
from manyarms_thesis.dts import sampling
from manyarms_thesis.dts.common import DTS, clouds
from manyarms_thesis.dts.posterior_claims import COLUMNS, GAUSSIAN, MARKS, NORMAL, ROLL, TRUTH, all_claims, at, table
from manyarms_thesis.dts.pretrained import DEPTH, SOURCES, pretrained
from manyarms_thesis.dts.sampling import Evidence
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import GREY, Drawn, draw_series, online_looks
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, Run

LOOKS = {
    "thesis": (PALETTE[0], "-"), "jacobian": (PALETTE[3], "--"), GAUSSIAN: (PALETTE[1], "-"), TRUTH: (GREY, ":"),
}  # fmt: skip

Draws = Callable[[Evidence, int, np.random.Generator], Array]


@dataclass(frozen=True)
class OneAction:
    """The problem of a cell: an action whose parameter has the law that the prior was trained on; contexts from the square."""

    data: str
    noise: float
    seed: int

    def rows(self, n: int) -> tuple[Array, Array]:
        """The first n contexts and rewards."""
        theta = SOURCES[self.data](1, self.seed % 2**31)[0]
        contexts, noise = (np.random.default_rng(child) for child in np.random.SeedSequence(self.seed).spawn(2))
        X = contexts.uniform(-1.0, 1.0, (max(MARKS), 2))
        return X[:n], (X @ theta + self.noise * noise.standard_normal(len(X)))[:n]


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws of a posterior by one rule, beside the truth under the same prior."""

    prior: DiffusionPrior
    centres: Array
    draw: Draws
    size: int


@lru_cache(maxsize=2)
def _bank(told: tuple[tuple[str, Any], ...], number: int) -> tuple[DiffusionPrior, Array]:
    """A pre-trained prior of one action and many draws of its chain."""
    prior = pretrained(**dict(told)).prior(1)
    return prior, sampling.prior_centres(prior, number, seed=4011)


def sampler(*, rule: str, prior: Mapping[str, Any], bank: int, draws: int) -> Sampler:
    """The method of a cell: dTS by a rule, the Gaussian with the prior's moments, or the truth once more."""
    diffusion, centres = _bank(tuple(sorted(prior.items())), bank)
    covariance = diffusion.covariances[0]
    draw: Draws
    if rule in RULES:
        chain = Chain(diffusion, rule)

        def draw(evidence: Evidence, n: int, rng: np.random.Generator) -> Array:
            return sampling.approximate_posterior(chain, evidence, n, rng)
    elif rule == GAUSSIAN:
        mean, spread = centres.mean(axis=0), np.cov(centres.T) + covariance

        def draw(evidence: Evidence, n: int, rng: np.random.Generator) -> Array:
            return sampling.gaussian_posterior(mean, spread, evidence, n, rng)
    elif rule == TRUTH:

        def draw(evidence: Evidence, n: int, rng: np.random.Generator) -> Array:
            return sampling.true_posterior(centres, covariance, evidence, n, rng)[0]
    else:
        raise InvalidInput("rule", repr(rule), "one of " + ", ".join((*RULES, GAUSSIAN, TRUTH)))
    return Sampler(diffusion, centres, draw, draws)


def posterior_distances(run: Run) -> Columns:
    """Distances to the truth after 0, 1, 10 and 100 observations of one action."""
    action: OneAction = run.draw_problem()
    made: Sampler = run.method()
    found: dict[str, list[float]] = {name: [] for name in (*COLUMNS, "effective_draws", "to_exact", "exact_sd")}
    seconds = 0.0
    for mark in MARKS:
        evidence = Evidence.of(*action.rows(mark), action.noise)
        rng = np.random.default_rng([run.method_seed, mark])
        truth, effective = sampling.true_posterior(
            made.centres,
            made.prior.covariances[0],
            evidence,
            made.size,
            np.random.default_rng([run.problem_seed, mark]),
        )
        started = time.perf_counter()
        drawn = made.draw(evidence, made.size, rng)
        seconds += time.perf_counter() - started
        apart = sampling.distance(truth, drawn)
        found["mean_error"].append(apart.mean)
        found["covariance_error"].append(apart.covariance)
        found["sliced"].append(apart.sliced)
        found["effective_draws"].append(effective)
        # the posterior under N(0, I), which is the truth where the action came from it
        exact = sampling.gaussian_posterior(np.zeros(2), np.eye(2), evidence, made.size, rng)
        found["to_exact"].append(sampling.sliced_wasserstein(exact, drawn))
        found["exact_sd"].append(float(np.sqrt(np.trace(np.linalg.inv(np.eye(2) + evidence.G)) / 2)))
    return {
        "round": np.array(MARKS),
        # one action: there is no wrong choice
        "regret": np.zeros(len(MARKS)),
        "milliseconds_a_round": 1e3 * seconds / (len(MARKS) * made.size),
        "agent_bytes": made.prior.covariances.nbytes,
        **{name: np.array(values) for name, values in found.items()},
    }


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for panel, data, n in ((NORMAL, "normal", sizes["normal_n"]), (ROLL, "swiss-roll", sizes["roll_n"])):
        prior = {"data": data, "size": n, "depth": sizes["depth"], "seed": 0, **sizes.get("training", {})}
        told = {"prior": prior, "bank": sizes["bank"], "draws": sizes["draws"]}
        samplers = {rule: Call(sampler, {"rule": rule, **told}) for rule in (*RULES, GAUSSIAN, TRUTH)}
        parameters = {"data": data, "n": n, "L": sizes["depth"], "noise": 1.0}
        world = Call(OneAction, {"data": data, "noise": 1.0})
        yield Cell(panel, parameters, world, samplers, max(MARKS), sizes["runs"], posterior_distances)


def _figures(results: Results, folder: Path) -> list[Drawn]:
    write_text_atomically(folder.parent / "table.md", table(results))
    groups = {
        panel: {
            rule: {float(mark): at(results, panel, rule, "sliced", mark) for mark in MARKS}
            for rule in results.methods(panel)
        }
        for panel in results.panels
    }
    drawn = draw_series(
        groups, folder, "distance", "Distance of posteriors to the truth", xlabel="observations",
        ylabel="sliced Wasserstein distance", ticks="evenly", look=online_looks(LOOKS),
        seen="How far each posterior is from the true one as observations come in; the grey dotted curve is the distance of two "
        "samples of the truth, which nothing can be below.",
    )  # fmt: skip
    return [drawn, *(_pictures(results, panel, folder) for panel in results.panels)]


def _pictures(results: Results, panel: str, folder: Path) -> Drawn:
    """Draws of the true posterior and of the approximations as observations of one action come in."""
    cell = results.cells[panel]
    action: OneAction = cell.problem(seed=7)
    groups = {}
    for rule in (*RULES, GAUSSIAN):
        made: Sampler = cell.methods[rule]()
        for mark in MARKS:
            evidence = Evidence.of(*action.rows(mark), action.noise)
            rng = np.random.default_rng(mark)
            truth, _ = sampling.true_posterior(made.centres, made.prior.covariances[0], evidence, 800, rng)
            groups[f"{rule}, {mark} observation{'s' if mark != 1 else ''}"] = {
                "true posterior": truth, "approximation": made.draw(evidence, 800, rng),
            }  # fmt: skip
    name = "posterior-" + cell.parameters["data"]
    title = f"Posterior of one action, prior pre-trained on the {panel}"
    caption = (
        "Where one item's parameter may lie after 0, 1, 10 and 100 observations (columns), with a prior pre-trained on the "
        "{panel}: draws of the true posterior and of its approximation by the thesis's rule, by Jacobians and by a single "
        "Gaussian (rows)."
    )
    return clouds(groups, folder, name, title, columns=len(MARKS), caption=caption)


POSTERIOR = DTS.experiment(
    "dts-posterior",
    order=7,
    title="dTS's approximate posterior against the truth",
    thesis_lines="4011-4035",
    scales={
        "smoke": {
            "runs": 2, "normal_n": 200, "roll_n": 400, "depth": 6, "bank": 20_000, "draws": 500,
            "training": {"epochs": 200},
        },
        "quick": {"runs": 20, "normal_n": 1_000, "roll_n": 10_000, "depth": DEPTH, "bank": 200_000, "draws": 2_000},
        "paper": {"runs": 50, "normal_n": 1_000, "roll_n": 10_000, "depth": DEPTH, "bank": 400_000, "draws": 4_000},
    },
    build=_cells,
    claims=all_claims,
    figures=_figures,
    question="dTS works with an approximate posterior: how close is it to the exact one, and is it closer than a plain Gaussian?",
    setting="One item in the plane, its parameter drawn from a normal law (as in the thesis) or from a Swiss roll; a diffusion "
    "of depth {depth} is pre-trained on that law ({normal_n} and {roll_n} points). After 0, 1, 10 and 100 observations {draws} "
    "draws of each posterior are compared with the truth, {runs} times.",
    remarks=[
        "There are no contexts to choose in: one action is observed, and each observation has a context of its own, so that a "
        "shared context and one for each action are the same. “Gaussian” is the rule of moments. The Swiss roll is not in the "
        "thesis here: statements about it are this project's.",
        "The truth is the posterior under the pre-trained prior itself: draws of the chain from the prior, weighted by the "
        "likelihood of the observations, the action's parameter drawn given each. “effective draws” says how many draws that is "
        f"worth. “{TRUTH}” is a second sample of it: the distance that sampling alone makes.",
        "“thesis” leaves the links out on the way up, “jacobian” linearises them (beliefs/messages.py). “Gaussian” is the "
        "posterior under the normal law with the prior's mean and covariance, which is LinTS's. σ = 1, contexts uniform on the "
        "square. There is one action, so that regret, shown in the table of numbers, is zero; “ms a round” is the time of a "
        "draw. The table is also in table.md.",
    ],
)  # fmt: skip

__all__ = ["POSTERIOR", "OneAction", "Sampler", "posterior_distances", "sampler"]
