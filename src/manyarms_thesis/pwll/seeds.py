"""Values over the epochs for several seeds, with plain and with tuned optimisation, and from two starts.

Thesis, Appendix D.4.3-5530.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manyarms._base.typing import Array
from manyarms_thesis.harness.claims import Claim, Measured, claim, listed
from manyarms_thesis.harness.experiments import Sizes
from manyarms_thesis.harness.learning import Compared, by_data, on_every_data
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.spec import Cell
from manyarms_thesis.pwll.common import LEARNED, PAPER, QUICK, SMOKE, learners, logged_cell, worlds
from manyarms_thesis.pwll.figures import epochs

PLAIN, TUNED = "plain Adam", "tuned"
BASELINES = ("cIPS", "IX", "POTEC")
SUPPORT = ", support"


def _cells(sizes: Sizes) -> Iterator[Cell]:
    for data, world in worlds(sizes).items():
        for name in (PLAIN, TUNED):
            for start in sizes["starts"]:
                how = dict(sizes[name])
                told = how | {"start": start, "curve": True}
                methods = learners(("cLPI", *BASELINES), sizes, **told)
                methods |= learners(("cLPI", "cIPS"), sizes, **told, suffix=SUPPORT, space="support")
                title = f"{data}, {name}" + ("" if start == "zero" else ", from the logging policy")
                yield logged_cell(title, world, methods, sizes["runs"], **how, optimisation=name, start=start)


def deviation(values: Array) -> Measured:
    """The standard deviation over runs, with the standard error that it has for normal values."""
    n = len(values)
    spread = float(values.std(ddof=1))
    return Measured(spread, spread / np.sqrt(2 * (n - 1)))


@on_every_data
def _claims(every: Compared) -> Iterator[Claim]:
    on = every.where(start="zero")
    yield from on.ahead_both("cLPI", BASELINES, "IPS-based methods reach inferior performance to cLPI", "5514")
    for panel in on.panels:
        yield _narrower(on.results, panel)
    statement = "cIPS with objective-aware parametrisation surpasses cIPS"
    yield on.ahead("cIPS" + SUPPORT, ["cIPS"], statement, "5522")
    statement = "cLPI in its objective-aware form achieves the best overall performance"
    yield on.ahead("cLPI" + SUPPORT, ["cLPI", "cIPS", "cIPS" + SUPPORT, "IX", "POTEC"], statement, "5522")


def _narrower(results: Results, panel: str) -> Claim:
    """cLPI varies less over seeds than the least varying baseline does."""
    found = {agent: deviation(results.final(panel, agent, "value")) for agent in ("cLPI", *BASELINES)}
    nearest = min(BASELINES, key=lambda agent: found[agent].mean)
    return claim(
        "IPS-based methods suffer from considerably higher variance over seeds than cLPI", "5514",
        found[nearest] - found["cLPI"], panel=panel, detail=f"standard deviations of the final value: {listed(found)}",
    )  # fmt: skip


def _how(batch: int, rate: float, schedule: str) -> dict[str, Any]:
    return {"batch": batch, "rate": rate, "schedule": schedule}


SEEDS = LEARNED.experiment(
    "pwll-seeds",
    order=9,
    title="Values over the epochs, for several seeds",
    thesis_lines="5510-5530",
    scales={
        "smoke": SMOKE | {
            "runs": 3, "starts": ["zero"], PLAIN: _how(64, 0.001, "constant"), TUNED: _how(64, 0.1, "one-cycle"),
        },
        "quick": QUICK | {
            "runs": 5, "starts": ["zero", "logging"], PLAIN: _how(32, 0.001, "constant"), TUNED: _how(256, 0.1, "one-cycle"),
        },
        "paper": PAPER | {
            "runs": 5, "starts": ["zero", "logging"], PLAIN: _how(32, 0.001, "constant"), TUNED: _how(256, 0.01, "one-cycle"),
        },
    },
    build=_cells,
    claims=_claims,
    figures=lambda results, folder: [
        epochs(results, panels, folder, f"seeds-{data}", f"Value over the epochs on {data}")
        for data, panels in by_data(results).items()
    ],
    remarks=[
        "Plain Adam has a rate of 0.001 and batches of 32; the tuned optimiser has a one-cycle schedule, larger batches and "
        "a larger rate. A seed draws the log as well as the order of training. Policies “from the "
        "logging policy” start at its embeddings (and POTEC at their means over clusters) in place of zero; claims are about "
        "starts at zero.",
    ],
)  # fmt: skip

__all__ = ["SEEDS", "deviation"]
