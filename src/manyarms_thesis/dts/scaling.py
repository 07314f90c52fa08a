"""How dTS's regret grows with K, d and L (thesis, line 1637)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyarms_thesis.dts.builders import agent_call, synthetic_cell
from manyarms_thesis.dts.figures import against
from manyarms_thesis.dts.synthetic import REMARKS
from manyarms_thesis.harness.claims import Claim, increasing, measured
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell, Experiment

AGENT = "dTS-LL"
AGENTS = {AGENT: agent_call("dTS")}
NAMES = ("K", "d", "L")
WORDS = {False: "as printed", True: "links scaled"}


def _cells(sizes: Mapping[str, Any]) -> list[Cell]:
    base = sizes["base"]
    cells: dict[str, Cell] = {}
    for scaled in (False, True):
        for name in NAMES:
            for value in sizes[name]:
                K, d, L = ({**base, name: value}[key] for key in NAMES)
                panel = f"{WORDS[scaled]}, K={K:,}, d={d}, L={L}"
                cells[panel] = synthetic_cell(
                    K,
                    d,
                    L,
                    sizes["rounds"],
                    sizes["runs"],
                    scaled=scaled,
                    chosen={AGENT: agent_call("dTS")},
                    name=panel,
                )
    return list(cells.values())


def series(results: Results, scaled: bool) -> dict[str, list[str]]:
    """The panels in which one of K, d, L varies and the others have their usual value, in rising order."""
    values = {name: [results.parameter(panel, name) for panel in results.panels] for name in NAMES}
    usual = {name: max(set(values[name]), key=values[name].count) for name in NAMES}
    return {
        name: sorted(
            results.where(scaled=scaled, **{other: usual[other] for other in NAMES if other != name}),
            key=lambda panel: float(results.parameter(panel, name)),
        )
        for name in NAMES
    }


def _claims(results: Results) -> list[Claim]:
    return [
        increasing(
            {f"{name}={results.parameter(panel, name):,}": measured(results.final(panel, AGENT)) for panel in panels},
            f"The regret of {AGENT} increases with {name}", "1637", panel=words,
        )
        for scaled, words in WORDS.items()
        for name, panels in series(results, scaled).items()
    ]  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    by_scaling = {scaled: series(results, scaled) for scaled in WORDS}
    groups = {
        f"varying {name}": {
            f"{AGENT}, {words}": {
                float(results.parameter(panel, name)): measured(results.final(panel, AGENT))
                for panel in by_scaling[scaled][name]
            }
            for scaled, words in WORDS.items()
        }
        for name in NAMES
    }
    looks = {f"{AGENT}, as printed": ("#0072B2", "-"), f"{AGENT}, links scaled": ("#56B4E9", "--")}
    labels = {f"varying {name}": name for name in NAMES}
    return [against(groups, labels, folder, "scaling", "Final regret of dTS-LL against K, d and L", looks=looks)]


SCALING = Experiment(
    name="dts-scaling",
    title="How dTS's regret grows with K, d and L",
    thesis_lines="1637",
    scales={
        "smoke": {"rounds": 60, "runs": 3, "base": {"K": 30, "d": 5, "L": 2}, "K": [10, 30], "d": [5, 10], "L": [2, 4]},
        "quick": {
            "rounds": 2_000, "runs": 10, "base": {"K": 100, "d": 5, "L": 2}, "K": [10, 100, 500, 1_000],
            "d": [5, 10, 15, 20], "L": [2, 4, 5, 6],
        },
        "paper": {
            "rounds": 5_000, "runs": 50, "base": {"K": 100, "d": 5, "L": 2}, "K": [10, 100, 500, 1_000],
            "d": [5, 10, 15, 20], "L": [2, 4, 5, 6],
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        *REMARKS,
        "The thesis prints the lists of K, d and L, and not what the others are while one varies: K=100, d=5, L=2. The "
        "columns of W_l that are not zero are halved from level to level, as in its two printed cases.",
    ],
)  # fmt: skip

__all__ = ["SCALING", "series"]
