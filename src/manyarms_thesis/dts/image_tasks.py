"""Picture tasks for the experiment on images: real pictures or made-up ones, and agents with one parameter for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np

from manyarms import __version__
from manyarms._base.files import write_atomically
from manyarms._base.seeds import digest
from manyarms._base.typing import Array
from manyarms.agents import named as agents
from manyarms.beliefs import Linear
from manyarms.worlds import Images
from manyarms.worlds.image_features import PictureNetwork, train_network
from manyarms.worlds.image_files import ImageSet, read_images, write_made_up_images
from manyarms.worlds.images import Truth
from manyarms_thesis.dts.pretrained import SOURCES, cache_folder, only_one, pretrained
from manyarms_thesis.harness.data import MADE_UP, is_readable, made_up_folder


def source(data: str) -> str:
    """The data set's own name where it is found, else made-up pictures."""
    return data if is_readable(read_images, data) else MADE_UP


def write_pictures(folder: str, data: str) -> None:
    """Made-up pictures of twelve classes."""
    write_made_up_images(folder, cast(ImageSet, data), classes=12, each=60, seed=0)


def image_task(
    *,
    data: str,
    source: str,
    actions: int,
    dim: int,
    percent: float,
    truth: str,
    tasks: int,
    seed: int,
    features: str = "pca",
) -> Images:
    """A task with fresh offers and rewards. Runs share `tasks` tasks (a class, and offline pictures), each prepared once."""
    return _task(data, source, actions, dim, float(percent), truth, features, seed % tasks).replay(seed)


@lru_cache(maxsize=4)
def _task(
    data: str, source: str, actions: int, dim: int, percent: float, truth: str, features: str, number: int
) -> Images:
    folder = made_up_folder(write_pictures, data) if source == MADE_UP else None
    told: dict[str, Any] = {
        "data": data,
        "percent": percent,
        "truth": cast(Truth, truth),
        "folder": folder,
        "seed": number,
    }
    plain = Images(actions, dim, **told)
    if features == "pca":
        return plain
    network = _trained(plain, read_images(cast(ImageSet, data), folder), [data, source, dim, percent, number], number)
    return Images(actions, dim, **told, features=network)


def _trained(world: Images, pictures: Any, what: list[Any], seed: int) -> PictureNetwork:
    """The network of a task, trained on its offline pictures alone: by the first process that needs it, then from the cache."""
    key = digest(["picture network", __version__, *what, world.provenance])[:24]
    path = cache_folder() / f"pictures-{what[0]}-{key}.npz"
    with only_one(path):
        try:
            return _read(path)
        except (OSError, ValueError, KeyError, EOFError):  # not there, or damaged
            pass
        made = train_network(pictures, world.offline, world.dim, seed)
        write_atomically(path, lambda stream: np.savez(stream, **made.arrays))  # type: ignore[arg-type]
        return made


def _read(path: Path) -> PictureNetwork:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        found = PictureNetwork({name: archive[name] for name in archive.files})
    if found.dim < 2 or found.pixels < 1:
        raise ValueError(path.name)
    return found


def image_estimates(size: int, seed: int, *, pictures: str, **task: Any) -> Array:
    """About `size` offline estimates of the parameters of other classes (thesis, Appendix B.6.4); whichever truth rewards
    follow, the estimates are the same."""
    world = image_task(data=pictures, truth="labels", seed=seed, **task)
    once = len(world.estimates(1))
    return world.estimates(max(1, -(-size // once)))


SOURCES["image-tasks"] = image_estimates


def image_dts(
    *,
    world: Images,
    rounds: int,
    seed: int,
    preparation: int,
    prior: Mapping[str, Any],
    tasks: int,
    approximation: str = "thesis",
) -> Any:
    """dTS's joint variant with a pre-trained prior."""
    trained = pretrained(**prior, seed=preparation % tasks)
    return _joint(trained.prior(1, shared=True, first_covariance="schedule"), world, seed, approximation)


def image_hierts(*, world: Images, rounds: int, seed: int, preparation: int) -> Any:
    """Thompson sampling with the moments of the offline estimates."""
    return _joint(world.hierarchical_prior(), world, seed)


def image_vague_hierts(*, world: Images, rounds: int, seed: int, preparation: int) -> Any:
    """Thompson sampling with a hierarchy that was fitted to nothing."""
    return _joint(world.vague_hierarchy(), world, seed)


def image_lints(*, world: Images, rounds: int, seed: int, preparation: int) -> Any:
    """Thompson sampling without offline data."""
    return _joint(world.vague_prior(), world, seed)


def _joint(prior: Any, world: Images, seed: int, approximation: str = "thesis") -> Any:
    return agents.jointTS(
        prior, world.actions, Linear(world.noise), feature_map=world.features, context_shape=(world.actions,),
        approximation=approximation, seed=seed,
    )  # fmt: skip


__all__ = ["image_dts", "image_estimates", "image_hierts", "image_lints", "image_task", "image_vague_hierts", "source"]
