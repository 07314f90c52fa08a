"""Checkpoints of a training run, written atomically: an interrupted run resumes and ends with the same result."""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from manyarms._base import files, storage
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Spec, loose
from manyarms.errors import InvalidInput, StorageError
from manyarms.estimators.base import Objective, Request
from manyarms.learning.optimisers import ParameterTable
from manyarms.learning.results import Epoch
from manyarms.learning.settings import TrainingSettings
from manyarms.learning.trainable import EncoderInTraining, Learnable, Trainable, as_arrays
from manyarms.logs.data import LoggedData
from manyarms.policies.randomised import GaussianPolicy
from manyarms.policies.two_stage import TwoStagePolicy

KIND = "learning"
CURRENT = "current.json"  # of a run of several processes: which of its steps is the last that is complete
REMEMBERED = {  # by the optimisers of encoders, for each parameter: numbers as many as it has, or one
    "Adam": {"step": False, "exp_avg": True, "exp_avg_sq": True},
    "Adagrad": {"step": False, "sum": True},
}
MODEL_ROWS = 4  # rows at which two reward models are told apart


@dataclass
class TrainingState:
    """What changes from batch to batch, beside the parameters."""

    step: int = 0
    total: Tensor | float = 0.0  # sum of the objective over the batches of this epoch
    history: list[Epoch] = field(default_factory=list)
    best_value: float = -math.inf
    best_epoch: int = -1
    best: dict[str, AnyArray] | None = None
    stopped: bool = False


class Checkpoints:
    """Saves to a folder now and then, and finds the last state there; without a folder it does nothing."""

    def __init__(self, folder: str | Path | None, mark: str, seconds: float) -> None:
        self.folder = None if folder is None else files.require_folder("folder", folder)
        self.mark, self.seconds = mark, seconds
        self._saved, self._step = time.monotonic(), -1

    def resume(self, trainable: Trainable) -> TrainingState:
        """The state in the folder, its parameters put into `trainable`; a new one where there is none."""
        if self.folder is None:
            return TrainingState()
        if files.present(self.folder / CURRENT):
            raise InvalidInput(
                "workers",
                f"one process, and in {self.folder} a run of several",
                "an empty folder, or as many workers as before",
            )
        if not files.present(self.folder / storage.MANIFEST):
            return TrainingState()
        return self._read(self.folder, trainable)

    def _read(self, folder: Path, trainable: Trainable) -> TrainingState:
        """The state that was written to a folder, its parameters put into `trainable`."""
        spec, arrays = storage.read(folder, KIND)
        if spec.get("run") != self.mark:
            raise InvalidInput(
                "folder",
                f"{self.folder}, a run with another log, policy, objective or setting",
                "an empty folder, or the same run",
            )
        try:
            check_saved(trainable, spec, arrays)
        except KeyError as error:
            raise StorageError(f"{folder}: the saved run is incomplete: {error} is missing") from error
        except StorageError as error:
            raise StorageError(f"{folder}: {error}") from error
        _restore(trainable, arrays)
        told = loose(spec)
        self._step = told["step"]
        return TrainingState(
            step=told["step"],
            total=float(arrays["total"]),
            history=[Epoch(**line) for line in told["history"]],
            best_value=float(arrays["best_value"]),
            best_epoch=told["best_epoch"],
            best=under("best/", arrays) or None,
            stopped=told["stopped"],
        )

    def maybe_save(self, trainable: Trainable, state: TrainingState) -> None:
        """Save if it is time, and if the sampler holds nothing that a resumed run would not have."""
        every = getattr(trainable.sampler, "every", 1)
        if self.folder is not None and time.monotonic() - self._saved >= self.seconds and state.step % every == 0:
            self.save(trainable, state)

    def save(self, trainable: Trainable, state: TrainingState) -> None:
        """Write the state as it is; nothing to do if it has not moved since."""
        if self.folder is None or state.step == self._step:
            return
        state.total = float(state.total)
        if not math.isfinite(state.total):
            return
        self._write(self.folder, trainable, state)
        self._saved, self._step = time.monotonic(), state.step

    def _write(self, folder: Path, trainable: Trainable, state: TrainingState) -> None:
        arrays = _arrays(trainable) | prefixed("best/", state.best or {})
        arrays |= {"total": np.asarray(float(state.total)), "best_value": np.asarray(state.best_value)}
        spec: Spec = {
            "run": self.mark,
            "step": state.step,
            "history": [asdict(line) for line in state.history],
            "best_epoch": state.best_epoch,
            "stopped": state.stopped,
        }
        storage.save(folder, KIND, spec, arrays)

    def last_good(self) -> str:
        """For an error message: what is left."""
        if self.folder is None or self._step < 0:
            return ""
        return f" (the state after batch {self._step} of the run is kept in {self.folder})"


