"""Picture tasks for the experiment on images: real pictures or made-up ones, and agents with one parameter for all of them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from manyarms._base.typing import Array
from manyarms.agents import named as agents
from manyarms.beliefs.likelihoods import Linear
from manyarms.errors import DataError, InvalidInput
from manyarms.worlds.image_files import ImageSet, read_images, write_made_up_images
from manyarms.worlds.images import Images, Truth
from manyarms_thesis.dts.pretrained import pretrained

HERE = "manyarms_thesis.dts.image_tasks"
MADE_UP = "made-up"


def source(data: str) -> str:
    """The data set's own name where it is found, else made-up pictures."""
    try:
        read_images(cast(ImageSet, data))
    except DataError:
        return MADE_UP
    return data


@cache
def made_up_pictures(data: str) -> str:
    """A folder with made-up pictures, the same in every process, gone when the process ends."""
    folder = tempfile.mkdtemp(prefix="manyarms-made-up-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_made_up_images(folder, cast(ImageSet, data), classes=12, each=60, seed=0)
    return folder


def image_task(
    *, data: str, source: str, actions: int, dim: int, percent: float, truth: str, tasks: int, seed: int
) -> Images:
    """A task with fresh offers and rewards. Runs share `tasks` tasks (a class, and offline pictures), each prepared once."""
    folder = made_up_pictures(data) if source == MADE_UP else None
    made = Images(
        actions, dim, data=cast(ImageSet, data), percent=percent, truth=cast(Truth, truth), folder=folder,
        seed=seed % tasks,
    )  # fmt: skip
    return made.replay(seed)


def task_estimates(size: int, seed: int, **task: Any) -> Array:
    """About `size` offline estimates of the parameters of other classes."""
    world = image_task(**task, seed=seed)
    once = len(world.estimates(1))
    return world.estimates(max(1, -(-size // once)))


def image_agent(
    *,
    kind: str,
    world: Images,
    rounds: int,
    seed: int,
    preparation: int,
    prior: Mapping[str, Any] | None = None,
    tasks: int = 1,
) -> Any:
    """dTS's joint variant with a pre-trained prior; HierTS with the estimates' moments; LinTS without offline data."""
    if kind == "dTS" and prior is not None:
        belief: Any = pretrained(**prior, seed=preparation % tasks).prior(1, shared=True, first_covariance="schedule")
    elif kind == "HierTS":
        belief = world.hierarchical_prior()
    elif kind == "LinTS":
        belief = world.vague_prior()
    else:
        raise InvalidInput("kind", repr(kind), "'HierTS', 'LinTS', or 'dTS' with a prior")
    shape = (world.actions,)
    return agents.jointTS(
        belief, world.actions, Linear(world.noise), feature_map=world.features, context_shape=shape, seed=seed
    )


__all__ = ["MADE_UP", "image_agent", "image_task", "made_up_pictures", "source", "task_estimates"]
