"""Processes of a cluster that train together: Ray Train starts them, and starts all of them again when one dies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manyarms.engine.base import NoCommon, WorkerDied
from manyarms.engine.local import tell_through
from manyarms.engine.local_training import OF_A_CONNECTION
from manyarms.engine.mailbox import Way

if TYPE_CHECKING:
    from manyarms.engine.cluster import Cluster

SHARE_OF_A_CORE = 0.5  # of a process that trains: two fit on a core, where they take turns


def train(
    function: Callable[..., Any],
    workers: int,
    common: Any,
    failures: int,
    mailbox: Any,
    *,
    engine: Cluster,
    surroundings: dict[str, Any] | None,
) -> Any:
    """`Engine.train` on a cluster. common: as tasks are given it. surroundings: the environment of the processes."""
    import ray
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    on_gpus = ray.cluster_resources().get("GPU", 0) >= workers
    needed = {"CPU": min(1.0, max(SHARE_OF_A_CORE, 0.9 * engine.workers / workers))}
    said = ""
    with tempfile.TemporaryDirectory(prefix="manyarms-") as storage:
        trainer = TorchTrainer(
            _member,
            train_loop_config={"function": function, "common": common, "mailbox": mailbox},
            torch_config=TorchConfig(backend="nccl" if on_gpus else "gloo"),
            scaling_config=ScalingConfig(num_workers=workers, use_gpu=on_gpus, resources_per_worker=needed),
            run_config=RunConfig(
                storage_path=storage,
                failure_config=FailureConfig(max_failures=failures),
                worker_runtime_env=surroundings,
            ),
        )
        try:
            trainer.fit()
        except Exception as error:  # what it has, it says by an error of its own
            said = _why(error)
    answer = ray.get(mailbox.answer.remote())
    if answer is None:
        raise WorkerDied(f"training on {engine.address} ended without an answer" + (said and f": {said}"))
    kind, outcome = answer
    if kind == "error":
        raise outcome
    return outcome


def _member(config: dict[str, Any]) -> None:
    """One process: an error of the function ends the run, a death lets Ray Train start all of them again."""
    import ray
    from ray import train

    from manyarms.engine.cluster import fetched

    mailbox, common = config["mailbox"], config["common"]
    if ray.get(mailbox.answer.remote()) is not None:
        return  # started again because of an error that is known: nothing more is to be done
    way = Way(mailbox)
    tell_through(way)
    try:
        function = config["function"]
        outcome = function() if isinstance(common, NoCommon) else function(fetched(common))
    except OF_A_CONNECTION:
        raise
    except Exception as error:
        _end_with(mailbox, error)
        raise  # the others may be waiting for this one: they end with it
    way.wait()
    if train.get_context().get_world_rank() == 0:
        ray.get(mailbox.end.remote("outcome", outcome))


def _end_with(mailbox: Any, error: Exception) -> None:
    import ray

    try:
        ray.get(mailbox.end.remote("error", error))
    except Exception:  # an error that cannot be sent as it is
        ray.get(mailbox.end.remote("error", RuntimeError(f"{type(error).__name__}: {error}")))


def _why(error: BaseException) -> str:
    """In a line: the end of the traceback of the first process that has one."""
    for rank, failure in sorted(getattr(error, "worker_failures", {}).items()):
        lines = [line for line in str(failure).splitlines() if line.strip()]
        return f"process {rank}: {lines[-1].strip() if lines else type(failure).__name__}"
    return str(error).partition("\n")[0] or type(error).__name__


__all__ = ["train"]
