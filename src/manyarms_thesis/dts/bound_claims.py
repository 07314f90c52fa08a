"""What the thesis states about dTS's bound, from formulas alone and from measured regret."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np
from scipy.special import ndtr

from manyarms._base.typing import Array
from manyarms.theory import dts_rates as rates
from manyarms.theory import rate_scenario as scenario
from manyarms_thesis.harness import regret_bounds
from manyarms_thesis.harness.claims import (
    Claim,
    Measured,
    claim,
    final_regrets,
    gain,
    gains,
    increasing,
    least,
    measured,
    saved,
)
from manyarms_thesis.harness.online import ACTION_CONTEXTS
from manyarms_thesis.harness.results import Results

METHOD = "dTS-LL"
BAYES, FREQUENTIST = "LinTS's Bayesian bound", "LinTS's frequentist bound"
NAMES = ("K", "d", "L", "action_variance", "latent_variance", "columns")
WORDS: Mapping[str, str] = {
    "K": "K", "d": "d", "L": "L", "action_variance": "σ₁²", "latent_variance": "σ² of the latents",
    "columns": "share of columns",
}  # fmt: skip
SCENARIOS: tuple[Literal["decreasing", "constant"], ...] = ("decreasing", "constant")
# the dimension that stands for "d >> 1" (thesis, Section 4.3.1)
HIGH_DIMENSION = 1024
NEARLY_NONE = 1e-9  # stands for a sigma_1 of 0, at which logarithms of 1 / sigma_1 have no value
MUCH_LESS = "the thesis's scenarios have d ≫ 1"


def series(results: Results) -> dict[str, list[str]]:
    """The panels in which one parameter varies and the others have their usual value, but for those of the scenarios."""
    return results.varying(NAMES, scenario="none")


def _is_variant(results: Results) -> bool:
    return any(cell.variant for cell in results.cells.values())


def all_claims(results: Results) -> list[Claim]:
    """Everything that the chapter says about its bound."""
    return [
        *_above_regret(results),
        *_against_lints(results),
        *_growth(results),
        *([] if _is_variant(results) else _scenarios_by_rates()),
        *_scenarios_measured(results),
        *_effective(results),
    ]


def variances_of(results: Results, panel: str) -> list[float]:
    """sigma_1^2, ..., sigma_{L+1}^2 of a panel."""
    name, d = results.parameter(panel, "scenario"), int(results.parameter(panel, "d"))
    if name != "none":
        return [value**2 for value in scenario(name, d)[0]]
    first, other = (float(results.parameter(panel, key)) for key in ("action_variance", "latent_variance"))
    return [first] + [other] * int(results.parameter(panel, "L"))


def at_random(results: Results, panel: str) -> float:
    """The regret of playing at random for all rounds, at most: what a bound must be below to say anything.

    A random choice loses the largest of K scores less their mean. With a shared context x scores differ by N(0, sigma_1^2 |x|^2)
    alone, and E |x| <= sqrt(d / 3). With a context for each action what actions have in common differs too; links have norm 1.
    """
    cell, variances = results.cells[panel], variances_of(results, panel)
    spread = sum(variances) if cell.variant == ACTION_CONTEXTS else variances[0]
    K, d = (int(results.parameter(panel, name)) for name in ("K", "d"))
    return cell.rounds * math.sqrt(spread * d / 3) * expected_largest(K)


@cache
def expected_largest(K: int) -> float:
    """The expected largest of K standard normal numbers: the integral of x times its density, K phi(x) Phi(x)^(K - 1)."""
    x = np.linspace(-10.0, 10.0, 20_001)
    density = K * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) * ndtr(x) ** (K - 1)
    return float((x * density).sum() * (x[1] - x[0]))


def _above_regret(results: Results) -> Iterator[Claim]:
    for column, words in (
        ("bound", "the theorem's bound, first latent term corrected"),
        ("bound, tight", "what the proof gives when nothing is given away"),
        ("bound, as printed", "the theorem's bound as printed (its proof has a gap)"),
    ):
        yield _covered(
            results, column, f"The Bayes regret of dTS is below {words}, in every panel where that says anything"
        )
    statement = "The bound is of order √T up to logarithms, and regret grows more slowly than T"
    yield regret_bounds.sublinear(results, METHOD, statement, "")


def _covered(results: Results, column: str, statement: str) -> Claim:
    """A bound above the regret counts where it is below the regret of playing at random; elsewhere it is vacuous."""
    bounds = {panel: float(results.final(panel, METHOD, column).mean()) for panel in results.panels}
    telling = [panel for panel, bound in bounds.items() if bound < at_random(results, panel)]
    vacuous = f"vacuous in {len(bounds) - len(telling)} of {len(bounds)} panels (above the regret of playing at random)"
    over = [bounds[panel] / float(results.final(panel, METHOD).mean()) for panel in results.panels]
    detail = f"{vacuous}; the bound is {min(over):.1f} to {max(over):.1f} times the measured regret"
    if not telling:
        nearest = min(bounds, key=lambda panel: bounds[panel] / at_random(results, panel))
        share = bounds[nearest] / at_random(results, nearest)
        return claim(
            statement, "3594-3602", Measured(1 - share, math.nan), panel=nearest,
            detail=f"{detail}; at best it is {share:.2f} times what playing at random loses",
        )  # fmt: skip
    room = {panel: measured(results.final(panel, METHOD, column) - results.final(panel, METHOD)) for panel in telling}
    panel, least_room = least(room)
    return claim(statement, "3594-3602", least_room, panel=panel, parts=list(room.values()), detail=detail)


def _against_lints(results: Results) -> Iterator[Claim]:
    def over(panel: str, column: str) -> Array:
        """(runs,) a bound of LinTS over that of dTS."""
        return results.final(panel, METHOD, column) / results.final(panel, METHOD, "bound")

    for column, words in ((BAYES, "Bayesian"), (FREQUENTIST, "frequentist")):
        ratios = {panel: measured(over(panel, column) - 1) for panel in results.panels}
        panel, room = least(ratios)
        low, high = (f(1 + value.mean for value in ratios.values()) for f in (min, max))
        yield claim(
            f"dTS's bound is below the {words} bound of LinTS, in every panel", "1582, 4059-4075", room, panel=panel,
            parts=list(ratios.values()),
            detail=f"LinTS's bound over dTS's, less one; the ratio is {low:.3g} to {high:.3g} over all panels",
        )  # fmt: skip
    by_size = {f"K={results.parameter(panel, 'K')}": panel for panel in series(results)["K"]}
    statement = "The advantage of dTS's bound over LinTS's (Bayesian, as a ratio) increases with the action space"
    yield increasing({name: measured(over(panel, BAYES)) for name, panel in by_size.items()}, statement, "1582")
    statement = "dTS's advantage over LinTS in measured regret increases with the action space"
    yield increasing(gains(results, by_size, METHOD, "LinTS"), statement, "1582")


def _growth(results: Results) -> Iterator[Claim]:
    words = {
        "K": "K", "d": "d", "L": "L", "action_variance": "the actions' variance σ₁²",
        "latent_variance": "the latents' variances", "columns": "the number of columns d_l",
    }  # fmt: skip
    for name, panels in series(results).items():
        values = final_regrets(results, {f"{WORDS[name]}={results.parameter(p, name):g}": p for p in panels}, METHOD)
        yield increasing(values, f"Regret grows with {words[name]}, as the bound does", "1577")


def _scenarios_by_rates() -> Iterator[Claim]:
    """The rates of Section 4.3.1 at a large d, from the sums that they abbreviate; no world of a run has a part in it."""
    yield from (replace(one, of_formulas=True) for one in _of_rates())


def _of_rates() -> Iterator[Claim]:
    d, K, T = HIGH_DIMENSION, 1, 1
    L = int(math.log2(d))
    ratio: list[float] = []
    for name, lines in zip(SCENARIOS, ("1596-1601", "1602-1607"), strict=True):
        sigmas, active = scenario(name, d)
        # what the latents add, in units of d and of sigma_1^2
        added = rates(T, K, d, sigmas, active=active).dts ** 2 / (d * sigmas[0] ** 2) - K
        yield claim(
            f"With {name} variances dTS's rate is √(T d (K + L)): the latents add L", lines,
            Measured(L * (1 + 1e-9) - added, 0.0), panel=f"d={d}, L={L}, d_l = d / 2^l",
            detail=f"L less what the latents add to K, in the thesis's own sum; they add {added:g}",
        )  # fmt: skip
        many = rates(T, 10**6, d, sigmas, active=active)
        ratio.append(many.lints**2 / many.dts**2)
    yield claim(
        "By rates, the gain over LinTS is greater with decreasing variances than with constant ones", "1607",
        Measured(ratio[0] - ratio[1], 0.0), panel=f"d={d}, L={L}, K=1,000,000",
        detail=f"ratio of the squared rates: {ratio[0]:.4g} and {ratio[1]:.4g}",
    )  # fmt: skip
    few, many_actions = (rates(T, actions, d, [NEARLY_NONE, 1.0]).dts for actions in (10, 10**6))
    yield claim(
        "Setting σ₁ = 0 would make the rate independent of K", "1584",
        Measured(1e-9 - abs(many_actions / few - 1), 0.0), panel=f"d={d}, L=1, σ₂ = 1, σ₁ = {NEARLY_NONE:g}",
        detail=f"the rates with 10 and with 1,000,000 actions differ by a share of {abs(many_actions / few - 1):.1g}; the "
        "theorem's own first latent term has log(1 + σ₂²/σ₁²), which has no limit there",
    )  # fmt: skip


def _scenarios_measured(results: Results) -> Iterator[Claim]:
    sizes = sorted({(results.parameter(p, "d"), results.parameter(p, "K")) for p in results.where(scenario="constant")})
    for d, K in sizes:
        shares = []
        for name in SCENARIOS:
            (panel,) = results.where(scenario=name, d=d, K=K)
            shares.append(saved(results, panel, METHOD, "LinTS"))
            yield claim(
                f"With {name} variances dTS has lower regret than LinTS", "1596-1607",
                gain(results, panel, METHOD, "LinTS"), panel=panel, detail=f"saved {shares[-1]} of LinTS's regret; {MUCH_LESS}",
            )  # fmt: skip
        decreasing, constant = shares
        yield claim(
            "The gain is greater with decreasing variances than with constant ones", "1607", decreasing - constant,
            panel=f"d={d}, K={K}", detail=f"share of LinTS's regret saved: {decreasing} and {constant}; {MUCH_LESS}",
        )  # fmt: skip


def _effective(results: Results) -> list[Claim]:
    """K_eff: regret follows sqrt(d K_eff sum_l sigma_l^2), and a small K_eff means a large gain."""

    def scale(panel: str) -> float:
        d, L, v, u = (float(results.parameter(panel, name)) for name in NAMES[1:5])
        return d * (v + L * u)

    panels, root = results.where(scenario="none"), "√(d K_eff Σσ_l²)"
    return regret_bounds.effective_actions(results, panels, METHOD, scale, root, ("", ""))


__all__ = [
    "BAYES",
    "FREQUENTIST",
    "METHOD",
    "NAMES",
    "SCENARIOS",
    "WORDS",
    "all_claims",
    "at_random",
    "expected_largest",
    "series",
]
