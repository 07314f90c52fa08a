"""Which bound is best maximised: ours, London's or one of Sakhi's, by two families of policies (thesis, Section 8.5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from manyarms.worlds.supervised import Family
from manyarms_thesis.es.common import (
    BASELINES,
    DATA,
    LEARNED,
    LOOSER,
    OURS,
    PAPER,
    QUICK,
    SMOKE,
    Method,
    above,
    at,
    cells,
    mean_lead,
)
from manyarms_thesis.es.figures import lines, series
from manyarms_thesis.harness.claims import Claim, claim, listed, measured
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import ahead, by_data, flag_data, level
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell

FAMILIES: Mapping[str, Family] = {"Gaussian": "gaussian", "mixed-logit": "mixed-logit"}
AVERAGE = 0.5  # eta_0 up to which a logging policy is called modest (thesis, Section 8.5)


def name_of(author: str, family: str) -> str:
    """(Author, Policy), as the thesis names methods."""
    return f"{author}, {family}"


def _cells(sizes: Sizes) -> list[Cell]:
    methods: dict[str, Method] = {}
    for label, family in FAMILIES.items():
        methods[name_of(OURS, label)] = ("bound", family, {"correction": "ES"})
        for author, method in BASELINES.items():
            methods[name_of(author, label)] = (method, family, {"correction": "Clip"})
    return cells(sizes, methods)


def _claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        ours = {label: name_of(OURS, label) for label in FAMILIES}
        theirs = {label: [name_of(author, label) for author in BASELINES] for label in FAMILIES}
        informed, uniform = above(results, panels, 0.0), at(results, panels, 0.0)
        for label in FAMILIES:
            found.append(
                ahead(
                    results, informed, ours[label], theirs[label],
                    f"Our bound outperforms all others with {label} policies when the logging policy is not uniform",
                    "2642, 6284", panel=data,
                )
            )  # fmt: skip
        found.append(
            ahead(
                results, informed, ours["mixed-logit"], theirs["Gaussian"],
                "Even with mixed-logit policies our bound outperforms the others with Gaussian ones", "6285", panel=data,
            )
        )  # fmt: skip
        for label in FAMILIES if uniform else ():
            for other in theirs[label]:
                statement = f"{other} induces a better value than ours when the logging policy is uniform"
                found.append(ahead(results, uniform, other, [ours[label]], statement, "2642, 6286", panel=data))
        for author in BASELINES:
            found.append(
                mean_lead(
                    results, panels, [name_of(author, "Gaussian")], [name_of(author, "mixed-logit")],
                    f"Gaussian policies behave better than mixed-logit ones: {author}", "2642, 6285", data,
                )
            )  # fmt: skip
        found += [_less_significant(results, panels, data), _maximum(results, panels, data)]
    return flag_data(results, found)


def _less_significant(results: Results, panels: list[str], data: str) -> Claim:
    gaps = {
        author: level(results, panels, [name_of(author, "Gaussian")])
        - level(results, panels, [name_of(author, "mixed-logit")])
        for author in (OURS, *BASELINES)
    }
    others = np.mean([gaps[author] for author in BASELINES], axis=0)
    detail = "Gaussian less mixed-logit, mean over eta0: " + listed({a: measured(gap) for a, gap in gaps.items()})
    return claim(
        "The difference between the two classes of policies is smaller for our bound than for the others on average",
        "2642, 6285", measured(others - np.abs(gaps[OURS])), panel=data, detail=detail,
    )  # fmt: skip


def _maximum(results: Results, panels: list[str], data: str) -> Claim:
    """How much of its best value over all eta_0 a method has at the average logging policy."""
    middle = min(panels, key=lambda panel: abs(results.parameter(panel, "eta0") - AVERAGE))
    shares = {}
    for author in (OURS, *BASELINES):
        agent = name_of(author, "Gaussian")
        best = np.max([results.final(panel, agent, "value") for panel in panels], axis=0)
        shares[author] = results.final(middle, agent, "value") / np.maximum(best, 1e-12)
    others = np.max([shares[author] for author in BASELINES], axis=0)
    shown = listed({author: measured(share) for author, share in shares.items()})
    return claim(
        "Our method is near its maximum when the logging policy is average already, the others less so", "2642, 6286",
        measured(shares[OURS] - others), panel=data,
        detail=f"value in {middle} over the largest over all eta0, Gaussian policies: {shown}",
    )  # fmt: skip


def _figures(results: Results, folder: Path) -> list[Path]:
    drawn = {}
    for data, panels in by_data(results).items():
        for label in FAMILIES:
            drawn[f"{data}: {label}"] = series(
                results, panels, [name_of(author, label) for author in (OURS, *BASELINES)]
            )
    return [lines(drawn, folder, "bounds", "Value of the policy that maximises a bound", columns=2)]


BOUNDS = LEARNED.experiment(
    "es-bounds",
    order=2,
    title="Bounds as objectives: exponential smoothing against clipping",
    thesis_lines="2626-2642, 6278-6287",
    scales={
        "smoke": SMOKE | {"etas": [0.0, 0.5]},
        "quick": QUICK | {"etas": [0.0, 0.1, 0.3, 0.5, 1.0]},
        "paper": PAPER | {"etas": [round(0.1 * i, 1) for i in range(11)]},
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        DATA,
        "Sakhi et al. 1 has its sign right here (Appendix E.3.3 has a larger divergence tighten it), and chooses lambda "
        "among 100 values, as Sakhi et al. 2 does. Ours takes the best lambda for every batch.",
        LOOSER,
    ],
)  # fmt: skip

__all__ = ["BOUNDS", "FAMILIES", "name_of"]
