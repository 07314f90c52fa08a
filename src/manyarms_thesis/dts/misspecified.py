"""dTS with a wrong chain: links and covariances shifted by noise of level v (thesis, Section 4.4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from manyarms._base.palette import PALETTE
from manyarms_thesis.dts.agents import dts, hierts_of_top
from manyarms_thesis.dts.common import (
    CONTEXT_ACCURACY,
    DEAR,
    DTS,
    REMARKS,
    SCALINGS,
    contexts_matter,
    synthetic_cell,
    with_contexts,
)
from manyarms_thesis.harness.claims import Claim, claim, gain, least, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn, regret_curves
from manyarms_thesis.harness.online import lints
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Call, Cell

LEVELS = (0.5, 1.0, 1.5)
RIGHT, BASELINE = "dTS-LL", "HierTS"


def name_of(v: float) -> str:
    """The agent whose prior is wrong by v."""
    return f"dTS-LL, v={v:g}"


AGENTS = {
    RIGHT: Call(dts),
    **{name_of(v): Call(dts, {"misspecified": v}) for v in LEVELS},
    BASELINE: Call(hierts_of_top),
    "LinTS": Call(lints),
}
LOOKS = {name_of(v): (PALETTE[5], dashes) for v, dashes in zip(LEVELS, ("--", "-.", ":"), strict=True)}


def _cells(sizes: Sizes) -> Iterator[Cell]:
    cells = [
        synthetic_cell(sizes, K, d, L, scaled=scaled, agents=AGENTS, name=f"{words}, K={K:,}, d={d}, L={L}")
        for scaled, words in SCALINGS.items()
        for d, L in sizes["shapes"]
        for K in sizes["K"]
    ]
    return with_contexts(sizes, cells)


def _claims(results: Results) -> Iterator[Claim]:
    for panel in results.panels:
        final = {agent: results.final(panel, agent) for agent in results.methods(panel)}
        order = [RIGHT, *map(name_of, LEVELS)]
        # one set of worlds for all agents: steps are differences run by run
        steps = {f"{a} to {b}": measured(final[b] - final[a]) for a, b in pairwise(order)}
        step, difference = least(steps)
        shown = ", ".join(f"{agent}: {measured(final[agent])}" for agent in (*order, BASELINE))
        yield claim(
            "dTS's performance decreases with increasing misspecification", "1639", difference, panel=panel,
            parts=list(steps.values()), detail=f"{shown}; least convincing step: {step}",
        )  # fmt: skip
        for v in LEVELS[:-1]:
            yield claim(
                f"Misspecified by v={v:g}, dTS-LL remains superior to HierTS", "1639",
                gain(results, panel, name_of(v), BASELINE), panel=panel,
                detail="final regret of HierTS, which knows the true prior, less that of misspecified dTS-LL",
            )  # fmt: skip
        yield _comparable(results, panel)


def _comparable(results: Results, panel: str) -> Claim:
    """At the highest level the two are comparable: they differ by less than a tenth, by two standard errors."""
    v = LEVELS[-1]
    wrong, baseline = results.final(panel, name_of(v)), results.final(panel, BASELINE)
    apart = measured(wrong - baseline)
    room = measured(0.1 * baseline - math.copysign(1.0, apart.mean) * (wrong - baseline))
    return claim(
        f"Misspecified by v={v:g}, dTS-LL is comparable to HierTS", "1639", room, panel=panel,
        detail=f"a tenth of HierTS's regret less the distance of the two; dTS-LL less HierTS: {apart}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Drawn]:
    title = "Regret with a misspecified diffusion prior"
    seen = "dTS-LL with the true chain, and with one whose links and covariances are off by a level v, beside HierTS and LinTS."
    return [regret_curves(results, results.panels, folder, "misspecified", title, columns=2, looks=LOOKS, seen=seen)]


MISSPECIFIED = DTS.experiment(
    "dts-misspecified",
    order=4,
    title="dTS with a misspecified diffusion prior",
    thesis_lines="1639",
    scales={
        "smoke": {"rounds": 80, "runs": 3, "K": [30], "shapes": [[5, 2]]},
        "quick": {"rounds": 2_000, "runs": 12, "K": [100], "shapes": [[5, 2]], "context_K": 100},
        "paper": {
            "rounds": 5_000, "runs": 50, "K": [100, 10_000], "shapes": [[5, 2], [20, 4]], "context_K": 100,
            "context_runs": 20,
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    across=contexts_matter(lambda results, panel: RIGHT, "LinTS"),
    accuracy=CONTEXT_ACCURACY,
    question="How wrong may the assumed chain of hidden causes be before it no longer pays to use it?",
    setting="Linear diffusion worlds with dimension and depth {shapes} and {K} items. dTS-LL is given links and covariances that "
    "are off by noise of level v = 0.5, 1 and 1.5; dTS-LL with the true chain, HierTS and LinTS, which know the true prior, play "
    "beside it for {rounds} rounds in {runs} worlds.",
    remarks=[
        *REMARKS,
        "Sigma_l + ε₂ must be a covariance: ε₂ is made symmetric by averaging it with its transpose, which keeps its entries "
        "in [v, v+0.5], and eigenvalues below 0.01 would be raised to 0.01. ε is drawn anew in every run. HierTS and LinTS "
        "know the true prior. “Comparable” is measured as: less than a tenth of HierTS's regret apart, which with "
        "10,000 items is more than any agent's lead, so that it cannot fail there and says little. The thesis prints neither K, "
        "d nor L here.",
        DEAR.format("100", "20"),
    ],
)  # fmt: skip

__all__ = ["MISSPECIFIED"]
