"""Picture tasks for the experiment on images: real pictures or made-up ones, and agents with one parameter for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from manyarms._base.typing import Array
from manyarms.agents import named as agents
from manyarms.beliefs import Linear
from manyarms.worlds import Images
from manyarms.worlds.image_files import ImageSet, read_images, write_made_up_images
from manyarms.worlds.images import Truth
from manyarms_thesis.dts.pretrained import SOURCES, pretrained
from manyarms_thesis.harness.data import MADE_UP, is_readable, made_up_folder


def source(data: str) -> str:
    """The data set's own name where it is found, else made-up pictures."""
    return data if is_readable(read_images, data) else MADE_UP


def write_pictures(folder: str, data: str) -> None:
    """Made-up pictures of twelve classes."""
    write_made_up_images(folder, cast(ImageSet, data), classes=12, each=60, seed=0)


def image_task(
    *, data: str, source: str, actions: int, dim: int, percent: float, truth: str, tasks: int, seed: int
) -> Images:
    """A task with fresh offers and rewards. Runs share `tasks` tasks (a class, and offline pictures), each prepared once."""
    folder = made_up_folder(write_pictures, data) if source == MADE_UP else None
    made = Images(
        actions, dim, data=cast(ImageSet, data), percent=percent, truth=cast(Truth, truth), folder=folder,
        seed=seed % tasks,
    )  # fmt: skip
    return made.replay(seed)


def image_estimates(size: int, seed: int, *, pictures: str, **task: Any) -> Array:
    """About `size` offline estimates of the parameters of other classes (thesis, Appendix B.6.4); whichever truth rewards
    follow, the estimates are the same."""
    world = image_task(data=pictures, truth="labels", seed=seed, **task)
    once = len(world.estimates(1))
    return world.estimates(max(1, -(-size // once)))


SOURCES["image-tasks"] = image_estimates


def image_dts(*, world: Images, rounds: int, seed: int, preparation: int, prior: Mapping[str, Any], tasks: int) -> Any:
    """dTS's joint variant with a pre-trained prior."""
    trained = pretrained(**prior, seed=preparation % tasks)
    return _joint(trained.prior(1, shared=True, first_covariance="schedule"), world, seed)


def image_hierts(*, world: Images, rounds: int, seed: int, preparation: int) -> Any:
    """Thompson sampling with the moments of the offline estimates."""
    return _joint(world.hierarchical_prior(), world, seed)


def image_lints(*, world: Images, rounds: int, seed: int, preparation: int) -> Any:
    """Thompson sampling without offline data."""
    return _joint(world.vague_prior(), world, seed)


def _joint(prior: Any, world: Images, seed: int) -> Any:
    return agents.jointTS(
        prior, world.actions, Linear(world.noise), feature_map=world.features, context_shape=(world.actions,),
        approximation="thesis", seed=seed,
    )  # fmt: skip


__all__ = ["image_dts", "image_estimates", "image_hierts", "image_lints", "image_task", "source"]
