"""Checkpoints of a run of several processes: each writes its share, and a step counts once all have.

FOLDER/step-N/shard-I-of-W     what process I of W has after step N: its rows of the table, their moments, the encoder
FOLDER/current.json            the last step whose shards are all there, replaced as a whole after the last of them was written

Whoever is killed while a step is written leaves the one before it, with all of its shards. Where all processes have the same
table, which stays as it is, the first writes one shard for all.
"""

from __future__ import annotations

import json
import shutil
import time
from functools import partial
from pathlib import Path

from manyarms._base import files, storage
from manyarms.errors import InvalidInput, StorageError
from manyarms.learning.checkpoints import CURRENT, Checkpoints, TrainingState
from manyarms.learning.peers import Peers
from manyarms.learning.trainable import Trainable

LOOK_SECONDS = 1.0  # between two looks at the clock: the first process looks, and the others must be told


class ShardCheckpoints(Checkpoints):
    """As `Checkpoints`, of processes that call it together. divided: whether each has a share of its own."""

    def __init__(self, folder: str | Path, mark: str, seconds: float, peers: Peers, *, divided: bool) -> None:
        super().__init__(folder, mark, seconds)
        self.peers = peers
        self.shards, self.number = (peers.count, peers.rank) if divided else (1, 0)
        self._asked, self._ask_at = (time.monotonic(), 0), 0

    def resume(self, trainable: Trainable) -> TrainingState:
        found = self.peers.by_first(self._current)
        if found is None:
            return TrainingState()
        states: list[TrainingState] = []  # each process has its own
        self.peers.by_all(lambda: states.append(self._whole(found, trainable)))
        self._asked, self._ask_at = (time.monotonic(), found), found
        return states[0]

    def _whole(self, step: int, trainable: Trainable) -> TrainingState:
        """This process's shard of a step."""
        shard = self._shard(step)
        state = self._read(shard, trainable)
        if state.step != step:
            raise StorageError(f"{shard}: expected the state after step {step}, got that after {state.step}")
        return state

    def maybe_save(self, trainable: Trainable, state: TrainingState) -> None:
        if state.step < self._ask_at:
            return
        due, ahead = self.peers.by_first(partial(self._due, state.step))
        self._ask_at = state.step + ahead
        if due:
            self.save(trainable, state)

    def _due(self, step: int) -> tuple[bool, int]:
        """Whether it is time, and in how many steps to look again."""
        now, (then, before) = time.monotonic(), self._asked
        self._asked = now, step
        each = max(1e-6, (now - then) / max(1, step - before))
        return now - self._saved >= self.seconds, max(1, int(min(LOOK_SECONDS, self.seconds) / each))

    def _write(self, folder: Path, trainable: Trainable, state: TrainingState) -> None:
        writes = self.shards > 1 or self.peers.first
        shard = super()._write
        self.peers.by_all(lambda: shard(self._shard(state.step), trainable, state) if writes else None)
        told = {"run": self.mark, "step": state.step, "shards": self.shards}
        self.peers.by_first(partial(self._publish, folder, told))

    def _publish(self, folder: Path, told: dict[str, object]) -> None:
        files.write_text_atomically(folder / CURRENT, json.dumps(told) + "\n")
        for old in folder.glob("step-*"):  # what is complete stands elsewhere; what is not, nobody will complete
            if old.name != f"step-{told['step']}":
                shutil.rmtree(old, ignore_errors=True)

    def _current(self) -> int | None:
        """The step to go on from; None for a new run."""
        assert self.folder is not None
        path = self.folder / CURRENT
        if files.present(self.folder / storage.MANIFEST):
            came = f"{self.peers.count} processes, and in {self.folder} a run of one"
            raise InvalidInput("workers", came, "an empty folder, or none, for the run that is there")
        if not files.present(path):
            return None
        try:
            with files.open_regular(path) as stream:
                told = json.loads(stream.read())
            step, shards, run = told["step"], told["shards"], told["run"]
            sound = type(step) is int and step >= 0 and type(shards) is int
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{path}: it does not say which step is the last: {error}") from error
        if not sound:
            raise StorageError(f"{path}: it does not say which step is the last")
        if run != self.mark:
            came = f"{self.folder}, a run with another log, policy, objective or setting"
            raise InvalidInput("folder", came, "an empty folder, or the same run")
        if shards != self.shards:
            raise InvalidInput(
                "workers",
                self.peers.count,
                f"{shards}: the run in {self.folder} was divided among so many, or an empty folder",
            )
        return int(step)

    def _shard(self, step: int) -> Path:
        assert self.folder is not None
        return self.folder / f"step-{step}" / f"shard-{self.number}-of-{self.shards}"


__all__ = ["ShardCheckpoints"]
