"""Values over the epochs for several seeds, with plain and with tuned optimisation, and from two starts.

Thesis, Appendix D.4.3-5530.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.figures import Drawn
from manyarms_thesis.harness.learning import MODE, Compared, by_data, counted, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import FEW, LEARNED, PAPER, QUICK, SMOKE, learners, logged_cells, worlds
from manyarms_thesis.pwll.figures import epochs_both

PLAIN, TUNED = "plain Adam", "tuned"
BASELINES = ("cIPS", "IX", "POTEC")
SUPPORT = ", support"
# where policies start: as the world has it, or at the logging policy's embeddings
USUAL, LOGGING = "as usual", "logging"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for name in (PLAIN, TUNED):
            for start in sizes["starts"]:
                how = dict(sizes[name])
                told = how | {"curve": True} | ({"start": start} if start == LOGGING else {})
                methods = learners(("cLPI", *BASELINES), sizes, **told)
                methods |= learners(("cLPI", "cIPS"), sizes, **told, suffix=SUPPORT, space="support")
                title = f"{data}, {name}" + (", from the logging policy" if start == LOGGING else "")
                yield from logged_cells(title, world, methods, sizes["runs"], **how, optimisation=name, start=start)


def deviation(values: Array) -> Measured:
    """The standard deviation over runs, with the standard error that it has for normal values."""
    n = len(values)
    spread = float(values.std(ddof=1))
    return Measured(spread, spread / np.sqrt(2 * (n - 1)), n - 1)


@on_every_data
def _claims(every: Compared) -> Iterator[Claim]:
    on = every.where(start=USUAL)
    yield from on.ahead_both("cLPI", BASELINES, "IPS-based methods reach inferior performance to cLPI", "5514")
    for panel in on.panels:
        for column in (MODE, "value"):
            yield _narrower(on.results, panel, column)
    statement = "cIPS with objective-aware parametrisation surpasses cIPS"
    yield from on.ahead_both("cIPS" + SUPPORT, ["cIPS"], statement, "5522")
    statement = "cLPI in its objective-aware form achieves the best overall performance"
    yield from on.ahead_both("cLPI" + SUPPORT, ["cLPI", "cIPS", "cIPS" + SUPPORT, "IX", "POTEC"], statement, "5522")


def _narrower(results: Results, panel: str, column: str) -> Claim:
    """cLPI varies less over seeds than the least varying baseline does."""
    found = {agent: deviation(results.final(panel, agent, column)) for agent in ("cLPI", *BASELINES)}
    nearest = min(BASELINES, key=lambda agent: found[agent].mean)
    return claim(
        f"IPS-based methods suffer from considerably higher variance over seeds than cLPI{counted(column)}", "5514",
        found[nearest] - found["cLPI"], panel=panel, detail=f"standard deviations of the final value: {listed(found)}",
        parts=[found[agent] - found["cLPI"] for agent in BASELINES],
    )  # fmt: skip


def _how(batch: int, rate: float | None, schedule: str) -> dict[str, Any]:
    """A rate of None is chosen on validation users."""
    return {"batch": batch, "schedule": schedule} | ({} if rate is None else {"rate": rate})


def _figures(results: Results, folder: Path) -> Iterator[Drawn]:
    for data, panels in by_data(results).items():
        seen = "Bands are narrow where seeds agree; dotted lines are policies over the logging support."
        yield from epochs_both(results, panels, folder, f"seeds-{data}", f"Several seeds on {data}", seen=seen)


SEEDS = LEARNED.experiment(
    "pwll-seeds",
    order=10,
    title="Values over the epochs, for several seeds",
    thesis_lines="5510-5530",
    question="Do policy-weighted likelihoods reach better policies than IPS-based methods, with less variance over seeds, "
    "with plain and with tuned optimisation?",
    setting="In {told}, cLPI, cIPS, IX and POTEC are trained for {epochs} epochs with {runs} seeds each, by plain Adam and "
    "by a tuned one-cycle schedule; cLPI and cIPS on the logging support, too.",
    scales={
        "smoke": SMOKE | {
            "runs": 3, "starts": [USUAL], PLAIN: _how(64, 0.001, "constant"), TUNED: _how(64, None, "one-cycle"),
        },
        "quick": QUICK | {
            "runs": 4, "rows": 8_000, "epochs": 3, "told": FEW.format(rows="8,000"),
            "starts": [USUAL, LOGGING], PLAIN: _how(32, 0.001, "constant"), TUNED: _how(256, None, "one-cycle"),
        },
        "paper": PAPER | {
            "runs": 5, "starts": [USUAL, LOGGING], PLAIN: _how(32, 0.001, "constant"), TUNED: _how(256, None, "one-cycle"),
        },
    },
    build=_cells,
    claims=_claims,
    figures=_figures,
    remarks=[
        "Plain Adam has a rate of 0.001 and batches of 32; the tuned optimiser has a one-cycle schedule, larger batches and "
        "a rate that is chosen on validation users. A seed draws the log as well as the order of training. Policies “from the "
        "logging policy” start at its embeddings (and POTEC at their means over clusters); claims are about the usual starts.",
    ],
)  # fmt: skip

__all__ = ["SEEDS", "deviation"]
