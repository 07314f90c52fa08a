"""Regularisations of importance weights under our bound (thesis, Section 8.7.2)."""

from __future__ import annotations

import numpy as np

from manyarms_thesis.es import regularisations as swept
from manyarms_thesis.es.common import LEARNED, comparable, improves
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.learning import by_data, flag_data
from manyarms_thesis.harness.results import Results


def _claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        means = swept.means_of(results, panels)
        found.append(improves(results, panels, "All regularisations improve over the logging policy", "2771", data))
        found.append(swept.behind(means, "Har shows less improvement than the others", "2771", data))
        linear = np.stack([means[kind] for kind in ("Clip", "IX", "ES")])
        found.append(
            comparable(
                np.ptp(linear, axis=0), swept.CLOSE, "Clip, IX and ES achieve comparable performance", "2771", data,
                f"largest less smallest of the three; {swept.shown(means)}",
            )
        )  # fmt: skip
    return flag_data(results, found)


BOUND = LEARNED.experiment(
    "pac-bound",
    order=7,
    title="Regularisations of importance weights under our bound",
    thesis_lines="2766-2777",
    scales=swept.SCALES,
    build=lambda sizes: swept.cells_of(sizes, "general", "mixed-logit"),
    claims=_claims,
    figures=swept.figures,
    remarks=[
        swept.PARAMETERS,
        "The general form of the bound (Section 8.6.1), for softmax policies with theta ~ N(mu, sigma^2 I), over 32 draws; "
        "such a policy is mixed-logit when it plays. lambda is the best one for the batch (Section 8.7.2).",
    ],
)  # fmt: skip

__all__ = ["BOUND"]
