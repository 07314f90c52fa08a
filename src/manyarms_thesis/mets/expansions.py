"""Where logistic likelihoods are expanded, by regret: the thesis's rule (Section 3.2.3) beside the library's default.

The thesis replaces an action's likelihood by a Gaussian around its maximum ("mle"). The others expand it at a mode: under the
action's marginal prior ("mode"), or under what is believed without its own rows ("cavity"), which for independent actions is the
same (manyarms/beliefs/likelihoods/base.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyarms._base.files import write_text_atomically
from manyarms._base.palette import PALETTE
from manyarms.beliefs.likelihoods.base import EXPANSIONS
from manyarms_thesis.dts import common as diffusion
from manyarms_thesis.dts.agents import dts
from manyarms_thesis.harness.claims import Claim, lower_regret, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, regret_curves
from manyarms_thesis.harness.online import LOGISTIC, glmts, ucbglm
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell
from manyarms_thesis.mets.agents import mets
from manyarms_thesis.mets.common import CONTEXT_ACCURACY, METS, REMARKS, both_schemes, synthetic_cell

LINES = "1088-1142"
ALONE = ("mode", "mle")  # of independent actions, whose cavity is their prior
COLOURS = {
    "meTS-GLM": PALETTE[0], "dTS-LN": PALETTE[0], "GLM-TS": PALETTE[1], "UCB-GLM": PALETTE[4], "UCB-GLM of width 1": PALETTE[2],
}  # fmt: skip
DASHES = {"mode": "-", "cavity": "--", "mle": ":"}
LOOKS = {f"{agent}, {rule}": (colour, dash) for agent, colour in COLOURS.items() for rule, dash in DASHES.items()}


def _methods(name: str, sharing: Callable[..., Any]) -> dict[str, Call]:
    """An agent that shares what it learns and three that do not, by every rule."""
    found = {f"{name}, {rule}": Call(sharing, {**LOGISTIC, "expansion": rule}) for rule in EXPANSIONS}
    for rule in ALONE:
        found[f"GLM-TS, {rule}"] = Call(glmts, {"expansion": rule})
        found[f"UCB-GLM, {rule}"] = Call(ucbglm, {"expansion": rule})
        found[f"UCB-GLM of width 1, {rule}"] = Call(ucbglm, {"expansion": rule, "width": 1.0})
    return found


def _cells(sizes: Sizes) -> Iterator[Cell]:
    mixed, chained = _methods("meTS-GLM", mets), _methods("dTS-LN", dts)
    for K in sizes["K"]:
        yield synthetic_cell(sizes, mixed, K, reward="logistic")
    chain = diffusion.synthetic_cell(sizes, sizes["K"][0], 5, 2, scaled=True, reward="logistic", agents=chained)
    yield replace(chain, variant="")  # no world of this experiment is one of which the thesis states anything


def _claims(results: Results) -> list[Claim]:
    return [
        lower_regret(
            results, panel, method, f"{agent}, mle",
            f"{agent} expanded at the {rule} has less regret than expanded at the maximum likelihood", "",
        )
        for panel in results.panels
        for method in results.methods(panel)
        for agent, rule in [method.rsplit(", ", 1)]
        if rule != "mle"
    ]  # fmt: skip


def _table(results: Results) -> str:
    """Final regret, a line for each agent and a column for each rule."""
    lines = [f"| world | agent | {' | '.join(EXPANSIONS)} |", "| --- | --- |" + " ---: |" * len(EXPANSIONS)]
    for panel in results.panels:
        agents = dict.fromkeys(method.rsplit(", ", 1)[0] for method in results.methods(panel))
        for agent in agents:
            names = [f"{agent}, {rule}" for rule in EXPANSIONS]
            shown = (
                str(measured(results.final(panel, name))) if name in results.methods(panel) else "as mode"
                for name in names
            )
            lines.append(f"| {panel} | {agent} | {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _figures(results: Results, folder: Path) -> list[Drawn]:
    write_text_atomically(folder.parent / "table.md", _table(results))
    return [
        regret_curves(
            results, results.panels, folder, "regret", "Regret by where likelihoods are expanded", looks=LOOKS,
            seen="One colour an agent: full lines expand at a mode under the prior, broken ones under what is believed without "
            "the action's own rows (cavity), dotted ones at the maximum of the likelihood, as the thesis does.",
        )
    ]  # fmt: skip


EXPANSION = METS.experiment(
    "mets-glm",
    order=9,
    title="Logistic rewards: likelihoods expanded at a mode or at their maximum",
    thesis_lines=LINES,
    scales={
        "smoke": {"rounds": 100, "runs": 3, "K": [20, 60]},
        "quick": {"rounds": 1_000, "runs": 8, "K": [100, 2_000]},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [100, 2_000]},
    },
    build=lambda sizes: both_schemes(sizes, _cells(sizes)),
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    figures=_figures,
    question="Clicks have no closed-form posterior, so a likelihood is replaced by a Gaussian around one point. Which point: the "
    "maximum of an action's likelihood, as the thesis has it, or a mode that also knows the prior?",
    setting="K = {K} actions that mix L = 3 effects (d = 2), and a chain of L = 2 linear links (d = 5), with logistic rewards. "
    "meTS-GLM or dTS-LN, GLM-TS and UCB-GLM play {rounds} rounds by every rule, {runs} times.",
    remarks=[
        *REMARKS,
        "The claims are not the thesis's, which has one rule: they say whether the library's default is right to differ. The "
        "cavity of independent actions is their prior. In the last panel a chain of linear links with unit gain is drawn anew in "
        "every run. The table of final regrets is also in table.md.",
    ],
)  # fmt: skip

__all__ = ["EXPANSION"]
