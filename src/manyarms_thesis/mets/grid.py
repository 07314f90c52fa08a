"""meTS in synthetic bandits with varying K, d and L (thesis, Section 3.4.1 and Appendix A.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from manyarms_thesis.harness.claims import Claim, final_regrets, gains, increasing, saved
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, draw_series, final_series, regret_curves
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.agents import AT_MODES, LINEAR, LOGISTIC_AGENTS
from manyarms_thesis.mets.common import (
    CONTEXT_ACCURACY,
    EFFECT_VARIANCE,
    EQUAL,
    LOOKS,
    METS,
    MODES_REMARK,
    REMARKS,
    at_modes,
    beats_baselines,
    both_schemes,
    printed,
    synthetic_cell,
)


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for reward, agents in (("linear", LINEAR), ("logistic", (*LOGISTIC_AGENTS, *AT_MODES))):
        for d in sizes["d"]:
            for K in sizes["K"]:
                yield synthetic_cell(sizes, agents, K, sizes["L"][0], d, reward=reward)
    for L in sizes["L"][1:]:
        yield synthetic_cell(sizes, LINEAR, sizes["K"][-1], L, sizes["d"][0])
    K, d, agents = sizes["K"][-1], sizes["d"][0], ("meTS-Lin", "LinTS")
    for L in sizes["L"]:
        yield synthetic_cell(sizes, agents, K, L, d, equal=True)
    for L in sizes["L"][1:]:  # the first of them is as printed
        variance = EFFECT_VARIANCE * sizes["L"][0] / L
        name = f"linear, K={K:,}, L={L}, d={d}, σ_Ψ²={variance:g}"
        yield synthetic_cell(sizes, agents, K, L, d, effect_variance=variance, name=name)


def _claims(results: Results) -> Iterator[Claim]:
    effects, dims, sizes = (results.levels(name) for name in ("L", "d", "K"))
    for panel in printed(results, L=effects[0]):
        yield from beats_baselines(results, panel, "3366")
    for reward, method, baseline in (("linear", "meTS-Lin", "LinTS"), ("logistic", "meTS-GLM", "GLM-TS")):
        panels = {(d, K): printed(results, reward=reward, d=d, K=K, L=effects[0])[0] for d in dims for K in sizes}
        for d in dims:
            by_size, where = {f"K={K}": panels[d, K] for K in sizes}, f"{reward}, d={d}"
            regrets, ahead = final_regrets(results, by_size, method), gains(results, by_size, method, baseline)
            yield increasing(regrets, f"A higher K leads to a higher regret of {method}", "1238", panel=where)
            statement = f"The gain of {method} over {baseline} becomes smaller when K/L decreases (by K)"
            yield increasing(ahead, statement, "3366", panel=where)
        for K in sizes:
            regrets = final_regrets(results, {f"d={d}": panels[d, K] for d in dims}, method)
            statement = f"A higher d leads to a higher regret of {method}"
            yield increasing(regrets, statement, "1238", panel=f"{reward}, K={K}")
    yield from at_modes(results, printed(results, reward="logistic", L=effects[0]))
    yield from _growing_effects(results, effects, sizes[-1], dims[0])


def _growing_effects(results: Results, effects: Sequence[int], K: int, d: int) -> Iterator[Claim]:
    panels = {f"L={L}": printed(results, reward="linear", d=d, K=K, L=L)[0] for L in effects}
    equal = {f"L={L}": results.where(weights="unit", L=L)[0] for L in effects}
    average = {**panels, **{f"L={L}": _on_average(results, L)[0] for L in effects[1:]}}
    falling = dict(reversed(panels.items()))
    where = f"linear, K={K}, d={d}"
    regrets, ahead = final_regrets(results, panels, "meTS-Lin"), gains(results, falling, "meTS-Lin", "LinTS")
    yield increasing(regrets, "A higher L leads to a higher regret of meTS-Lin", "1238", panel=where)
    for fixed, how in ((equal, EQUAL), (average, f"{EQUAL} on average")):
        regrets = final_regrets(results, fixed, "meTS-Lin")
        statement = "At fixed marginal variance of the actions a higher L leads to a higher regret of meTS-Lin"
        yield increasing(regrets, statement, "", panel=f"{where}, {how}")
        ends = {name: regrets[name] for name in (f"L={effects[0]}", f"L={effects[-1]}")}
        statement = (
            f"At fixed marginal variance meTS-Lin has more regret with {effects[-1]} effects than with {effects[0]}"
        )
        yield increasing(ends, statement, "", panel=f"{where}, {how}")
    statement = "The gain of meTS-Lin over LinTS becomes smaller when K/L decreases (by L)"
    yield increasing(ahead, statement, "", panel=where)
    shares = {name: saved(results, panel, "meTS-Lin", "LinTS") for name, panel in falling.items()}
    statement = "The gain of meTS-Lin, as a share of LinTS's regret, becomes smaller when K/L decreases (by L)"
    yield increasing(shares, statement, "", panel=where)
    statement = f"{statement}, at fixed marginal variance"
    shares = {name: saved(results, equal[name], "meTS-Lin", "LinTS") for name in falling}
    yield increasing(shares, statement, "", panel=f"{where}, {EQUAL}")


def _on_average(results: Results, L: int) -> list[str]:
    """Panels whose effects have a smaller variance the more there are, so that actions have the printed one on average."""
    return results.where(weights=None, L=L, effect_variance=EFFECT_VARIANCE * results.levels("L")[0] / L)


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for reward in ("linear", "logistic"):
        panels = printed(results, reward=reward, L=results.levels("L")[0])
        yield regret_curves(
            results, panels, folder, f"regret-{reward}", f"Regret in {reward} problems with varying d and K",
            columns=len(results.levels("K")), looks=LOOKS,
            seen="More actions to the right, more dimensions below: the same comparison in worlds of growing size.",
        )  # fmt: skip
    K, d = results.levels("K")[-1], results.levels("d")[0]
    groups = {
        "weights as in the thesis": printed(results, reward="linear", K=K, d=d),
        "equal variance on average": [
            printed(results, reward="linear", K=K, d=d, L=results.levels("L")[0])[0],
            *(panel for L in results.levels("L")[1:] for panel in _on_average(results, L)),
        ],
        "equal variance of every action": results.where(weights="unit"),
    }
    yield draw_series(
        {name: final_series(results, panels, "L", methods=("meTS-Lin", "LinTS")) for name, panels in groups.items()}, folder,
        "effects", f"Final regret with more effects, K={K}, d={d}", xlabel="L",
        seen="On the left more effects also make actions more different from each other, since the weights are drawn as in the "
        "thesis. In the middle the effects' variance falls as 1/L, so that it stays the same on average over actions; on the "
        "right weights have length one, so that it is the same for every action, and only the number of things to learn grows.",
    )  # fmt: skip


GRID = METS.experiment(
    "mets-grid",
    order=2,
    title="meTS in synthetic bandits with varying K, d and L",
    thesis_lines="1238, 3364-3380",
    scales={
        "smoke": {"rounds": 60, "runs": 3, "K": [10, 30], "d": [2, 3], "L": [3, 6]},
        "quick": {"rounds": 1_000, "runs": 12, "K": [20, 50, 100], "d": [2, 5], "L": [3, 5, 10, 20]},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [20, 50, 100], "d": [2, 5], "L": [3, 5, 10, 20]},
    },
    build=lambda sizes: both_schemes(sizes, _cells(sizes)),
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=_figures,
    question="Does meTS stay ahead whatever the numbers of actions and dimensions are, and does a larger world (more actions, "
    "effects or dimensions) cost it more regret?",
    setting="K = {K} actions, d = {d} dimensions and L = {L} effects, with linear rewards and with clicks; effects have variance "
    "3, actions deviate from them with variance 1. All agents of the main comparison play {rounds} rounds, {runs} times in "
    "each world.",
    remarks=[
        *REMARKS,
        MODES_REMARK,
        "That the gain becomes smaller when K/L decreases the thesis says without naming over whom; it is over LinTS and GLM-TS.",
        "The thesis does not print the numbers of effects behind “a higher L”: they are this project's choice.",
        "Equal marginal variance: weights uniform on [-1, 1] give an action the marginal covariance (σ₀² + ‖b_a‖² σ_Ψ²) I, and "
        "‖b_a‖² is L/3 on average, so that more effects also spread the actions' rewards. An effects' variance of 9/L keeps the "
        "average at 4, but actions then differ less in it the more effects there are. Weights scaled to length one make it "
        "(σ₀² + σ_Ψ²) I = 4 I for every action and every L.",
    ],
)  # fmt: skip

__all__ = ["GRID"]
