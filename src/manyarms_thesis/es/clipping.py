"""What hard clipping does to an estimate: 100 actions, a logging policy stuck on the 50th (thesis, Section 8.2).

No contexts; rewards are Bernoulli with r(a) = 0.1 - 0.001 (a - 1), a = 1, ..., 100; pi0 plays action 50 with probability
0.95 and each other one with 0.05 / 99. The policies to be valued are the 100 that play one action always, whose values
are the r(a).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.weights import ClipPropensities, ClipWeights, Correction, ExponentialAlpha, ExponentialBeta, NoCorrection
from manyarms_thesis.es.common import ES, within
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Columns, solve_log
from manyarms_thesis.sdm.figures import profile

ACTIONS, FAVOURITE, EPSILON = 100, 50, 0.05
LIMIT = 100.0  # M, of the order of sqrt(n) as the thesis takes it


@dataclass(frozen=True, eq=False)
class Rounds:
    """A log of the example: actions (from 1) and rewards, and what is true of it."""

    actions: Ints
    rewards: Array
    propensities: Array  # pi0(a), a = 1, ..., 100
    means: Array  # r(a)


def logged_rounds(*, rounds: int, seed: int) -> Rounds:
    """A log of the example."""
    means = 0.1 - 1e-3 * np.arange(ACTIONS, dtype=np.float64)
    pi0 = np.full(ACTIONS, EPSILON / (ACTIONS - 1))
    pi0[FAVOURITE - 1] = 1 - EPSILON
    rng = np.random.default_rng(seed)
    actions = rng.choice(ACTIONS, size=rounds, p=pi0)
    rewards = (rng.random(rounds) < means[actions]).astype(np.float64)
    return Rounds(actions + 1, rewards, pi0, means)


CORRECTIONS: dict[str, Correction] = {
    "IPS": NoCorrection(),
    "IPS-min": ClipWeights(LIMIT),
    "IPS-max": ClipPropensities(1 / LIMIT),
    "ES-α=0.9": ExponentialAlpha(0.9),
    "ES-α=0.95": ExponentialAlpha(0.95),
    "ES-β=0.9": ExponentialBeta(0.9),
}


def estimates(log: Rounds, correction: Correction) -> Array:
    """(100,) estimated values of the policies that play one action: pi is 1 on their action and 0 elsewhere."""
    pi0 = log.propensities[log.actions - 1]
    # a row has weight under one of the policies only: the one that plays its action
    terms = correction.terms(np.ones(len(pi0)), pi0, log.rewards)
    return np.bincount(log.actions - 1, terms, ACTIONS) / len(pi0)


def value_all(*, problem: Rounds, seed: int, correction: str) -> Columns:
    """The estimates of one correction for all 100 policies, and which it would choose."""
    found = estimates(problem, CORRECTIONS[correction])
    return {
        "action": np.arange(1, ACTIONS + 1),
        "estimate": found,
        "truth": problem.means,
        "chosen": int(found.argmax()) + 1,
        "regret": float(problem.means.max() - problem.means[int(found.argmax())]),
    }


def _cells(sizes: Sizes) -> list[Cell]:
    methods = {name: Call(value_all, {"correction": name}) for name in CORRECTIONS}
    parameters = {"K": ACTIONS, "epsilon": EPSILON, "M": LIMIT}
    return [Cell(f"n={sizes['n']:,}", parameters, Call(logged_rounds), methods, sizes["n"], sizes["runs"], solve_log)]


def _claims(results: Results) -> list[Claim]:
    (panel,) = results.panels
    truth = results.values(panel, "IPS", "truth")[0]
    found = {name: results.values(panel, name, "estimate") for name in results.methods(panel)}
    others = np.arange(ACTIONS) != FAVOURITE - 1

    def ahead(name: str) -> Measured:
        """How far the estimate of the logging policy's favourite is above all others."""
        return measured(found[name][:, ~others][:, 0] - found[name][:, others].max(axis=1))

    def gained(name: str) -> Measured:
        """What the policy with the largest estimate is truly worth above the logging policy's favourite."""
        return measured(truth[results.final(panel, name, "chosen").astype(int) - 1] - truth[FAVOURITE - 1])

    lost = {f"a={a + 1}": measured(truth[a] - found["IPS-min"][:, a]) for a in np.flatnonzero(others)}
    low, below = least(lost)
    means = found["IPS"].mean(axis=1) - truth.mean()
    wide = measured(means)
    chosen = {name: results.final(panel, name, "chosen") for name in found}
    shown = ", ".join(f"{name} {np.median(values):.0f}" for name, values in chosen.items())
    plain = found["IPS"]
    return [
        claim(
            "IPS-min underestimates the reward of all policies but that of the logging policy's favourite", "2410", below,
            panel=panel, parts=list(lost.values()),
            detail=f"truth less estimate, least convincing: {low}; the weights are 0 or 1,980, above M = 100",
        ),
        claim(
            "IPS-min's estimate is maximised by the logging policy's favourite only, despite its bad performance", "2410",
            ahead("IPS-min"), panel=panel,
            detail=f"estimate of action 50 less the largest other; median action of the largest estimate: {shown}",
        ),
        claim(
            "IPS does not converge to the favourite: the policy of its largest estimate is better", "",
            gained("IPS"), panel=panel,
            detail=f"true value of that policy less that of action 50; the mean error of IPS over all policies is {wide}",
        ),
        biased({name: found[name][:, others] for name in ("IPS", "IPS-min", "IPS-max")}, truth[others], panel),
        claim(
            "Smoothing mitigates this: with α = 0.95 the policy of the largest estimate is better than the favourite",
            "", gained("ES-α=0.95"), panel=panel,
            detail="true value of that policy less that of action 50: "
            + listed({name: gained(name) for name in found}),
        ),
        traded(plain[:, others], found["ES-α=0.95"][:, others], panel),
    ]  # fmt: skip


