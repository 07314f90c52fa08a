"""What learning by several processes sends: a model of it, to size networks by, which tests hold to what is counted.

With b active rows in a batch, m actions that an objective asks for by row, features of length l, and an encoder of P parameters
in T tensors, the numbers that are reduced (summed, or compared) over all processes in a step are

    a table divided by actions      b + b (1 + m + [a group] + [an expectation])        top and Z, scores, masses, sums of pi v
                                    b m                                                 scores alone, for pairwise objectives
                                    b k                                                 scores of lists of k actions
    with an encoder as well         + b l                                               the gradient of h
    a fixed table, rows divided     b (m + [a group] + [an expectation]) + P + T        answers, the encoder's gradient

and none of them grows with the number of actions. To reduce n numbers over W processes each of them sends 2 n (W - 1) / W where
they stand in a ring, which is the least that is possible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Objective, Request
from manyarms.logs.data import LoggedData


@dataclass(frozen=True)
class Seen:
    """What an objective looks at in every row: so many actions, the mass of a group, an expectation, or scores alone."""

    actions: int = 1
    group: bool = False
    expectation: bool = False
    scores_alone: bool = False

    @classmethod
    def by(cls, objective: Objective, log: LoggedData) -> Seen:
        """What an objective looks at in the rows of a log, of which a few are enough."""
        return cls.of(objective.resolved(len(log)).prepare(log))

    @classmethod
    def of(cls, request: Request) -> Seen:
        """What a request asks for."""
        ids = request.ids(np.arange(1)) if callable(request.ids) else request.ids
        actions = int(request.logged) + (0 if ids is None else ids.shape[1]) + request.negatives
        return cls(actions, request.labels is not None, request.model is not None, request.raw_scores)


@dataclass(frozen=True)
class Traffic:
    """Of one step. reduced: the numbers that are reduced over all processes."""

    reduced: int
    workers: int
    bytes_each: int = 4

    @property
    def numbers_sent(self) -> float:
        """By each process."""
        return 2 * self.reduced * (self.workers - 1) / self.workers

    @property
    def bytes_sent(self) -> float:
        """By each process, less the headers of messages."""
        return self.bytes_each * self.numbers_sent


def numbers_sent(
    batch: int,
    width: int,
    workers: int,
    seen: Seen = Seen(),
    *,
    train: str = "actions",
    encoder: int = 0,
    tensors: int = 0,
    listed: int = 0,
    precision: str = "fp32",
) -> Traffic:
    """What a step sends: `batch` active rows, features of length `width`, `workers` processes.

    seen: what the objective looks at (`Seen.by`). train: as of `learn`, "actions", "encoder" or "both". encoder, tensors: how
    many parameters it has, and in how many tensors. listed: actions in the lists of a policy that is restricted to such; 0 for
    all actions. The number of actions in the catalogue does not count.
    """
    batch, width = validate.count("batch", batch), validate.count("width", width)
    workers = validate.count("workers", workers)
    if train not in ("actions", "encoder", "both"):
        raise InvalidInput("train", validate.describe(train), "'actions', 'encoder' or 'both'")
    sums = seen.group + seen.expectation
    if train == "encoder":
        answers = 0 if seen.scores_alone else sums
        reduced = batch * (seen.actions + answers) + encoder + tensors
    else:
        if listed:
            each = listed
        elif seen.scores_alone:
            each = seen.actions
        else:
            each = 2 + seen.actions + sums
        reduced = batch * (each + (width if train == "both" else 0))
    return Traffic(reduced, workers, 8 if precision == "fp64" else 4)


__all__ = ["Seen", "Traffic", "numbers_sent"]
