"""dTS against LinTS as the catalogue grows to 50,000 actions (thesis, line 1635)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.dts.builders import agent_call, synthetic_cell
from manyarms_thesis.dts.figures import against
from manyarms_thesis.dts.synthetic import REMARKS
from manyarms_thesis.harness.claims import Claim, claim, gain, increasing, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment

AGENTS = {"dTS-LL": agent_call("dTS"), "LinTS": agent_call("LinTS")}
WORDS = {False: "as printed", True: "links scaled"}


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    return [
        synthetic_cell(
            K, sizes["d"], sizes["L"], sizes["rounds"], sizes["runs"], scaled=scaled, chosen=AGENTS,
            name=f"{WORDS[scaled]}, K={K:,}",
        )
        for scaled in (False, True)
        for K in sizes["K"]
    ]  # fmt: skip


def _claims(results: Results) -> list[Claim]:
    found = []
    for scaled, words in WORDS.items():
        panels = results.where(scaled=scaled)
        gaps = {f"K={results.parameter(panel, 'K'):,}": gain(results, panel, "dTS-LL", "LinTS") for panel in panels}
        found += [
            claim(
                "dTS-LL has lower regret than LinTS", "1635", gap, panel=panel,
                detail=f"final regret: dTS-LL {measured(results.final(panel, 'dTS-LL'))}, "
                f"LinTS {measured(results.final(panel, 'LinTS'))}",
            )
            for panel, gap in zip(panels, gaps.values(), strict=True)
        ]  # fmt: skip
        statement = "The gap between dTS-LL and LinTS widens as K increases"
        found.append(increasing(gaps, statement, "1635", panel=words))
    return found


def _figures(results: Results, folder: Path) -> list[Path]:
    groups = {
        words: {
            agent: {
                float(results.parameter(panel, "K")): measured(results.final(panel, agent))
                for panel in results.where(scaled=scaled)
            }
            for agent in AGENTS
        }
        for scaled, words in WORDS.items()
    }
    return [against(groups, "K", folder, "actions", "Final cumulative regret against the number of actions")]


ACTIONS = Experiment(
    name="dts-actions",
    title="dTS and LinTS as the catalogue grows",
    thesis_lines="1635",
    scales={
        "smoke": {"rounds": 100, "runs": 3, "d": 5, "L": 2, "K": [10, 1_000]},
        "quick": {"rounds": 2_000, "runs": 8, "d": 5, "L": 2, "K": [10, 100, 1_000, 10_000]},
        "paper": {"rounds": 5_000, "runs": 50, "d": 5, "L": 2, "K": [10, 100, 1_000, 10_000, 50_000]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis prints neither d and L nor the values of K between 10 and 50,000: d=5, L=2 are its smaller "
        "problem, the values of K this project's choice. A gap cannot widen for ever: where K is beyond T, most actions "
        "can never be tried, and both methods live on their prior.",
    ],
)

__all__ = ["ACTIONS"]
