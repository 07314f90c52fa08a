"""Whole catalogues, from 41,000 to a million actions: who leaves the start (thesis, Section 7.3.1, at its sizes)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyarms_thesis.harness.claims import Claim, claim, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import GREY, Drawn, draw_grid
from manyarms_thesis.harness.learning import COLLAPSED, IN_WORDS, MODE, Compared, counted, finals, lead, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import (
    AUTHORS_BATCH,
    AUTHORS_RATE,
    LARGE,
    LEARNED,
    PAPER,
    SCALED,
    SMOKE,
    learners,
    logged_cells,
    worlds,
)
from manyarms_thesis.pwll.figures import COUNTED, LOGGING, axis_label, captioned, logging_value, look_of, scatter
from manyarms_thesis.pwll.problems import CATALOGUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIKELIHOODS, ESTIMATES = ("cLPI", "LPI"), ("cIPS", "IPS", "ES")
TUNED, FIXED, AUTHORS = "chosen rate", "rate 0.1", "the authors' rate"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        names = ("cLPI", "cIPS") if data in sizes["briefly"] else (*LIKELIHOODS, *ESTIMATES)
        fixed = ("tau",) if data in sizes["rates_alone"] else ()
        methods = learners(names, sizes, fixed=fixed)
        yield from logged_cells(f"{data}, {TUNED}", world, methods, sizes["runs"], optimisation=TUNED)
        if data == sizes["reference"]:
            # one way to optimise for all, constant, as in the check of an independent implementation
            long = {**sizes, "epochs": sizes["reference_epochs"]}
            methods = learners(("cLPI", "cIPS"), long, schedule="constant", tuned=False, rate=0.1)
            more = world | {"rows": sizes["reference_rows"]}
            yield from logged_cells(f"{data}, {FIXED}", more, methods, sizes["runs"], optimisation=FIXED)
            briefly = {**sizes, "epochs": sizes["authors_epochs"], "batch": AUTHORS_BATCH}
            methods = learners(("cLPI", "cIPS"), briefly, schedule="constant", tuned=False, rate=AUTHORS_RATE)
            yield from logged_cells(f"{data}, {AUTHORS}", world, methods, sizes["runs"], optimisation=AUTHORS)


@on_every_data
def _claims(every: Compared) -> Iterator[Claim]:
    on = every.where(optimisation=TUNED)
    there = on.results.methods(on.panels[0]) if on.panels else []
    for name in [name for name in LIKELIHOODS if name in there]:
        others = [other for other in ESTIMATES if other in there]
        yield from on.ahead_both(name, others, f"PWLL objectives outperform IPS-based objectives: {name}", "2307")
    for kind, words in ((FIXED, "with Adam at 0.1"), (AUTHORS, "with Adam at the authors' rate and batch")):
        other = every.where(optimisation=kind)
        if other.panels:
            yield from other.ahead_both(
                "cLPI", ["cIPS"], f"PWLL objectives outperform IPS-based objectives: cLPI over cIPS {words}", "2307"
            )


def _across(results: Results) -> Iterator[Claim]:
    """The order of cLPI and cIPS turns round with the scale of the scores."""
    if SCALED not in results.variants:
        return
    printed, scaled = results.variant(""), results.variant(SCALED)
    for panel in printed.where(optimisation=FIXED):
        for column in (MODE, "value"):
            ahead, behind = lead(printed, panel, "cLPI", "cIPS", column), lead(scaled, panel, "cIPS", "cLPI", column)
            shown = "; ".join(
                f"{words}: {listed(finals(of, panel, ('cLPI', 'cIPS'), column))}"
                for of, words in ((printed, "unscaled"), (scaled, SCALED))
            )
            weaker = min((ahead, behind), key=lambda one: one.strength)
            yield claim(
                f"cLPI leads cIPS with unscaled embeddings, cIPS leads cLPI with scaled ones (Adam at 0.1){counted(column)}", "",
                weaker, panel=panel, detail=shown, parts=[ahead, behind],
            )  # fmt: skip


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    panels = {panel: panel for panel in results.panels}
    for column, end in COUNTED:
        seen = "One bar an objective; hatched bars have collapsed runs."
        caption = captioned(results, results.panels, column, "the objective", seen)
        title = "Objectives over whole catalogues"
        bars = partial(_bars, results, column)
        yield draw_grid(panels, bars, folder, f"catalogues-{end}", title, caption=caption)
    points = {
        panel: {
            method: (finals(results, panel, [method])[method], finals(results, panel, [method], MODE)[method])
            for method in results.methods(panel)
        }
        for panel in results.panels
    }
    caption = (
        f"One point an objective: the {IN_WORDS['value']} (on a logarithmic axis where these span a factor of three) and the "
        f"{IN_WORDS[MODE]}, for test users. "
        "Far to the left a policy has hardly left its uniform start, whatever its most probable action is worth."
    )
    yield scatter(
        points, (IN_WORDS["value"], IN_WORDS[MODE]), folder, "two-ways", "Two ways to count a policy", caption
    )


def _bars(results: Results, column: str, axis: Axes, panel: str) -> None:
    methods = results.methods(panel)
    shown = finals(results, panel, methods, column)
    for place, method in enumerate(methods):
        fallen = bool(results.final(panel, method, COLLAPSED[column]).max() > 0)
        colour, _ = look_of(method, place)
        axis.bar(
            place, shown[method].mean, yerr=np.nan_to_num(shown[method].standard_error), color=colour,
            hatch="//" if fallen else None, edgecolor="white", capsize=2, error_kw={"elinewidth": 1.0},
        )  # fmt: skip
    axis.set_axisbelow(True)
    axis.set_xticks(range(len(methods)), methods)
    axis.axhline(logging_value(results, panel), linestyle=":", color=GREY, label=LOGGING, linewidth=1.2)
    axis.set_ylabel(axis_label(column))
    axis.set_ylim(bottom=0)


CATALOGUES = LEARNED.experiment(
    "pwll-catalogues",
    order=17,
    title="Whole catalogues, from 41,000 to a million actions",
    thesis_lines="2304-2318",
    question="In catalogues as large as the thesis's, with scores as its authors' pipeline has them and with scaled ones: do "
    "policy-weighted likelihoods outperform IPS-based objectives?",
    setting="In {told}, cLPI, LPI, cIPS, IPS and ES learn policies over all actions for {epochs} epochs, {runs} times, each "
    "at the rate that validation users like best; on {reference} also at a constant 0.1 ({reference_rows} rounds of log, "
    "{reference_epochs} epochs), and at the authors' 5e-5 with batches of 32.",
    scales={
        "smoke": SMOKE | {
            "reference": "ml-1m", "reference_rows": 1_000, "reference_epochs": 2, "authors_epochs": 1, "briefly": [],
            "rates_alone": [],
        },
        "quick": LARGE | {
            "data": ["gowalla", "amazon-book", "epinions", CATALOGUE], "rows": 30_000, "epochs": 3, "reference": "gowalla",
            "reference_rows": 100_000, "reference_epochs": 5, "authors_epochs": 1,
            "briefly": ["amazon-book", "epinions", CATALOGUE], "rates_alone": ["epinions", CATALOGUE],
            "told": "all 40,981 places of Gowalla, and (cLPI and cIPS alone) 89,578 books of Amazon-Book, the 262,614 products "
            "of Epinions and 1,000,000 generated actions, 30,000 rounds of log, 3,000 test users",
        },
        "paper": PAPER | {
            "data": ["gowalla", "amazon-book", "epinions", CATALOGUE], "rows": 400_000, "reference": "gowalla",
            "reference_rows": 400_000, "reference_epochs": 10, "authors_epochs": 10, "briefly": [],
            "rates_alone": [],
            "told": "all items of Gowalla, Amazon-Book and Epinions, and a generated catalogue of 1,000,000 actions, 400,000 "
            "rounds of log, 3,000 test users",
        },
    },
    build=_cells,
    claims=_claims,
    across=_across,
    figures=_figures,
    remarks=[
        "Only rewarded rows cost anything to the objectives compared here. Policies are learned on a GPU where there is one.",
    ],
)  # fmt: skip

__all__ = ["CATALOGUES"]
