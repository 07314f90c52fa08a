"""Smaller catalogues, K = 100 to 5,000 (thesis, Appendix D.4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, least, listed, measured
from manyarms_thesis.harness.data import MADE_UP
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import MODE, Compared, counted, final_by_group, flag_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.harness.two_way import with_groups_left_out
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import epochs_both
from manyarms_thesis.pwll.problems import is_there
from manyarms_thesis.pwll.training import AFTER_ONE

LIKELIHOOD, LINEAR = "cLPI", "cIPS"
TINY = 1e-12  # a value that has a share of nothing


def _cells(sizes: Sizes) -> Iterator[Cell]:
    methods = learners((LIKELIHOOD, LINEAR, "IPS"), sizes, curve=True)
    for data, K in sizes["catalogues"]:
        known = data if is_there(data) else MADE_UP
        if known == MADE_UP and K > 300:
            continue  # there are no more items
        some: dict[str, Any] = dict(sizes) | {"data": [known], "items": K, "users": None}
        if K <= 500:  # of the films' users, 3,500 have twenty of the 100 most watched or more
            some["judges"] = (1_500, 300)
        world = worlds(some)[known] | {"items": K}
        world["dim"] = min(world["dim"], sizes["dim"])
        yield from logged_cells(f"{known}, K={K:,}", world, methods, sizes["runs"], K=K)


def _claims(results: Results) -> list[Claim]:
    return flag_data(results, _by_size(results))


def _by_size(results: Results) -> Iterator[Claim]:
    small = [panel for panel in results.panels if results.parameter(panel, "K") <= 500]
    medium = [panel for panel in results.panels if results.parameter(panel, "K") >= 500]
    if small:
        statement = "Where K <= 500, cLPI finds a better maximum than cIPS by the end"
        yield from Compared(results, small).ahead_both(LIKELIHOOD, [LINEAR], statement, "5601")
        yield from _faster(results, small, LINEAR, LIKELIHOOD, "cIPS converges faster than cLPI where K <= 500")
    if medium:
        statement = "Where K >= 500, cLPI outperforms cIPS"
        yield from Compared(results, medium).ahead_both(LIKELIHOOD, [LINEAR], statement, "5601")
        yield from _faster(results, medium, LIKELIHOOD, LINEAR, "cLPI converges faster than cIPS where K >= 500")


def _faster(results: Results, panels: Sequence[str], quick: str, slow: str, statement: str) -> Iterator[Claim]:
    """By the share of its own final value that each has after the first epoch, in every panel."""
    for column in (MODE, "value"):
        ahead, shown = {}, []
        for panel in panels:
            shares = {agent: after_one_epoch(results, panel, agent, column) for agent in (quick, slow)}
            ahead[panel] = _with_users(results, panel, (quick, slow), column, measured(shares[quick] - shares[slow]))
            shown.append(f"{panel}: {listed({agent: measured(share) for agent, share in shares.items()})}")
        nearest, difference = least(ahead)
        yield claim(
            statement + counted(column), "5601", difference, parts=list(ahead.values()),
            detail=f"shares of the own final value after one epoch: {', '.join(shown)}; least convincing: {nearest}",
        )  # fmt: skip


def after_one_epoch(results: Results, panel: str, agent: str, column: str) -> Array:
    """(runs,): what an objective's policy is worth after the first epoch, as a share of what it is worth in the end."""
    values = results.values(panel, agent, column)
    return np.asarray(values[:, 1] / np.maximum(values[:, -1], TINY))


def _with_users(results: Results, panel: str, agents: tuple[str, str], column: str, by_runs: Measured) -> Measured:
    """A difference of shares after one epoch, with what test users add to its error, where groups of them are known."""
    first, last = (
        [final_by_group(results, panel, agent, name) for agent in agents] for name in (column + AFTER_ONE, column)
    )
    if any(one is None for one in (*first, *last)):
        return by_runs
    early, late = np.array(first), np.array(last)  # (agents, runs, groups)

    def without(group: int) -> float:
        kept = np.arange(late.shape[2]) != group
        shares = early[:, :, kept].mean(axis=2) / np.maximum(late[:, :, kept].mean(axis=2), TINY)
        quick, slow = shares.mean(axis=1)
        return float(quick - slow)

    return with_groups_left_out(by_runs, [without(group) for group in range(late.shape[2])])


FILMS = "ml-1m"
SMALL = LEARNED.experiment(
    "pwll-small",
    order=13,
    title="Smaller catalogues",
    thesis_lines="5597-5613",
    question="Do the benefits of policy-weighted likelihoods extend to catalogues of a hundred to some thousand actions?",
    setting="In catalogues of {catalogues} (the most popular films of MovieLens 1M and places of Gowalla), cLPI, cIPS and "
    "IPS are trained for {epochs} epochs, {runs} times.",
    scales={
        "smoke": SMOKE | {"catalogues": [(FILMS, 60), (FILMS, 200)], "k0": 30},
        "quick": QUICK | {
            "catalogues": [(FILMS, 100), (FILMS, 500), (FILMS, 1_000), (FILMS, 3_706), ("gowalla", 5_000)],
        },
        "paper": PAPER | {
            "catalogues": [(FILMS, 100), (FILMS, 500), (FILMS, 1_000), (FILMS, 3_706), ("gowalla", 5_000)], "rows": 132_744,
        },
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: epochs_both(
        results, results.panels, folder, "small", "cLPI, cIPS and IPS in smaller catalogues",
        seen="One drawing for each catalogue, K rising from left to right.",
    ),
    remarks=[
        "The items with most users are kept. MovieLens 1M has 3,706 films, and the place of K = 5,000 is taken by the most "
        "visited places of Gowalla. With K = 100 the logging policy's support, k0 = 100, is the whole catalogue. "
        "Few users have twenty items of a small catalogue or more: where K <= 500, there are 1,500 test users.",
    ],
)  # fmt: skip

__all__ = ["SMALL"]
