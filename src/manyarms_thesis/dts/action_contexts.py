"""dTS against LinTS with one context for all actions, and with a context for each: the thesis's words, and code.

The thesis draws one X_t a round (Section 4.4.1). Its authors' public code, which is for meTS, draws a context for each action.
With one context for all, what actions have in common, x^T f_1(psi_1), is the same number for all of them and never decides: only
what sets them apart does.
With a context each, z_a^T f_1(psi_1) tells them apart, and who learns it once for all is far ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from manyarms._base.files import write_text_atomically
from manyarms_thesis.dts.agents import dts
from manyarms_thesis.dts.common import DTS, REMARKS, synthetic_cell
from manyarms_thesis.harness.claims import Claim, claim, lower_regret, measured, ratio
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, regret_curves
from manyarms_thesis.harness.online import lints, online_regret, online_regret_of_action_contexts
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell, Task

AGENTS = {"dTS-LL": Call(dts), "LinTS": Call(lints)}
SCHEMES: Mapping[str, Task] = {
    "one context for all": online_regret,
    "a context for each action": online_regret_of_action_contexts,
}


def _cells(sizes: Sizes) -> list[Cell]:
    return [
        synthetic_cell(
            sizes, K, d, L, agents=AGENTS, name=f"{size_of(K, d, L)}, {scheme}", task=task, more={"scheme": scheme}
        )
        for K, d, L in sizes["shapes"]
        for scheme, task in SCHEMES.items()
    ]


def size_of(K: int, d: int, L: int) -> str:
    """The size of a world in words."""
    return f"K={K:,}, d={d}, L={L}"


def _claims(results: Results) -> list[Claim]:
    shared, each = SCHEMES
    found = [
        lower_regret(results, panel, "dTS-LL", "LinTS", "dTS-LL has lower regret than LinTS", lines)
        for scheme, lines in ((shared, "1631"), (each, ""))  # the thesis writes one context
        for panel in results.where(scheme=scheme)
    ]
    for size, (one, each) in _pairs(results).items():
        ratios = [ratio(results, panel, "dTS-LL", "LinTS") for panel in (one, each)]
        statement = "LinTS's regret over that of dTS-LL is larger with a context for each action than with one for all"
        shown = "; ".join(f"{scheme}: {value}" for scheme, value in zip(SCHEMES, ratios, strict=True))
        found.append(claim(statement, "", ratios[1] - ratios[0], panel=size, detail=shown))
    return found


def _pairs(results: Results) -> dict[str, tuple[str, str]]:
    """By size, the panels of the two schemes."""
    one, each = (results.where(scheme=scheme) for scheme in SCHEMES)
    sizes = [size_of(*(results.parameter(panel, name) for name in "KdL")) for panel in one]
    return dict(zip(sizes, zip(one, each, strict=True), strict=True))


def table(results: Results) -> str:
    """The table of docs/methods.md, in Markdown."""
    lines = ["| world | contexts | dTS-LL | LinTS | LinTS over dTS-LL |", "| --- | --- | ---: | ---: | ---: |"]
    for size, panels in _pairs(results).items():
        for scheme, panel in zip(SCHEMES, panels, strict=True):
            finals = [measured(results.final(panel, agent)) for agent in AGENTS]
            shown = " | ".join(f"{value.mean:,.0f} ± {value.standard_error:,.0f}" for value in finals)
            quotient = ratio(results, panel, "dTS-LL", "LinTS")
            lines.append(f"| {size} | {scheme} | {shown} | {quotient.mean:.2f} ± {quotient.standard_error:.2f} |")
    return "\n".join(lines) + "\n"


def _figures(results: Results, folder: Path) -> list[Drawn]:
    write_text_atomically(folder.parent / "table.md", table(results))
    title = "Regret with one context for all actions, and with a context for each"
    seen = "Left, one context a round for all items, as the thesis writes; right, one for each item."
    return [regret_curves(results, results.panels, folder, "schemes", title, columns=2, seen=seen)]


ACTION_CONTEXTS = DTS.experiment(
    "dts-action-contexts",
    order=11,
    title="dTS and LinTS with a context for each action",
    thesis_lines="1613-1631",
    scales={
        "smoke": {"rounds": 100, "runs": 3, "shapes": [[20, 5, 2], [20, 20, 4]]},
        "quick": {"rounds": 1_500, "runs": 6, "shapes": [[100, 5, 2], [1_000, 5, 2], [100, 20, 4]]},
        "paper": {"rounds": 5_000, "runs": 50, "shapes": [[100, 5, 2], [1_000, 5, 2], [100, 20, 4]]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    question="Does it matter whether all items are judged in the same context, or each item in one of its own?",
    setting="Linear diffusion worlds of sizes (K, d, L) = {shapes}; dTS-LL and LinTS play {rounds} rounds in {runs} worlds, once "
    "with one context a round that all items share and once with a context for each item.",
    remarks=[
        *REMARKS[1:],
        "A context for each action: in every round every action has a context of its own, uniform on [-1, 1]^d, independent over "
        "actions and rounds; regret is against the best pair of action and context. That this scheme is compared at all is this "
        "project's choice: the thesis writes one context X_t; its authors' public code, for meTS, draws one for each. "
        "The table is in table.md.",
    ],
)

__all__ = ["ACTION_CONTEXTS", "table"]
