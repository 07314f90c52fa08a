"""The one training loop: a log, a policy to start from, an objective; out comes a better policy.

    for every epoch: shuffle the rows;  for every batch: answers of the policy, value of the objective, one step up

Rows that an objective gives no weight are left out of a batch's work and stay in its size, so a batch means the same for every
objective. Order and random draws come from (seed, epoch, batch) alone: a run that is killed and resumed from a checkpoint ends
with the same numbers as one that never stopped.

Several processes may run it together (`peers`): all of them the same batches, each with its share of the policy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from manyarms._base.devices import usable_device
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms._base.validate import describe
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Objective
from manyarms.learning.checkpoints import Checkpoints, TrainingState, fingerprint
from manyarms.learning.closed_steps import ClosedSteps
from manyarms.learning.optimisers import schedule as share_of_rate
from manyarms.learning.peers import Peers
from manyarms.learning.results import Epoch, Learnable, Learned, Moment
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.shard_checkpoints import ShardCheckpoints
from manyarms.learning.steps import Steps
from manyarms.learning.streaming import Streamed
from manyarms.learning.survey import StreamedRows
from manyarms.learning.trainable import Trainable
from manyarms.learning.windows import InMemory, Staging, Window, WindowSource
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.policies.base import Policy

HELD_ROWS = 512  # rows of held-out data in one go
MARKED_ROWS = 64  # of a log that is larger than memory: what an objective makes of them tells runs apart
LOOKS = 16  # calls of `take` between two looks at a loss on a GPU, where each look waits for the device


class TrainingRun:
    """A log, a trainable policy and an objective, batch by batch."""

    def __init__(
        self,
        log: LoggedData | StreamedRows,
        policy: Learnable,
        objective: Objective,
        settings: TrainingSettings,
        device: str | torch.device | None = None,
        peers: Peers | None = None,
    ) -> None:
        self.settings, self.peers, rows = settings, peers, len(log)
        self.device = device = usable_device(peers.device if peers is not None and device is None else device)
        self.objective = objective.resolved(rows)
        if isinstance(log, LoggedData):
            self.log, self._digest = log, b""
            self.asked = asked = self.objective.prepare(log).computed(rows)  # of all rows, in NumPy
        else:  # some rows, to tell runs apart and to know what is asked
            self.log, self._digest = log.sample.rows(slice(0, MARKED_ROWS)), log.digest
            self.asked = asked = self.objective.prepare_part(self.log, rows).computed(len(self.log))
        if asked.sums:
            expected = (
                "an objective of probabilities and expectations: this one sums over all actions under both policies"
            )
            raise InvalidInput("objective", f"{objective.name}, which can be evaluated and not learned", expected)
        distance = 2 * self.objective.distance / rows + 2 * asked.squared_distance
        self.trainable = Trainable(policy, self.log, settings, distance, device, asked.all_actions, peers)
        staging = Staging(self.trainable)
        self.window = staging.window(self.log, asked)
        self.source: WindowSource = InMemory(self.window, settings)
        if not isinstance(log, LoggedData):
            staging.require_reach(log.reach)
            self.source = Streamed(log, self.objective, staging, settings)
        self.steps = steps_on(self.trainable, self.objective, settings, self.log)
        self.steps_an_epoch = math.ceil(self.source.rows / settings.batch)

    def checkpoints(self, start: Learnable, folder: str | Path | None, seconds: float) -> Checkpoints:
        """Where this run is kept, under a mark that no run from another start has. The run itself does not hold the start."""
        if folder is None:
            return Checkpoints(None, "", seconds)
        encoding = self.trainable.encoding

        def marked() -> str:
            return fingerprint(self.log, start, self.objective, self.settings, self.asked, encoding, self._digest)

        if self.peers is not None:
            mark = self.peers.by_first(marked)
            return ShardCheckpoints(folder, mark, seconds, self.peers, divided=not self.trainable.divides_batches)
        return Checkpoints(folder, marked(), seconds)

    # ---- the loop

    def go(
        self,
        held: LogSource | None,
        score: Callable[[Policy], float] | None,
        checkpoints: Checkpoints,
        progress: Callable[[Moment], None] | None,
    ) -> Learned | None:
        """To the end; the outcome is None in processes that are not the first of those that run it."""
        settings = self.settings
        state = checkpoints.resume(self.trainable)
        watch = _Watch(time.monotonic(), state.step)
        if progress is not None and self.steps.preparing:
            epoch, batch = divmod(state.step, self.steps_an_epoch)
            progress(self._moment(state, epoch, batch - 1, watch, self.steps.preparing))
        try:
            for window in self.source.windows(*divmod(state.step, self.steps_an_epoch)):
                if state.stopped:
                    break
                last = window.first_batch + window.batches(settings.batch) - 1
                batch = state.step - window.epoch * self.steps_an_epoch
                while batch <= last:
                    taken = self._take(window, state, batch, last, checkpoints)
                    batch += taken
                    if batch == self.steps_an_epoch:
                        self._close(state, window.epoch, held, score, watch.speed(state, settings.batch))
                    if progress is not None:
                        progress(self._moment(state, window.epoch, batch - 1, watch))
                    checkpoints.maybe_save(self.trainable, state)
        finally:
            self.source.close()
        checkpoints.save(self.trainable, state)
        best = state.best if settings.patience is not None else None
        policy = self._policy(self.trainable.parameters() if best is None else best)
        if policy is None:
            return None
        told = settings.described()
        return Learned(policy, tuple(state.history), self.objective.label, told, notes=self.steps.notes)

    def _take(self, window: Window, state: TrainingState, batch: int, last: int, checkpoints: Checkpoints) -> int:
        """Some batches of a window, from number `batch` of the epoch on; how many.

        None of them lies behind `last`, nor behind the next look at the loss, nor behind a step that may be saved.
        """
        at_once = self.steps.at_once(window)
        looks = 1 if self.device.type == "cpu" else LOOKS * at_once
        count = min(at_once, last - batch + 1, looks - batch % looks)
        every = getattr(self.trainable.sampler, "every", 1)
        count = min(count, every - state.step % every) if every > 1 else count
        rates = [self._rate(state.step + number) for number in range(count)]
        batches = window.taken(batch, count, self.settings.batch)
        value = self.steps.take(window, batches, window.epoch, batch, state.step, rates)
        state.total = (state.total if batch else 0.0) + value
        state.step += count
        end = batch + count - 1
        if end == self.steps_an_epoch - 1 or (end + 1) % looks == 0:
            self._check(state, window.epoch, end, checkpoints)
        return count

    def step_on(self, index: Ints, *, epoch: int = 0, batch: int = 0, step: int = 0, rate: float) -> Tensor | float:
        """One step on these rows of a log in memory; the objective's value on them before the step."""
        rows = self.window.rows_of(index)
        return self.steps.take(self.window, [rows], epoch, batch, step, [rate]) / rows[1]

    def _rate(self, step: int) -> float:
        total = self.settings.epochs * self.steps_an_epoch
        return self.settings.learning_rate * share_of_rate(self.settings.schedule, step, total)

    def _moment(self, state: TrainingState, epoch: int, batch: int, watch: _Watch, doing: str = "") -> Moment:
        settings, last = self.settings, batch == self.steps_an_epoch - 1
        rows = min((batch + 1) * settings.batch, self.source.rows)
        mean = float(state.total) / rows if last or self.device.type == "cpu" else math.nan
        left = watch.left(state, settings.epochs * self.steps_an_epoch)
        speed = watch.speed(state, settings.batch)
        history = tuple(state.history)
        return Moment(epoch, batch, settings.epochs, self.steps_an_epoch, mean, speed, left, history, doing)

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
        held: LogSource | None,
        score: Callable[[Policy], float] | None,
        speed: float,
    ) -> None:
        """The epoch's line of the history; whether it is the best so far, and whether enough is enough."""
        validation, scored = self._judged(epoch, held, score)
        mean, rate = float(state.total) / self.source.rows, self._rate(state.step - 1)
        state.history.append(Epoch(epoch + 1, mean, validation, scored, speed, rate))
        judged = scored if scored is not None else validation
        if self.settings.patience is None or judged is None:
            return
        if judged > state.best_value:
            state.best_value, state.best_epoch, state.best = judged, epoch, self.trainable.parameters()
        state.stopped = epoch - state.best_epoch >= self.settings.patience

    def _judged(
        self, epoch: int, held: LogSource | None, score: Callable[[Policy], float] | None
    ) -> tuple[float | None, float | None]:
        """What held-out rows and `score` say of the policy as it is; of several processes the first asks them, for all."""
        if held is None and score is None:
            return None, None
        policy = self._policy(self.trainable.parameters())

        def judged() -> tuple[float | None, float | None]:
            assert policy is not None
            validation = None if held is None else self.held_out(held, policy)
            return validation, None if score is None else _finite(score(policy), epoch)

        return judged() if self.peers is None else self.peers.by_first(judged)

    def _policy(self, parameters: dict[str, AnyArray]) -> Learnable | None:
        """The policy of parameters; None where another process has it."""
        whole = self.trainable.whole(parameters)
        return None if whole is None else self.trainable.policy_of(whole)

    @staticmethod
    def held_out(held: LogSource, policy: Policy) -> float:
        """The self-normalised estimate of the policy's reward on held-out rows."""
        weights, rewards = list[Array](), list[Array]()
        for chunk in (small for large in held.chunks(CHUNK) for small in large.chunks(HELD_ROWS)):
            assert chunk.propensities is not None
            weights.append(policy.probabilities_of(chunk.contexts, chunk.actions) / chunk.propensities)
            rewards.append(chunk.rewards)
        w = np.concatenate(weights)
        return float(w @ np.concatenate(rewards) / max(w.sum(), 1e-300))


