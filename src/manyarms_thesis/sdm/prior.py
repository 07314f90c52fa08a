"""sDM with a misspecified prior (thesis, Appendix C.4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.sdm.claims import METHOD, relative
from manyarms_thesis.sdm.common import METRIC, SDM, latent_grid
from manyarms_thesis.sdm.figures import reward_curves
from manyarms_thesis.sdm.learners import LEARNERS, learn_sdm


def wrong(v: float, parts: str = "both") -> str:
    """The name of sDM with a misspecified prior."""
    return f"sDM, v={v:g}" if parts == "both" else f"sDM, v={v:g}, {parts} only"


def _cells(sizes: Sizes) -> list[Cell]:
    learners = {METHOD: LEARNERS[METHOD], "DM (Bayes)": LEARNERS["DM (Bayes)"]}
    for parts in ("both", "mean", "covariance"):
        learners |= {wrong(v, parts): Call(learn_sdm, {"error": v, "parts": parts}) for v in sizes["v"]}
    return latent_grid(sizes, learners)


def _levels(results: Results, panel: str) -> list[float]:
    names = [name for name in results.methods(panel) if name.startswith("sDM, v=") and "only" not in name]
    return [float(name.removeprefix("sDM, v=")) for name in names]


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        levels = _levels(results, panel)
        means = {name: relative(results, panel, name).mean(axis=1) for name in results.methods(panel)}
        order = [METHOD, *(wrong(v) for v in levels)]
        steps = {f"{one} to {other}": measured(means[one] - means[other]) for one, other in pairwise(order)}
        step, drop = least(steps)
        shown = listed({name: measured(means[name]) for name in (*order, "DM (Bayes)")})
        yield claim(
            "sDM's performance decreases with increasing misspecification", "4807", drop, panel=panel,
            detail=f"relative reward over all sizes: {shown}; least convincing step: {step}", parts=list(steps.values()),
        )  # fmt: skip
        ahead = _leads(results, panel)
        name, difference = least(ahead)
        yield claim(
            "sDM with misspecification still outperforms the most competitive baseline, DM (Bayes)", "4807", difference,
            panel=panel, detail=f"lead over all sizes: {listed(ahead)}; least: {name}", parts=list(ahead.values()),
        )  # fmt: skip
        parts = {f"v={v:g}": measured(means[wrong(v, "covariance")] - means[wrong(v, "mean")]) for v in levels}
        name, difference = least(parts)
        yield claim(
            "The impact of prior covariance misspecification is less than that of prior mean misspecification", "4807",
            difference, panel=panel, detail="relative reward with wrong covariances less that with wrong means: "
            + f"{listed(parts)}; least: {name}", parts=list(parts.values()),
        )  # fmt: skip
    yield from _more_actions(results)


def _more_actions(results: Results) -> Iterator[Claim]:
    """The lead of a wrong prior over DM (Bayes) is larger in the largest catalogue than in the smallest."""
    catalogues = results.levels("K")
    if len(catalogues) < 2:
        return
    for latent in results.levels("latent"):
        few, many = (results.where(K=K, latent=latent)[0] for K in (catalogues[0], catalogues[-1]))
        leads = {panel: _leads(results, panel) for panel in (few, many)}
        larger = {name: leads[many][name] - lead for name, lead in leads[few].items()}
        name, difference = least(larger)
        shown = "; ".join(f"{panel}: {listed(leads[panel])}" for panel in (few, many))
        yield claim(
            "Especially when K is large: the lead of misspecified sDM over DM (Bayes) is larger then", "4807", difference,
            panel=f"d'={latent}", detail=f"lead over all sizes, {shown}; least convincing: {name}", parts=list(larger.values()),
        )  # fmt: skip


def _leads(results: Results, panel: str) -> dict[str, Measured]:
    """By how much sDM with a wrong prior exceeds DM (Bayes), mean over the sizes of log."""
    bayes = relative(results, panel, "DM (Bayes)").mean(axis=1)
    names = [wrong(v) for v in _levels(results, panel)]
    return {name: measured(relative(results, panel, name).mean(axis=1) - bayes) for name in names}


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    """What is wrong in both, as in the thesis; then means and covariances apart."""
    levels = _levels(results, results.panels[0])
    both = [METHOD, *(wrong(v) for v in levels), "DM (Bayes)"]
    apart = [METHOD, *(wrong(v, parts) for parts in ("mean", "covariance") for v in levels)]
    for name, learners, title, seen in (
        (
            "reward",
            both,
            "Relative reward with a misspecified prior",
            "What sDM loses when its prior's means and variances are off by v to v + 0.5, beside DM (Bayes) with the right one.",
        ),
        (
            "parts",
            apart,
            "Relative reward with only prior means, or only covariances, misspecified",
            "Wrong means (dotted) and wrong covariances (dash-dotted) apart, beside sDM with the right prior.",
        ),
    ):
        yield reward_curves(results, results.panels, folder, name, title, learners=learners, seen=seen)


PRIOR = SDM.experiment(
    "sdm-prior",
    order=5,
    title="sDM with a misspecified prior",
    thesis_lines="4805-4813",
    question="How much does sDM lose when its prior is wrong, is it still ahead of DM (Bayes) with the right one, and which "
    "error matters more: that of means or that of covariances?",
    setting="sDM's synthetic worlds with {K} actions, d=10, d'={latent} and σ=1; a uniform policy logs {n} rows. Noise uniform "
    "on [v, v + 0.5], v={v}, is added to the prior's means, covariances, or both; means of {runs} worlds.",
    scales={
        "smoke": {"n": [50, 300], "runs": 4, "K": [40, 100], "latent": [10], "v": [0.5, 1.0, 1.5]},
        "quick": {
            "n": [100, 300, 1_000, 3_000], "runs": 20, "K": [100, 1_000], "latent": [5, 10, 20], "v": [0.5, 1.0, 1.5],
        },
        "paper": {
            "n": [100, 300, 1_000, 3_000, 10_000], "runs": 50, "K": [100, 1_000], "latent": [5, 10, 20], "v": [0.5, 1.0, 1.5],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        METRIC,
        "Noise uniform on [v, v + 0.5] is added to μ and to every entry of the W_a (means), and to the variances in Σ and Σ_a "
        "(covariances; adding to entries off the diagonal need not leave a covariance). Claims are about the mean over the "
        "sizes of log. DM (Bayes) has the true marginal prior. The draws of a run are the same for all v, shifted: the spread of "
        "the noise is 0.5 whatever v is, and only its offset, common to all entries, grows with v. An offset that all W_a "
        "share moves the means of all actions alike and hardly changes which is best: most of the loss is there at v = 0.5.",
    ],
)  # fmt: skip

__all__ = ["PRIOR"]
