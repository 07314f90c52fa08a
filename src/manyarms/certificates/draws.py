"""Expectations over parameters for the general bound: summaries of policies whose parameters were drawn, averaged.

The general bound (thesis, lines 2690-2700) speaks of E over theta of V(pi_theta) for corrections that need not be linear, and its
terms are expectations over theta that have no closed form. Draws of theta give them up to an error that `Summary.worst` reckons
with, and that certificates pay for out of delta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial

import numpy as np

from manyarms._typing import Array
from manyarms.certificates.summaries import Averages, Summary, unit_weight
from manyarms.errors import InvalidInput
from manyarms.evaluation.whole import CellFunction, Cells, logged_propensities, require_whole
from manyarms.logs.data import CHUNK, LogSource
from manyarms.policies.simple import UniformPolicy
from manyarms.weights import Correction


def averaged(summaries: Sequence[Summary], reach: Summary) -> Summary:
    """The expectation over parameters in the general bound, from summaries of policies whose parameters were drawn.

    Thesis, lines 2690-2700. The draws count as Monte Carlo; `reach` says what one draw can give at most.
    """
    if not summaries:
        raise InvalidInput("summaries", "none", "one a draw")
    first = summaries[0]
    weighted = {
        correction: Averages(
            *(
                None if getattr(first.of(correction), one.name) is None
                else float(np.mean([getattr(each.of(correction), one.name) for each in summaries]))
                for one in fields(Averages)
            )
        )  # type: ignore[arg-type]
        for correction in first.weighted
    }  # fmt: skip
    return replace(first, weighted=weighted, smoothed={}, linear=True, draws=len(summaries), tolerance=0.0, reach=reach)


def reach_of(log: LogSource, corrections: Sequence[Correction], largest_reward: float = 1.0) -> Summary:
    """How large each average of the general bound can be for one policy, from the log alone: w at pi = 1."""
    sums, rows = np.zeros((len(corrections), 4)), 0
    for part in log.chunks(CHUNK):
        rewards, p = part.rewards / largest_reward, logged_propensities(part, "certificates")
        # no function below looks at the policy: any will do
        cells: list[CellFunction] = [partial(_largest_square, one) for one in corrections]
        squares = require_whole(part, "the general bound").sums(UniformPolicy(part.action_count), cells)
        for i, one in enumerate(corrections):
            w = one.weight(np.ones(len(p)), p)
            sums[i] += [(w * rewards).sum(), (w * (1 - rewards)).sum(), (w * rewards).dot(w * rewards), squares[:, i].sum()]
        rows += len(part)
    weighted = {
        one: Averages(*(float(v) for v in sums[i] / rows), bias=1.0, overshoot=1.0)
        for i, one in enumerate(corrections)
    }
    return Summary(rows, 0.0, weighted)


def _largest_square(correction: Correction, cells: Cells) -> Array:
    return cells.pi0 * unit_weight(correction, cells.pi0) ** 2


__all__ = ["averaged", "reach_of"]
