"""The network that predicts noise, and its training: the one part of pre-training that needs PyTorch.

A point z_0 in standardised units is noised over steps l = 1, ..., L to z_l = sqrt(abar_l) z_0 + sqrt(1 - abar_l) eps, with
eps ~ N(0, I), and the network is asked for eps (thesis, Appendix B.6.2):

    eps(z, l) = sqrt(1 - abar_l) z + sqrt(abar_l) N(z, l),    N(z, l) = A_m relu(... relu(A_1 z + c_1 + e_l) ...) + c_m
    loss      = mean over rows, steps and coordinates of (eps - eps(z_l, l))^2

The step enters the first layer alone, as a vector e_l = M phi(l / L) of sines and cosines of the step. So for each l the
network is a plain chain of affine maps and ReLUs, which needs no PyTorch once it is trained.

The first term is the best guess where z_0 is N(0, I). Since E[eps | z_l] = (z_l - sqrt(abar_l) E[z_0 | z_l]) / sqrt(1 - abar_l),
the best N is (sqrt(abar_l) z - E[z_0 | z_l = z]) / sqrt(1 - abar_l): of size one also where hardly anything is left of z_0, and
an error there does no harm. A_m and c_m start at zero, so that training starts from the Gaussian with the data's own mean and
covariance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from manyarms._base.devices import usable_device
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput

Progress = Callable[[int, int, float, float], None]
Layer = tuple[Array, Array]

FREQUENCIES = (1, 2, 4, 8)
# noised rows that a check compares at least, the same ones every time
HELD_OUT_PAIRS = 4096
# the learning rate falls along a cosine to this part of itself
LAST_RATE = 0.01


@dataclass(frozen=True)
class Recipe:
    """How to train: `widths` of the hidden layers, `steps` of the optimiser, a look at the held-out rows every `every` steps."""

    widths: tuple[int, ...]
    steps: int
    batch: int
    learning_rate: float
    every: int
    patience: int
    seed: int
    device: str


@dataclass(frozen=True)
class Trained:
    """A trained network as plain arrays, and the losses on the way: rows (optimiser step, training loss, held-out loss)."""

    layers: tuple[Layer, ...]
    steps: Array  # (L, h): e_1, ..., e_L
    losses: Array


class Denoiser:
    """eps(z, l) on tensors; levels are counted from 0 here."""

    def __init__(
        self, alpha_bars: Array, layers: tuple[Layer, ...], features: Array, mixing: Array, place: torch.Tensor
    ) -> None:
        def put(array: Array) -> torch.Tensor:  # with the number type and on the device of `place`
            return torch.as_tensor(array, dtype=place.dtype, device=place.device)

        self.signal_scale, self.noise_scale = put(np.sqrt(alpha_bars)), put(np.sqrt(1 - alpha_bars))
        self.features = put(features)
        self.mixing = put(mixing).requires_grad_()
        self.layers = [(put(A).requires_grad_(), put(c).requires_grad_()) for A, c in layers]

    @property
    def parameters(self) -> list[torch.Tensor]:
        """All that is trained."""
        return [self.mixing, *(part for layer in self.layers for part in layer)]

    def __call__(self, z: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """The noise that it sees in z_l, (n, d)."""
        (A, c), *rest = self.layers
        out = z @ A.T + c + (self.features @ self.mixing)[level]
        for A, c in rest:
            out = out.relu() @ A.T + c
        return self.signal_scale[level, None] * out + self.noise_scale[level, None] * z

    def loss(self, z: torch.Tensor, level: torch.Tensor, eps: torch.Tensor) -> torch.Tensor:
        """Mean squared error of the noise seen in rows z_0 noised with eps."""
        noised = self.signal_scale[level, None] * z + self.noise_scale[level, None] * eps
        return (self(noised, level) - eps).square().mean()


def step_features(depth: int) -> Array:
    """phi(l / L) for l = 1, ..., L: the step itself, and sines and cosines of it, (L, 9)."""
    s = np.arange(1, depth + 1)[:, None] / depth
    waves = np.pi * s * np.array(FREQUENCIES)
    return np.hstack([s, np.sin(waves), np.cos(waves)])


def fresh(alpha_bars: Array, dim: int, widths: tuple[int, ...], seed: int, place: torch.Tensor) -> Denoiser:
    """An untrained network: random hidden layers, a last one of zeros."""
    rng = np.random.default_rng(seed)
    features = step_features(len(alpha_bars))
    sizes = [dim, *widths, dim]
    layers = []
    for i, (fan_in, out) in enumerate(pairwise(sizes)):
        last = i == len(widths)
        matrix = np.zeros((out, fan_in)) if last else rng.standard_normal((out, fan_in)) * math.sqrt(2 / fan_in)
        # kinks spread over where the data are, two standard deviations to each side
        vector = rng.uniform(-2, 2, out) if i == 0 else np.zeros(out)
        layers.append((matrix, vector))
    mixing = rng.standard_normal((features.shape[1], widths[0])) / math.sqrt(features.shape[1])
    return Denoiser(alpha_bars, tuple(layers), features, mixing, place)


@contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch on one thread: products this small gain nothing from more, and lose much where other work has the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def train(rows: Array, held_out: Array, alpha_bars: Array, recipe: Recipe, progress: Progress | None = None) -> Trained:
    """Train on standardised rows (n, d); keep the weights that were best on the held-out rows, or the last where there are none.

    Every optimiser step takes `batch` random rows, each with noise of its own and, in turn, with every step l of the chain.
    Training ends when `patience` checks in a row have brought nothing better.
    """
    device = usable_device(recipe.device)
    place = torch.empty(0, dtype=torch.float32, device=device)
    data = torch.as_tensor(rows, dtype=place.dtype, device=device)
    network = fresh(alpha_bars, rows.shape[1], recipe.widths, recipe.seed, place)
    generator = torch.Generator(device).manual_seed(recipe.seed % 2**64)  # it takes no longer ones
    check = _check(network, held_out, generator, place)
    adam = torch.optim.Adam(network.parameters, lr=recipe.learning_rate, fused=True)
    depth, order = len(alpha_bars), torch.arange(recipe.batch, device=device)
    first = check()
    losses, best, since = [(0.0, math.nan, first)], first, 0
    best_weights = [part.detach().clone() for part in network.parameters]
    total = torch.zeros((), device=device)
    for step in range(1, recipe.steps + 1):
        fall = (1 + math.cos(math.pi * (step - 1) / recipe.steps)) / 2
        adam.param_groups[0]["lr"] = recipe.learning_rate * (LAST_RATE + (1 - LAST_RATE) * fall)
        chosen = torch.randint(len(data), (recipe.batch,), generator=generator, device=device)
        level = (order + torch.randint(depth, (1,), generator=generator, device=device)) % depth
        eps = torch.randn((recipe.batch, data.shape[1]), generator=generator, device=device, dtype=place.dtype)
        loss = network.loss(data[chosen], level, eps)
        adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        total += loss.detach()
        if step % recipe.every and step < recipe.steps:
            continue
        now, trained = check(), float(total) / (step - int(losses[-1][0]))
        total.zero_()
        if not math.isfinite(trained):
            raise InvalidInput("learning_rate", recipe.learning_rate, "a smaller one: the loss is no longer a number")
        losses.append((float(step), trained, now))
        if progress is not None:
            progress(step, recipe.steps, trained, now)
        since += 1
        if not now >= best:  # without held-out rows every check is the best so far
            best, since = now, 0
            best_weights = [part.detach().clone() for part in network.parameters]
        elif since >= recipe.patience:
            break
    mixing, *parts = (part.to("cpu", torch.float64).numpy() for part in best_weights)
    layers = tuple(zip(parts[::2], parts[1::2], strict=True))
    return Trained(layers, step_features(depth) @ mixing, np.array(losses))


def _check(network: Denoiser, held_out: Array, generator: torch.Generator, place: torch.Tensor) -> Callable[[], float]:
    """The loss on the held-out rows, with noise drawn once; NaN where there are none."""
    if not len(held_out):
        return lambda: math.nan
    repeats = -(-HELD_OUT_PAIRS // len(held_out))
    z = torch.as_tensor(np.tile(held_out, (repeats, 1)), dtype=place.dtype, device=place.device)
    depth = len(network.signal_scale)
    level = torch.randint(depth, (len(z),), generator=generator, device=place.device)
    eps = torch.randn(z.shape, generator=generator, device=place.device, dtype=place.dtype)

    def check() -> float:
        with torch.no_grad():
            return float(network.loss(z, level, eps))

    return check


__all__ = ["Denoiser", "Recipe", "Trained", "fresh", "step_features", "train"]
