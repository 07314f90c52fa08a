"""Regularisations of importance weights under the heuristic (thesis, Section 8.7.2)."""

from __future__ import annotations

from manyarms_thesis.es import regularisations as swept
from manyarms_thesis.es.common import LEARNED, comparable, improves
from manyarms_thesis.harness.claims import Claim, claim, least, measured
from manyarms_thesis.harness.learning import by_data, flag_data
from manyarms_thesis.harness.results import Results


def _claims(results: Results) -> list[Claim]:
    found: list[Claim] = []
    for data, panels in by_data(results).items():
        means = swept.means_of(results, panels)
        nearest, difference = least({kind: measured(means["ES"] - means[kind]) for kind in swept.KINDS if kind != "ES"})
        detail = f"least convincing: {nearest}; {swept.shown(means)}"
        found.append(claim("ES outperforms the others on average", "2779", difference, panel=data, detail=detail))
        found.append(swept.behind(means, "Har underperforms", "2779", data))
        found.append(
            comparable(
                means["Clip"] - means["IX"], swept.CLOSE, "Clip and IX have comparable average performance", "2779", data,
                f"Clip less IX; {swept.shown(means)}",
            )
        )  # fmt: skip
        found.append(
            improves(results, panels, "The heuristic improves over the logging policy throughout", "2779", data)
        )
    return flag_data(results, found)


HEURISTIC = LEARNED.experiment(
    "pac-heuristic",
    order=8,
    title="Regularisations of importance weights under the heuristic",
    thesis_lines="2766-2767, 2779-2786",
    scales=swept.SCALES,
    build=lambda sizes: swept.cells_of(sizes, "heuristic", "softmax"),
    claims=_claims,
    figures=swept.figures,
    remarks=[swept.PARAMETERS, "Softmax policies; all three weights are 1e-5 (Section 8.7.2)."],
)

__all__ = ["HEURISTIC"]
