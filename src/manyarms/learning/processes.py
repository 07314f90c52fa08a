"""A policy learned by several processes, of this machine or of a cluster: what they are told, and what cannot be divided.

A policy whose table is learned is divided by actions, one with a fixed table by the rows of batches (`sharded.py`). The log, or
the row groups of its files, and the start are sent to all; what comes back is an ordinary policy, gathered by the first of them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manyarms._base import validate
from manyarms.engine import Local, On, checked_on, elsewhere, opened, tell
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Objective
from manyarms.learning.results import Learnable, Learned, Moment
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.survey import StreamedRows
from manyarms.logs.data import LoggedData, LogSource
from manyarms.policies.base import Policy
from manyarms.policies.softmax import SoftmaxPolicy
from manyarms.policies.support_softmax import SupportSoftmaxPolicy

if TYPE_CHECKING:
    import torch

POSSIBLE = "a SoftmaxPolicy or a SupportSoftmaxPolicy, or one process: on='local' without workers"


@dataclass(frozen=True)
class Job:
    """What every process is told; as the arguments of `learn`, checked and completed."""

    rows: LoggedData | StreamedRows
    start: Learnable
    objective: Objective
    settings: TrainingSettings
    held: LogSource | None
    score: Callable[[Policy], float] | None
    folder: str | Path | None
    checkpoint_seconds: float
    device: str | None
    tells: bool
    """Whether anybody wants to know how far it is."""


def in_several(on: On, workers: int | None) -> bool:
    """Whether `learn` is to start processes; `on` and `workers` are checked."""
    if workers is not None:
        validate.count("workers", workers)
    checked_on(on)
    return elsewhere(on) or (workers or 1) > 1


def require_divisible(policy: Learnable, settings: TrainingSettings, workers: int | None) -> None:
    """Refuse what several processes cannot learn together."""
    if not isinstance(policy, SoftmaxPolicy | SupportSoftmaxPolicy):
        raise InvalidInput("policy", f"{policy!r}, which several processes cannot learn together", POSSIBLE)
    if settings.sampler is not None:
        expected = "None, the exact softmax, or one process: on='local' without workers"
        raise InvalidInput(
            "sampler", f"{validate.describe(settings.sampler)}, which looks at the whole table", expected
        )
    learns_encoder = settings.train in ("encoder", "both") or (settings.train is None and policy.encoder is not None)
    if learns_encoder:
        _refuse_layers(getattr(policy.encoder, "module", None))
    _require_rows(policy, settings, workers or 1)


def learn_together(job: Job, on: On, workers: int | None, progress: Callable[[Moment], None] | None) -> Learned:
    """The outcome of a job, by `workers` processes: as many as the engine has, unless given."""
    with opened(on, workers=workers) as engine:
        count = engine.workers if workers is None else workers
        _require_rows(job.start, job.settings, count)
        if isinstance(engine, Local):
            for name, part in (
                ("score", job.score),
                ("objective", job.objective),
                ("log", job.rows),
                ("validation", job.held),
            ):
                _require_sendable(name, part)
        found = engine.train(member, count, common=job, hear=progress)
        assert found is not None  # it is the first process's
        return found


def member(job: Job) -> Learned | None:
    """The work of one process; the outcome is the first one's."""
    from manyarms.learning.loop import TrainingRun
    from manyarms.learning.peers import Peers

    peers = Peers()
    run = TrainingRun(job.rows, job.start, job.objective, job.settings, job.device, peers)
    checkpoints = run.checkpoints(job.start, job.folder, job.checkpoint_seconds)
    return run.go(job.held, job.score, checkpoints, tell if peers.first and job.tells else None)


def _require_rows(policy: Learnable, settings: TrainingSettings, workers: int) -> None:
    """A table that is learned is divided: each process has at least one of its rows."""
    learns_table = (settings.train or ("actions" if policy.encoder is None else "encoder")) != "encoder"
    if learns_table and policy.action_count < workers:
        raise InvalidInput("workers", workers, f"at most {policy.action_count}, one for each action of the policy")


def _refuse_layers(module: torch.nn.Module | None) -> None:
    """A batch norm looks at all rows of a batch, of which a process has some; what is dropped at random differs among them."""
    for part in () if module is None else module.modules():
        if any(name in type(part).__name__ for name in ("BatchNorm", "Dropout")):
            expected = (
                "layers that look at rows one by one and draw nothing, or one process: on='local' without workers"
            )
            raise InvalidInput("policy", f"an encoder with a {type(part).__name__}", expected)


def _require_sendable(name: str, part: object) -> None:
    try:
        pickle.dumps(part)
    except Exception as error:  # whatever an object's own way of being pickled raises
        expected = "something that can be sent to other processes, such as a function of a module"
        raise InvalidInput(name, f"{validate.describe(part)} ({error})", expected) from error


__all__ = ["Job", "in_several", "learn_together", "member", "require_divisible"]
