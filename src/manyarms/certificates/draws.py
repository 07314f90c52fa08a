"""Expectations over parameters for the general bound: summaries of policies whose parameters were drawn, averaged.

The general bound (thesis, lines 2686-2696) speaks of E over theta of V(pi_theta) for corrections that need not be linear, and
its terms are expectations over theta that have no closed form. Draws of theta give them up to an error that `Summary.worst`
reckons with, and that certificates pay for out of delta.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from manyarms._base.typing import Array
from manyarms.certificates.passes import unit_rewards, unit_weight
from manyarms.certificates.summaries import Averages, Summary
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import CellFunction, Cells, logged_propensities
from manyarms.estimators.logging_policy import require_full_propensities as require_whole
from manyarms.logs.data import CHUNK, LogSource
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.policies.simple import UniformPolicy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.weights import Correction


def averaged(summaries: Sequence[Summary], reach: Summary) -> Summary:
    """The summary of a law of parameters, from summaries of policies whose parameters were drawn from it.

    The draws count as Monte Carlo; `reach` says what one draw can give at most.
    """
    if len(summaries) < 2:
        raise InvalidInput("summaries", f"{len(summaries)}", "one a draw, and at least two draws")
    first = summaries[0]
    weighted, spread = {}, {}
    for correction in first.weighted:
        each = [one.of(correction) for one in summaries]
        weighted[correction] = Averages(*(_mean([getattr(one, name) for one in each]) for name in AVERAGED))
        spread[correction] = Averages(
            *(float(np.var([getattr(one, name) for one in each], ddof=1)) for name in AVERAGED[:3])
        )
    return replace(
        first, weighted=weighted, smoothed={}, linear=True, draws=len(summaries), reach=reach,
        spread=Summary(first.rows, 0.0, spread),
    )  # fmt: skip


AVERAGED = ("value", "complement", "logged_square", "expected_square", "bias", "overshoot")


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def drawn_policies(policy: MixedLogitPolicy, count: int, seed: int) -> Iterator[SoftmaxPolicy]:
    """Softmax policies with parameters from the law of a mixed-logit policy, whose value is the mean of theirs."""
    rng = np.random.default_rng(seed)
    mean = np.asarray(policy.actions, dtype=np.float64)
    for _ in range(count):
        yield SoftmaxPolicy(mean + policy.sigma * rng.standard_normal(mean.shape), encoder=policy.encoder)


def reach_of(log: LogSource, corrections: Sequence[Correction], largest_reward: float = 1.0) -> Summary:
    """How large each average of the general bound can be for one policy, from the log alone: w at pi = 1."""
    sums, rows = np.zeros((len(corrections), 4)), 0
    for part in log.chunks(CHUNK):
        rewards, p = unit_rewards(part.rewards, largest_reward, rows), logged_propensities(part, "certificates")
        # no function below looks at the policy: any will do
        cells: list[CellFunction] = [partial(_largest_square, one) for one in corrections]
        squares = require_whole(part, "the general bound").sums(UniformPolicy(part.action_count), cells)
        for i, one in enumerate(corrections):
            w = one.weight(np.ones(len(p)), p)
            sums[i] += [
                (w * rewards).sum(),
                (w * (1 - rewards)).sum(),
                (w * rewards).dot(w * rewards),
                squares[:, i].sum(),
            ]
        rows += len(part)
    weighted = {one: Averages(*(float(v) for v in (*sums[i] / rows, 1.0, 1.0))) for i, one in enumerate(corrections)}
    return Summary(rows, 0.0, weighted)


def _largest_square(correction: Correction, cells: Cells) -> Array:
    return cells.pi0 * unit_weight(correction, cells.pi0) ** 2


__all__ = ["averaged", "drawn_policies", "reach_of"]