@dataclass(frozen=True)
class _Watch:
    """When a run began, and at which step."""

    started: float
    first: int

    def speed(self, state: TrainingState, batch: int) -> float:
        """Rows per second since then."""
        return (state.step - self.first) * batch / max(1e-9, time.monotonic() - self.started)

    def left(self, state: TrainingState, total: int) -> float:
        """Seconds to the end; not a number before the first step."""
        if state.step == self.first:
            return math.nan
        return (time.monotonic() - self.started) / (state.step - self.first) * (total - state.step)


def steps_on(trainable: Trainable, objective: Objective, settings: TrainingSettings, log: LoggedData) -> Steps:
    """Who takes the steps on the device that the policy is on; log: some rows, to see what the objective is like."""
    if ClosedSteps.fit(trainable):
        return ClosedSteps(trainable, objective, settings)
    if trainable.device.type != "cuda" or trainable.peers is not None:
        return Steps(trainable, objective, settings)
    from manyarms.learning.cuda import can_fuse

    if can_fuse(trainable, settings) and objective.linear_terms(log) is not None:
        from manyarms.learning.fused import FusedSteps

        return FusedSteps(trainable, objective, settings)
    from manyarms.learning.captured_steps import CapturedSteps

    return CapturedSteps(trainable, objective, settings)


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
