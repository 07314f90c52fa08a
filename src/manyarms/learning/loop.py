"""The one training loop: a log, a policy to start from, an objective; out comes a better policy.

    for every epoch: shuffle the rows;  for every batch: answers of the policy, value of the objective, one step up

Rows that an objective gives no weight are left out of a batch's work and stay in its size, so a batch means the same for every
objective. Order and random draws come from (seed, epoch, batch) alone: a run that is killed and resumed from a checkpoint ends
with the same numbers as one that never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manyarms._base.devices import usable_device
from manyarms._base.typing import AnyArray, Ints
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Batch, ModelValues, Objective
from manyarms.learning.checkpoints import Checkpoints, TrainingState, fingerprint
from manyarms.learning.dense import seed_of
from manyarms.learning.engines import ModelOnDevice
from manyarms.learning.logging_rows import logging_rows
from manyarms.learning.optimisers import schedule as share_of_rate
from manyarms.learning.results import Epoch, Learnable, Learned, Moment
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.trainable import Trainable, require_precision
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy

HELD_ROWS = 512  # rows of held-out data in one go
LOOKS = 16  # batches between two looks at a loss on a GPU, where each look waits for the device


class TrainingRun:
    """A log, a trainable policy and an objective, batch by batch."""

    def __init__(
        self,
        log: LoggedData,
        policy: Learnable,
        objective: Objective,
        settings: TrainingSettings,
        device: str | torch.device | None = None,
    ) -> None:
        self.log, self.settings = log, settings
        self.device = device = usable_device(device)
        self.objective = objective.resolved(len(log))
        self.asked = asked = self.objective.prepare(log).computed(len(log))  # of all rows, in NumPy
        if asked.sums:
            expected = (
                "an objective of probabilities and expectations: this one sums over all actions under both policies"
            )
            raise InvalidInput("objective", f"{objective.name}, which can be evaluated and not learned", expected)
        distance = 2 * self.objective.distance / len(log) + 2 * asked.squared_distance
        self.trainable = Trainable(policy, log, settings, distance, device, asked.all_actions)
        self.logging = logging_rows(log, device, self.trainable.dtype) if asked.all_actions else None
        reach = max(float(log.contexts.max()), -float(log.contexts.min())) / self.trainable.temperature
        require_precision("log", "contexts over the temperature", reach, self.trainable.dtype)
        self.contexts = torch.tensor(log.contexts, dtype=self.trainable.dtype, device=device)
        self.columns = {name: self._tensor(column) for name, column in asked.columns.items() if not callable(column)}
        self.ids = self._ids()
        self.wanted = None if asked.wanted is None else self._tensor(asked.wanted)
        self.lists = None if self.trainable.lists is None else self._tensor(self.trainable.lists)
        # what engines see of it, on the device
        labels = None if asked.labels is None else torch.tensor(asked.labels, device=device)
        self.request = replace(asked, columns={}, labels=labels, model=self._model(asked.model))
        self.steps_an_epoch = math.ceil(len(log) / settings.batch)

    def checkpoints(self, start: Learnable, folder: str | Path | None, seconds: float) -> Checkpoints:
        """Where this run is kept, under a mark that no run from another start has. The run itself does not hold the start."""
        if folder is None:
            return Checkpoints(None, "", seconds)
        encoding = self.trainable.encoding
        mark = fingerprint(self.log, start, self.objective, self.settings, self.asked, encoding)
        return Checkpoints(folder, mark, seconds)

    # ---- the loop

    def go(
        self,
        held: LoggedData | None,
        score: Callable[[Policy], float] | None,
        checkpoints: Checkpoints,
        progress: Callable[[Moment], None] | None,
    ) -> Learned:
        settings, total = self.settings, self.settings.epochs * self.steps_an_epoch
        state = checkpoints.resume(self.trainable)
        started, first, order = time.monotonic(), state.step, None
        looks = 1 if self.device.type == "cpu" else LOOKS
        while state.step < total and not state.stopped:
            epoch, batch = divmod(state.step, self.steps_an_epoch)
            if order is None or batch == 0:
                order = np.random.default_rng([settings.seed, epoch]).permutation(len(self.log))
            index = order[batch * settings.batch : (batch + 1) * settings.batch]
            rate = settings.learning_rate * share_of_rate(settings.schedule, state.step, total)
            state.total = (state.total if batch else 0.0) + len(index) * self._step(
                index, epoch, batch, state.step, rate
            )
            state.step += 1
            last = batch == self.steps_an_epoch - 1
            if last or batch % looks == 0:
                self._check(state, epoch, batch, checkpoints)
            took = time.monotonic() - started
            speed = (state.step - first) * settings.batch / max(1e-9, took)
            if last:
                self._close(state, epoch, held, score, speed, rate)
            if progress is not None:
                left = took / (state.step - first) * (total - state.step)
                rows = min((batch + 1) * settings.batch, len(self.log))
                mean = float(state.total) / rows if last or self.device.type == "cpu" else math.nan
                progress(
                    Moment(epoch, batch, settings.epochs, self.steps_an_epoch, mean, speed, left, tuple(state.history))
                )
            checkpoints.maybe_save(self.trainable, state)
        checkpoints.save(self.trainable, state)
        best = state.best if settings.patience is not None else None
        policy = self.trainable.policy() if best is None else self.trainable.policy_of(best)
        return Learned(policy, tuple(state.history), self.objective.label, settings.described())

    def _check(self, state: TrainingState, epoch: int, batch: int, checkpoints: Checkpoints) -> None:
        """A sum that is not finite ends the run before it can reach a checkpoint."""
        state.total = float(state.total)
        if not math.isfinite(state.total):
            came = f"{state.total} in epoch {epoch + 1}, batch {batch + 1}"
            advice = f"try a smaller learning rate{checkpoints.last_good()}"
            if state.step == 1:  # nothing has been learned yet
                advice = (
                    "the start or the log holds numbers that this precision cannot multiply (precision='fp64' has more)"
                )
            raise InvalidInput("objective", came, f"a finite value: {advice}")

    def _close(
        self,
        state: TrainingState,
        epoch: int,
        held: LoggedData | None,
        score: Callable[[Policy], float] | None,
        speed: float,
        rate: float,
    ) -> None:
        """The epoch's line of the history; whether it is the best so far, and whether enough is enough."""
        validation = None if held is None else self.held_out(held)
        scored = None if score is None else _finite(score(self.trainable.policy()), epoch)
        mean = float(state.total) / len(self.log)
        state.history.append(Epoch(epoch + 1, mean, validation, scored, speed, rate))
        judged = scored if scored is not None else validation
        if self.settings.patience is None or judged is None:
            return
        if judged > state.best_value:
            state.best_value, state.best_epoch, state.best = judged, epoch, self.trainable.parameters()
        state.stopped = epoch - state.best_epoch >= self.settings.patience

    # ---- a batch

    def _step(self, index: Ints, epoch: int, batch: int, step: int, rate: float) -> Tensor:
        """One step up the objective on the rows `index`; its value on them before the step."""
        rng = np.random.default_rng([self.settings.seed, epoch, batch])
        trainable, size = self.trainable, len(index)
        if self.asked.active is not None:
            index = index[self.asked.active[index]]
        rows = self._batch(index, size, step, rng)
        trainable.begin(rate)
        answers = trainable.engine.forward(rows, self.request)
        value: Tensor = self.objective.value(answers, rows)
        if value.requires_grad:
            (-value).backward()  # type: ignore[no-untyped-call]
        gradient = trainable.engine.backward(want_h=trainable.learns_encoder)
        if trainable.encoding is not None and gradient is not None and rows.h is not None:
            rows.h.backward(gradient)
            trainable.encoding.step(rate)
        trainable.finish()
        return value.detach()

    def _batch(self, index: Ints, size: int, step: int, rng: np.random.Generator) -> Batch:
        """The rows `index` on the device, with the actions that are asked for."""
        rows = self._sent(index)
        x = self.contexts[rows]
        h = self.trainable.features(x)
        ids = self.ids[rows]
        if callable(self.asked.ids):
            ids = torch.cat([ids, self._tensor(self.asked.ids(index))], dim=1)
        if self.asked.negatives:
            extra = self.asked.drawn(index, self.log.action_count, rng)
            ids = torch.cat([ids, self._tensor(extra)], dim=1)
        batch = Batch({name: column[rows] for name, column in self.columns.items()}, size, x=x, h=h, ids=ids)
        if self.logging is not None:
            batch.logging_ids, batch.logging = self.logging(rows, x)
        batch.wanted = None if self.wanted is None else self.wanted[rows]
        batch.seed = seed_of(rng)
        if self.lists is not None:
            batch.lists = self.lists[rows]
        elif self.trainable.sampler is not None:
            batch.lists, batch.offsets = self.trainable.sampler.draw(h, self.trainable.table.beta, ids, step, rng)
        return batch

    def _sent(self, index: Ints) -> Tensor:
        """Row numbers on the device; to a GPU without waiting for what it is doing."""
        rows = torch.as_tensor(index)
        return rows if self.device.type == "cpu" else rows.pin_memory().to(self.device, non_blocking=True)

    def held_out(self, held: LoggedData) -> float:
        """The self-normalised estimate of the policy's reward on held-out rows."""
        policy = self.trainable.policy()
        pi = np.concatenate([policy.probabilities_of(p.contexts, p.actions) for p in held.chunks(HELD_ROWS)])
        assert held.propensities is not None
        w = pi / held.propensities
        return float(w @ held.rewards / max(w.sum(), 1e-300))

    # ---- parts

    def _ids(self) -> Tensor:
        """(n, m): the actions that are asked for, where they are known beforehand."""
        ids = self.log.actions[:, None] if self.asked.logged else np.empty((len(self.log), 0), dtype=np.int64)
        if self.asked.ids is not None and not callable(self.asked.ids):
            ids = np.concatenate([ids, self.asked.ids], axis=1)
        return self._tensor(ids)

    def _model(self, model: ModelValues | None) -> ModelOnDevice | None:
        if model is None:
            return None
        weights = getattr(model, "weights", None)
        return ModelOnDevice(model, None if weights is None else self._tensor(weights))

    def _tensor(self, array: AnyArray) -> Tensor:
        kind = np.asarray(array).dtype.kind
        dtype = self.trainable.dtype if kind == "f" else torch.int64 if kind in "iu" else None
        return torch.tensor(array, dtype=dtype, device=self.device)


def _finite(scored: object, epoch: int) -> float:
    """What `score` gave, as a number to compare epochs by."""
    try:
        value = float(scored)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(
            "score", f"{describe(scored)} after epoch {epoch + 1}", "a function that gives a finite number"
        )
    return value


__all__ = ["TrainingRun"]
