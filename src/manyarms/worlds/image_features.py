"""Features of pictures: principal components of the pixels, or the last hidden layer of a small network.

Principal components know nothing of classes. A network that was trained to tell classes apart does: a linear function of its
last hidden layer says "this is a 7" far better. It may only see what an agent's offline data are, so its rows are chosen by the
caller: `train_network` never touches another picture.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Bools, Ints
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.worlds.image_files import LabelledImages

# pictures behind the principal components: more change nothing visible
PCA_PICTURES = 20_000
HIDDEN, STEPS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 128, 600, 128, 2e-3, 1e-3
PIXEL = 255.0
BLOCK = 8192


class Features:
    """Features of all pictures of a data set: a constant and d - 1 numbers of unit variance."""

    def __init__(self, pictures: LabelledImages, train: Array, test: Array) -> None:
        self.train, self.test = _with_constant(train), _with_constant(test)
        self.labels = pictures.train_classes
        self.classes = pictures.classes


def _with_constant(values: Array) -> Array:
    return np.concatenate([np.ones((len(values), 1)), values], axis=1)


# pictures are themselves shared, so that a process prepares each setting once
@lru_cache(maxsize=4)
def principal_components(pictures: LabelledImages, dim: int) -> Features:
    """The leading d - 1 principal components of the pixels, each with unit variance over the training set."""
    pixels = pictures.train.shape[1]
    if dim - 1 > min(pixels, len(pictures.train) - 1):
        raise InvalidInput("dim", dim, f"at most {min(pixels, len(pictures.train) - 1) + 1}")
    some = pictures.train
    if len(some) > PCA_PICTURES:
        some = some[np.random.default_rng(0).permutation(len(some))[:PCA_PICTURES]]
    centre = some.mean(axis=0, dtype=np.float64)
    values, vectors = np.linalg.eigh(np.cov(some.T.astype(np.float64)))
    # a direction in which all pictures are the same gets no weight rather than infinite weight
    scales = np.sqrt(np.maximum(values[-1:-dim:-1], values[-1] * 1e-12))
    axes = vectors[:, -1:-dim:-1] / scales

    def project(rows: npt.NDArray[np.uint8]) -> Array:
        out = np.empty((len(rows), dim - 1))
        for first in range(0, len(rows), BLOCK):
            block = slice(first, first + BLOCK)
            out[block] = (rows[block] - centre) @ axes
        return out

    return Features(pictures, project(pictures.train), project(pictures.test))


@dataclass(frozen=True, eq=False)
class PictureNetwork:
    """A trained network without its last layer: pixels -> ReLU -> tanh, (d - 1) numbers of about unit variance.

    arrays: weights and biases of both layers, the centre and scale of the pixels and of the last hidden layer.
    """

    arrays: Mapping[str, AnyArray]

    @property
    def dim(self) -> int:
        """d: the constant and the width of the last hidden layer."""
        return int(self.arrays["second"].shape[1]) + 1

    @property
    def pixels(self) -> int:
        """How many pixels a picture has."""
        return int(self.arrays["first"].shape[0])

    def __call__(self, rows: npt.NDArray[np.uint8]) -> Array:
        """(n, d - 1) features of pictures (n, pixels)."""
        out = np.empty((len(rows), self.dim - 1))
        for first in range(0, len(rows), BLOCK):
            block = slice(first, first + BLOCK)
            out[block] = (self._layers(rows[block]) - self.arrays["centre"]) / self.arrays["scale"]
        return out

    def _layers(self, rows: npt.NDArray[np.uint8]) -> Array:
        of = self.arrays
        x = (rows / PIXEL - of["pixel_centre"]) / of["pixel_scale"]
        hidden = np.maximum(x @ of["first"] + of["first_bias"], 0.0)
        return np.asarray(np.tanh(hidden @ of["second"] + of["second_bias"]))

    def features(self, pictures: LabelledImages) -> Features:
        """The features of a data set."""
        if pictures.train.shape[1] != self.pixels:
            raise InvalidInput("features", f"{self.pixels} pixels", f"a network for {pictures.train.shape[1]} pixels")
        return Features(pictures, self(pictures.train), self(pictures.test))


def train_network(
    pictures: LabelledImages, allowed: Bools, dim: int, seed: int = 0, *, steps: int = STEPS
) -> PictureNetwork:
    """A small network that tells the classes of the allowed training pictures apart; the same for the same seed.

    600 steps of Adam on batches of 128, about three seconds on one thread. Only rows of `allowed` are read, also for centring.
    """
    torch = _torch()
    dim, steps = validate.count("dim", dim, least=2), validate.count("steps", steps)
    allowed, seed = np.asarray(allowed), validate.seed(seed)
    if allowed.dtype != np.bool_ or allowed.shape != (len(pictures.train),):
        came = f"{allowed.dtype} of shape {allowed.shape}"
        raise InvalidInput("allowed", came, f"true or false for each of {len(pictures.train):,} training pictures")
    rows = np.flatnonzero(allowed)
    if not len(rows):
        raise InvalidInput("allowed", "no picture", "at least one picture to train on")
    x = pictures.train[rows] / PIXEL
    labels: Ints = np.unique(pictures.train_classes[rows], return_inverse=True)[1]
    centre, scale = x.mean(axis=0), float(x.std()) + 1e-6
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the same sums in the same order, whatever else runs
    try:
        generator = torch.Generator().manual_seed(seed % 2**63)
        inputs, wanted = torch.as_tensor((x - centre) / scale, dtype=torch.float32), torch.as_tensor(labels)
        widths = (x.shape[1], HIDDEN, dim - 1, int(labels.max()) + 1)
        layers = []
        for fan_in, fan_out in pairwise(widths):
            weight = torch.randn((fan_in, fan_out), generator=generator) * (2.0 / fan_in) ** 0.5
            layers.append((weight.requires_grad_(), torch.zeros(fan_out, requires_grad=True)))
        adam = torch.optim.Adam([p for layer in layers for p in layer], lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        for _ in range(steps):
            chosen = torch.randint(len(inputs), (BATCH,), generator=generator)
            hidden = torch.relu(inputs[chosen] @ layers[0][0] + layers[0][1])
            scores = torch.tanh(hidden @ layers[1][0] + layers[1][1]) @ layers[2][0] + layers[2][1]
            loss = torch.nn.functional.cross_entropy(scores, wanted[chosen])
            adam.zero_grad()
            loss.backward()
            adam.step()
    finally:
        torch.set_num_threads(threads)
    arrays = {"pixel_centre": centre, "pixel_scale": np.array(scale)}
    for (weight, bias), name in zip(layers, ("first", "second"), strict=False):
        arrays[name], arrays[f"{name}_bias"] = (p.detach().numpy().astype(np.float64) for p in (weight, bias))
    unscaled = PictureNetwork({**arrays, "centre": np.zeros(dim - 1), "scale": np.ones(dim - 1)})
    found = unscaled(pictures.train[rows])
    return PictureNetwork({**arrays, "centre": found.mean(axis=0), "scale": np.maximum(found.std(axis=0), 1e-3)})


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "torch", "training a network for features of pictures") from error
    return torch


__all__ = ["Features", "PictureNetwork", "principal_components", "train_network"]
