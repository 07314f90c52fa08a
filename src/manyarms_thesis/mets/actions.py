"""meTS and LinTS as the catalogue grows to 100,000 actions (thesis, Section 3.4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from manyarms_thesis.harness.claims import Claim, gains, increasing, lower_regret
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import draw_series, final_series, regret_curves
from manyarms_thesis.harness.online import ACTION_CONTEXTS
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.mets.common import CONTEXT_ACCURACY, METS, REMARKS, both_schemes, context_schemes, synthetic_cell


def _cells(sizes: Sizes) -> Iterator[Cell]:
    agents = ("meTS-Lin", "meTS-Lin-Fa", "meTS-Lin-Fb", "LinTS")
    return both_schemes(sizes, (synthetic_cell(sizes, agents, K) for K in sizes["K"]))


def _claims(results: Results) -> Iterator[Claim]:
    by_size = {f"K={results.parameter(panel, 'K'):,}": panel for panel in results.panels}
    for size, panel in by_size.items():
        statement = f"meTS-Lin has substantially lower regret than LinTS at {size}"
        yield lower_regret(results, panel, "meTS-Lin", "LinTS", statement, "1247")
    gaps = gains(results, by_size, "meTS-Lin", "LinTS")
    yield increasing(gaps, "The gap between LinTS and meTS-Lin widens as K grows", "1247")


def _across(results: Results) -> Iterator[Claim]:
    panels = [cell.panel for cell in results.variant(ACTION_CONTEXTS).cells.values()]
    return context_schemes(results, "meTS-Lin", "LinTS", panels)


ACTIONS = METS.experiment(
    "mets-actions",
    order=4,
    title="Final regret as the catalogue grows",
    thesis_lines="1246-1252",
    scales={
        "smoke": {"rounds": 150, "runs": 3, "K": [100, 1_000], "context_K": 1_000},
        "quick": {"rounds": 2_000, "runs": 8, "K": [100, 1_000, 10_000, 100_000], "context_K": 1_000},
        "paper": {"rounds": 5_000, "runs": 50, "context_runs": 20, "K": [100, 1_000, 10_000, 100_000], "context_K": 10_000},
    },
    build=_cells,
    accuracy=CONTEXT_ACCURACY,
    claims=_claims,
    across=_across,
    figures=lambda results, folder: [
        draw_series(
            {"linear, L=3, d=2": final_series(results, results.panels, "K")}, folder, "actions",
            "Final cumulative regret against the number of actions", xlabel="K",
            seen="From hundreds to many thousands of actions: what learning three effects saves.",
        ),
        regret_curves(results, results.panels, folder, "regret", "Regret as the catalogue grows", columns=2),
    ],
    question="A catalogue grows from a hundred to a hundred thousand actions that mix the same three effects. Does the advantage "
    "of learning the effects grow with it?",
    setting="K = {K} actions, L = 3 effects, d = 2 dimensions, linear rewards. meTS, its factored variants and LinTS, which "
    "learns every action alone, play {rounds} rounds, {runs} times.",
    remarks=[
        *REMARKS,
        "A context for each action costs K d numbers a round (about 3 ms at K = 10,000 and 30 ms at 100,000, where a shared "
        "context takes 1 ms): that variant stops at K = 10,000 at the scale “paper”, and at 1,000 below it.",
    ],
)  # fmt: skip

__all__ = ["ACTIONS"]