def biased(found: dict[str, Array], truth: Array, panel: str) -> Claim:
    """Estimates (logs, policies) by corrections: IPS-max loses most of the truth, and about as much as IPS-min."""
    bias = {name: (truth - values).mean(axis=1) for name, values in found.items()}
    clipped, other = bias["IPS-max"], bias["IPS-min"]
    differences = {
        "the bias less half the truth": measured(clipped - truth.mean() / 2),
        "a quarter of IPS-min's bias less the distance from it": within(clipped - other, other),
    }
    _, difference = least(differences)
    return claim(
        "IPS-max with τ = 1/M has a high bias similar to that of IPS-min: over half of the truth, within a quarter of the other",
        "2412", difference, panel=panel, parts=list(differences.values()),
        detail="the thesis says that it may. Truth less estimate, means over all policies but that of action 50, whose truth is "
        f"{truth.mean():.4g}: {listed({name: measured(values) for name, values in bias.items()})}; {listed(differences)}",
    )  # fmt: skip


def traded(plain: Array, smoothed: Array, panel: str) -> Claim:
    """Estimates (logs, policies): the smoothed ones vary less over logs, and are further below the truth.

    Means over policies; a log's part in a variance is its squared deviation, so that the error is one over logs.
    """

    def variances(values: Array) -> Array:
        return np.asarray(((values - values.mean(axis=0)) ** 2).mean(axis=1) * len(values) / max(1, len(values) - 1))

    saved = measured((variances(plain) - variances(smoothed)) / variances(plain).mean())
    bias = measured((plain - smoothed).mean(axis=1))
    differences = {"share of the variance of IPS that is saved": saved, "bias, IPS less ES": bias}
    _, difference = least(differences)
    return claim(
        "α trades the bias and the variance: at 0.95 the estimates vary less than those of IPS, and are further off on average",
        "2433-2438", difference, panel=panel, parts=list(differences.values()),
        detail=f"means over all policies but that of action 50: {listed(differences)}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Drawn]:
    (panel,) = results.panels
    x = results.values(panel, "IPS", "action")[0]
    truth = results.values(panel, "IPS", "truth")[0]

    def lines(names: tuple[str, ...], run: int | None) -> dict[str, tuple[Array, Array]]:
        out = {}
        for name in names:
            values = results.values(panel, name, "estimate")
            spread = np.zeros(len(x)) if run is not None else values.std(axis=0)
            out[name] = (values[run] if run is not None else values.mean(axis=0), spread)
        return out

    return [
        profile(
            x, lines(("IPS", "IPS-min"), 0), truth, folder, "clipping", "One log: IPS and IPS-min",
            "Estimated values of the 100 policies that play one action, from one log: IPS scatters around the truth (line), "
            "IPS-min has all but the logging policy's favourite, action 50, near zero.",
        ),
        profile(
            x, lines(("IPS-min", "IPS-max", "ES-α=0.9", "ES-α=0.95"), None), truth, folder, "corrections",
            "Means over logs, and standard deviations: corrections that bias",
            "Estimated values of the 100 policies that play one action, under four corrections that bias: means over "
            f"{results.cells[panel].runs} logs, with bars of one standard deviation over logs on each "
            "side; the line is the true value.",
        ),
    ]  # fmt: skip


CLIPPING = ES.experiment(
    "es-clipping",
    order=1,
    title="Hard clipping and the logging policy's favourite action",
    thesis_lines="2408-2420",
    question="What does hard clipping of importance weights do to estimates when the logging policy nearly always plays one "
    "action, and does exponential smoothing mitigate it?",
    setting="100 actions without contexts, Bernoulli rewards of mean 0.1 - 0.001 (a - 1); the logging policy plays action 50 "
    "with probability 0.95. IPS, clipping at M=100 and smoothing value the 100 policies that play one action, from {n} rows, in "
    "{runs} logs.",
    scales={
        "smoke": {"n": 50_000, "runs": 6},
        "quick": {"n": 50_000, "runs": 50},
        "paper": {"n": 50_000, "runs": 200},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "The thesis says that IPS-min underestimates all π_a with a ≠ 100; it must be a ≠ 50, the favourite. Its figure shows "
        "one log, of 50,000 rounds; here there are several. With α = 0.9, ES too has its largest estimate at action 50 on "
        "average (0.047 for action 1 against 0.051), with α = 0.95 it has not: smoothing moves the threshold and does not "
        "remove it.",
        "IPS-max with τ = 1/M and IPS-min with M are the same here, but for action 50. For policies that "
        "play one action, a row counts for one policy only: the estimates are exact sums. For the same reason ES multiplies "
        "the IPS estimates of all actions but 50 by one number, and picks as IPS does in most logs: the one whose estimate "
        "noise has raised most. The thesis says of this example only what IPS-min does; what IPS and ES pick is this "
        "project's measure of “mitigate”.",
    ],
    numbers={"chosen": "action of the largest estimate", "regret": "value lost by playing it"},
)

__all__ = ["CLIPPING", "CORRECTIONS", "Rounds", "estimates", "logged_rounds", "value_all"]