def fingerprint(
    log: LoggedData,
    policy: Learnable,
    objective: Objective,
    settings: TrainingSettings,
    request: Request,
    encoding: EncoderInTraining | None,
    digest_of_all: bytes = b"",
) -> str:
    """A name for a run: equal only where log, start, objective and settings are.

    An objective's name does not say which reward model, clusters or function g it has: what it made of the log (`request`) does.
    digest_of_all: of a log that is larger than memory, of which `log` and `request` are some rows.
    """
    digest = hashlib.blake2b(digest_of_all, digest_size=16)
    start = policy.clusters if isinstance(policy, TwoStagePolicy) else policy.actions
    parts: list[AnyArray | None] = [log.contexts, log.actions, log.rewards, log.propensities, log.support]
    parts += [log.support_probabilities, np.asarray(getattr(policy, "sigma", 0.0)), start, request.labels]
    parts += [np.asarray(policy.nodes)] if isinstance(policy, GaussianPolicy) else []
    parts += [policy.labels, policy.model] if isinstance(policy, TwoStagePolicy) else []
    parts += [column for _, column in sorted(request.columns.items()) if not callable(column)]
    if request.model is not None:
        parts.append(request.model.block(log.contexts[:MODEL_ROWS], np.arange(log.action_count)))
    if encoding is not None:
        parts += [tensor.detach().cpu().numpy() for tensor in encoding.module.state_dict().values()]
    for array in parts:
        if array is not None:
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)  # where it lies, without a copy
    words: dict[str, Any] = {"policy": repr(policy), "objective": objective.label, **settings.described()}
    words.pop("epochs" if settings.schedule == "constant" else "", None)  # a longer run may go on from a shorter one
    digest.update(json.dumps(words, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _tables(trainable: Trainable) -> dict[str, ParameterTable]:
    """The tables by the prefix of their arrays."""
    return {"table/": trainable.table} | {f"extra/{name}/": table for name, table in trainable.engine.extra.items()}


def _arrays(trainable: Trainable) -> dict[str, AnyArray]:
    arrays: dict[str, AnyArray] = {}
    for prefix, table in _tables(trainable).items():
        arrays |= prefixed(prefix, as_arrays(table.state()))
    arrays["table/steps"] = np.asarray(trainable.table.steps)
    encoding = trainable.encoding
    if encoding is not None:
        arrays |= prefixed("encoder/", as_arrays(encoding.module.state_dict()))
        if encoding.optimiser is not None:
            for number, entries in encoding.optimiser.state_dict()["state"].items():
                for name, entry in entries.items():
                    arrays[f"optimiser/{number}/{name}"] = torch.as_tensor(entry).cpu().numpy()
    return arrays


def check_saved(trainable: Trainable, spec: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
    """Whether a checkpoint fits what is trained, array by array: PyTorch would stretch a small array to any shape."""
    line = {one.name for one in fields(Epoch)}
    told = spec["history"]
    sound = type(spec["step"]) is int and type(spec["best_epoch"]) is int and type(spec["stopped"]) is bool
    sound = sound and spec["step"] >= 0 and isinstance(told, list)
    if not sound or not all(isinstance(one, dict) and one.keys() == line for one in told):
        raise StorageError("the saved run says nothing that makes sense of its step, its history or its end")
    expected: dict[str, tuple[int, ...]] = {"total": (), "best_value": (), "table/steps": ()}
    for prefix, table in _tables(trainable).items():
        expected |= {f"{prefix}{name}": tuple(shape) for name, shape in table.shapes().items()}
    if any(name.startswith("best/") for name in arrays):
        expected |= {f"best/{name}": array.shape for name, array in trainable.parameters().items()}
    if trainable.encoding is not None:
        tensors = trainable.encoding.module.state_dict()
        expected |= {f"encoder/{name}": tuple(tensor.shape) for name, tensor in tensors.items()}
        kept = REMEMBERED.get(type(trainable.encoding.optimiser).__name__, {})
        for number, parameter in enumerate(trainable.encoding.module.parameters()):
            if spec["step"] and any(
                name.startswith(f"optimiser/{number}/") for name in arrays
            ):  # it may have no gradient
                shapes = {key: tuple(parameter.shape) if whole else () for key, whole in kept.items()}
                expected |= {f"optimiser/{number}/{key}": shape for key, shape in shapes.items()}
    if arrays.keys() != expected.keys():
        odd = sorted(arrays.keys() ^ expected.keys())[0]
        raise StorageError(f"the saved run has the array {odd!r} too many or too few")
    for name, array in arrays.items():
        if array.shape != expected[name] or array.dtype.kind not in "fiu":
            came = f"of shape {array.shape} and type {array.dtype}"
            raise StorageError(f"{name} is {came}, expected numbers of shape {expected[name]}")
        if name != "best_value" and not np.isfinite(array).all():
            raise StorageError(f"{name} has numbers that are not finite")
    if np.isnan(arrays["best_value"]):
        raise StorageError("best_value is not a number")


def _restore(trainable: Trainable, arrays: dict[str, AnyArray]) -> None:
    def part(prefix: str) -> dict[str, Tensor]:
        return {name: torch.as_tensor(array) for name, array in under(prefix, arrays).items()}

    for prefix, table in _tables(trainable).items():
        table.restore(part(prefix), int(arrays["table/steps"]))
    encoding = trainable.encoding
    if encoding is None:
        return
    encoding.module.load_state_dict(part("encoder/"))
    if encoding.optimiser is not None:
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in part("optimiser/").items():
            number, _, key = name.partition("/")
            state.setdefault(int(number), {})[key] = tensor
        encoding.optimiser.load_state_dict(
            {"state": state, "param_groups": encoding.optimiser.state_dict()["param_groups"]}
        )


__all__ = ["CURRENT", "Checkpoints", "TrainingState", "fingerprint"]
