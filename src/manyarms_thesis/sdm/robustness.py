"""sDM with the wrong likelihood, with the wrong prior, and with pessimism (thesis, lines 4790-4831, 4726-4737)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from manyarms_thesis.harness.claims import Claim, Measured, claim, least, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment
from manyarms_thesis.sdm.builders import CAPTION, LEARNERS, NUMBERS, learner
from manyarms_thesis.sdm.claims import METHOD, beats, relative
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.synthetic import BASELINE_REMARKS, METRIC, latent_cell

# ---- the wrong likelihood ---------------------------------------------------------------------------------------------

LINEAR = ("DM (Bayes)-Lin", "DM (Freq)-Lin")
GRADIENT = ("IPS", "snIPS", "DR", "MIPS", "PC")
BINARY_LEARNERS = {
    "sDM-Lin": LEARNERS["sDM"],
    "sDM-Log": learner("sdm", likelihood="logistic"),
    "DM (Bayes)-Lin": LEARNERS["DM (Bayes)"],
    "DM (Freq)-Lin": LEARNERS["DM (Freq)"],
    **{name: LEARNERS[name] for name in GRADIENT},
}


def _likelihood_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    return [
        latent_cell(
            K,
            latent,
            BINARY_LEARNERS,
            sizes["n"],
            sizes["runs"],
            name=f"binary rewards, K={K:,}, d'={latent}",
            reward="logistic",
        )
        for K in sizes["K"]
        for latent in sizes["latent"]
    ]


def _likelihood_claims(results: Results) -> list[Claim]:
    return [
        beats(
            results, panel, "sDM-Lin", (*LINEAR, *GRADIENT),
            "sDM with a linear likelihood still outperforms all methods where rewards are binary", "4794",
        )
        for panel in results.panels
    ]  # fmt: skip


LIKELIHOOD = Experiment(
    name="sdm-likelihood",
    title="sDM with a linear likelihood where rewards are binary",
    thesis_lines="4790-4803",
    scales={
        "smoke": {"n": [50, 300], "runs": 3, "K": [40], "latent": [10]},
        "quick": {"n": [100, 300, 1_000], "runs": 20, "K": [100, 1_000], "latent": [10]},
        "paper": {"n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20]},
    },
    build=_likelihood_cells,
    claims=_likelihood_claims,
    figures=lambda results, folder: [
        reward_curves(results, results.panels, folder, "reward", "Relative reward where rewards are binary")
    ],
    remarks=[
        METRIC,
        BASELINE_REMARKS,
        "Rewards are Bernoulli with the logistic function of x^T θ_a; linear likelihoods take σ = 1. In these worlds the scores "
        "have standard deviations of about six: most probabilities are near 0 or 1, and many actions are nearly best. DM (Bayes) "
        "plays unseen actions by their prior means, which is very good in some worlds and very bad in others.",
        "sDM-Log, with the right likelihood through the Laplace approximation, is this project's addition. A Gaussian at the "
        "maximum of each action's own likelihood (thesis, lines 1088-1142) has next to no precision where an action has few "
        "rows, all with the same reward: on 100 rows the latent vector keeps 0.99 of its prior variance, and sDM-Log decides by "
        "prior means too. The linear likelihood has no such flat ends.",
    ],
    caption=CAPTION,
    numbers=NUMBERS,
)


# ---- the wrong prior --------------------------------------------------------------------------------------------------


def wrong(v: float, parts: str = "both") -> str:
    """The name of sDM with a misspecified prior."""
    return f"sDM, v={v:g}" if parts == "both" else f"sDM, v={v:g}, {parts} only"


def _prior_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = {METHOD: LEARNERS[METHOD], "DM (Bayes)": LEARNERS["DM (Bayes)"]}
    for parts in ("both", "mean", "covariance"):
        agents |= {wrong(v, parts): learner("sdm", error=v, parts=parts) for v in sizes["v"]}
    return [
        latent_cell(K, latent, agents, sizes["n"], sizes["runs"], name=f"K={K:,}, d'={latent}")
        for K in sizes["K"]
        for latent in sizes["latent"]
    ]


def _levels(results: Results, panel: str) -> list[float]:
    names = [agent for agent in results.agents(panel) if agent.startswith("sDM, v=") and "only" not in agent]
    return [float(name.removeprefix("sDM, v=")) for name in names]


def _prior_claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        levels = _levels(results, panel)
        means = {name: relative(results, panel, name).mean(axis=1) for name in results.agents(panel)}
        order = [METHOD, *(wrong(v) for v in levels)]
        steps = {f"{before} to {after}": measured(means[before] - means[after]) for before, after in pairwise(order)}
        step, drop = least(steps)
        shown = ", ".join(f"{name} {measured(means[name])}" for name in (*order, "DM (Bayes)"))
        found.append(
            claim(
                "sDM's performance decreases with increasing misspecification", "4807", drop, panel=panel,
                detail=f"relative reward over all sizes: {shown}; least convincing step: {step}",
            )
        )  # fmt: skip
        ahead = _leads(results, panel)
        name, difference = least(ahead)
        found.append(
            claim(
                "sDM with a misspecified prior still outperforms well-specified DM (Bayes)", "4807", difference,
                panel=panel, detail=f"lead over all sizes: {', '.join(f'{k} {v}' for k, v in ahead.items())}; least: {name}",
            )
        )  # fmt: skip
        parts = {f"v={v:g}": measured(means[wrong(v, "covariance")] - means[wrong(v, "mean")]) for v in levels}
        name, difference = least(parts)
        found.append(
            claim(
                "Misspecified prior covariances matter less than misspecified prior means", "4807", difference,
                panel=panel, detail="relative reward with wrong covariances less that with wrong means: "
                + ", ".join(f"{k}: {v}" for k, v in parts.items()) + f"; least: {name}",
            )
        )  # fmt: skip
    return [*found, *_more_actions(results)]


def _more_actions(results: Results) -> list[Claim]:
    """The lead of a wrong prior over DM (Bayes) is larger in the largest catalogue than in the smallest."""
    catalogues = sorted({int(results.parameter(panel, "K")) for panel in results.panels})
    if len(catalogues) < 2:
        return []
    found = []
    for latent in sorted({int(results.parameter(panel, "latent")) for panel in results.panels}):
        few, many = (results.where(K=K, latent=latent)[0] for K in (catalogues[0], catalogues[-1]))
        leads = {panel: _leads(results, panel) for panel in (few, many)}
        steps = {name: leads[many][name] - lead for name, lead in leads[few].items()}
        name, difference = least(steps)
        shown = "; ".join(
            f"{panel}: " + ", ".join(f"{k} {v}" for k, v in leads[panel].items()) for panel in (few, many)
        )
        found.append(
            claim(
                "A misspecified prior's lead over DM (Bayes) is larger where K is large", "4807", difference,
                panel=f"d'={latent}", detail=f"lead over all sizes, {shown}; least convincing: {name}",
            )
        )  # fmt: skip
    return found


def _leads(results: Results, panel: str) -> dict[str, Measured]:
    """By how much sDM with a wrong prior exceeds DM (Bayes), mean over the sizes of log."""
    bayes = relative(results, panel, "DM (Bayes)").mean(axis=1)
    names = [wrong(v) for v in _levels(results, panel)]
    return {name: measured(relative(results, panel, name).mean(axis=1) - bayes) for name in names}


def _prior_figures(results: Results, folder: Path) -> list[Path]:
    """What is wrong in both, as in the thesis; then means and covariances apart."""
    levels = _levels(results, results.panels[0])
    both = [METHOD, *(wrong(v) for v in levels), "DM (Bayes)"]
    apart = [METHOD, *(wrong(v, parts) for parts in ("mean", "covariance") for v in levels)]
    drawn = (
        ("reward", both, "Relative reward with a misspecified prior"),
        ("parts", apart, "Relative reward with only prior means, or only covariances, misspecified"),
    )
    return [reward_curves(results, results.panels, folder, name, title, agents=agents) for name, agents, title in drawn]


PRIOR = Experiment(
    name="sdm-prior",
    title="sDM with a misspecified prior",
    thesis_lines="4805-4813",
    scales={
        "smoke": {"n": [50, 300], "runs": 4, "K": [40, 100], "latent": [10], "v": [0.5, 1.0, 1.5]},
        "quick": {
            "n": [100, 300, 1_000, 3_000], "runs": 20, "K": [100, 1_000], "latent": [5, 10, 20], "v": [0.5, 1.0, 1.5],
        },
        "paper": {
            "n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20], "v": [0.5, 1.0, 1.5],
        },
    },
    build=_prior_cells,
    claims=_prior_claims,
    figures=_prior_figures,
    remarks=[
        METRIC,
        "Noise uniform on [v, v + 0.5] is added to μ and to every entry of the W_a (means), and to the variances in Σ and Σ_a "
        "(covariances; adding to entries off the diagonal need not leave a covariance). Claims are about the mean over the "
        "sizes of log. DM (Bayes) has the true marginal prior. The draws of a run are the same for all v, shifted: the spread of "
        "the noise is 0.5 whatever v is, and only its offset, common to all entries, grows with v. An offset that all W_a "
        "share moves the means of all actions alike and hardly changes which is best: most of the loss is there at v = 0.5.",
    ],
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip


# ---- pessimism --------------------------------------------------------------------------------------------------------


def _pessimism_cells(sizes: Mapping[str, Any]) -> list[Cell]:
    agents = {METHOD: LEARNERS[METHOD]}
    agents |= {f"sDM, pessimistic, δ={delta:g}": learner("sdm", delta=delta) for delta in sizes["delta"]}
    agents |= {f"sDM, pessimistic, width {width:g}": learner("sdm", width=width) for width in sizes["width"]}
    return [
        latent_cell(K, latent, agents, sizes["n"], sizes["runs"], name=f"K={K:,}, d'={latent}")
        for K in sizes["K"]
        for latent in sizes["latent"]
    ]


def _pessimism_claims(results: Results) -> list[Claim]:
    found = []
    for panel in results.panels:
        means = {name: relative(results, panel, name).mean(axis=1) for name in results.agents(panel)}
        ahead = {name: measured(means[METHOD] - means[name]) for name in means if name != METHOD}
        name, difference = least(ahead)
        found.append(
            claim(
                "The greedy policy has better average performance than pessimistic ones", "4825", difference, panel=panel,
                detail=f"lead in relative reward, over all sizes: {', '.join(f'{k} {v}' for k, v in ahead.items())}; "
                f"least: {name}",
            )
        )  # fmt: skip
    return found


PESSIMISM = Experiment(
    name="sdm-pessimism",
    title="Greedy against pessimistic decisions with sDM",
    thesis_lines="4815-4831, 4726-4737",
    scales={
        "smoke": {"n": [50, 300], "runs": 6, "K": [40], "latent": [5, 10], "delta": [0.05], "width": [1.0]},
        "quick": {
            "n": [100, 300, 1_000, 3_000], "runs": 20, "K": [100, 1_000], "latent": [5, 10, 20], "delta": [0.05, 0.5],
            "width": [1.0],
        },
        "paper": {
            "n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20],
            "delta": [0.05, 0.5], "width": [1.0],
        },
    },
    build=_pessimism_cells,
    claims=_pessimism_claims,
    figures=lambda results, folder: [
        reward_curves(results, results.panels, folder, "reward", "Relative reward of greedy and pessimistic decisions")
    ],
    remarks=[
        METRIC,
        "δ is not printed in the thesis; α(10, 0.05) is 5.3 and α(10, 0.5) is 4.4. Width 1, one posterior standard deviation, "
        "is this project's addition. That greedy is best on average over the prior is a theorem (lines 4726-4737): a “no” here "
        "can only be for want of runs.",
    ],
    caption=CAPTION,
    numbers=NUMBERS,
)  # fmt: skip

__all__ = ["LIKELIHOOD", "PESSIMISM", "PRIOR", "wrong"]
