"""Encoders: what a policy makes of a context before it is compared with actions, in NumPy alone.

    Projection    x -> W^T x                               the lightweight scores phi0(x)^T W beta_a (thesis, lines 5448-5452)
    Layers        x -> B_L + s(... s(B_1 + x W_1) ...) W_L    a network with one activation s between its layers

A learned encoder is kept as these arrays, so that a policy decides where no learning library is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import erf, expit

from manyarms._base import storage, validate
from manyarms._base.typing import AnyArray
from manyarms.errors import InvalidInput, StorageError


@runtime_checkable
class Encoder(Protocol):
    """A map of contexts (n, d) to vectors (n, l)."""

    kind: ClassVar[str]

    @property
    def dim(self) -> int:
        """d, the length of a context."""

    @property
    def width(self) -> int:
        """l, the length of its encoding."""

    def encode(self, X: AnyArray) -> AnyArray:
        """(n, l), in the encoder's own precision."""

    def spec(self) -> dict[str, storage.JSON]:
        """What is saved in words and numbers, beside `kind`."""

    def arrays(self) -> dict[str, AnyArray]:
        """What is saved in arrays."""


def _gelu(z: AnyArray) -> AnyArray:
    return np.asarray(0.5 * z * (1.0 + erf(z / np.sqrt(z.dtype.type(2)))), dtype=z.dtype)


CHECKED = 1 << 22  # numbers that are checked at once

ACTIVATIONS: dict[str, Callable[[AnyArray], AnyArray]] = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "gelu": _gelu,
    "sigmoid": lambda z: np.asarray(expit(z)),
    "silu": lambda z: z * expit(z),
    "identity": lambda z: z,
}


def kept_precision(name: str, value: npt.ArrayLike, shape: tuple[int | None, ...]) -> AnyArray:
    """A checked array in float64, or in float32 where it came so: half the memory and time for six digits."""
    given: AnyArray = np.asarray(value)
    if given.dtype != np.float32 or given.ndim != len(shape):
        return validate.as_array(name, given, shape)
    step = max(1, CHECKED // max(1, given[:1].size))
    for start in range(
        0, max(1, len(given)), step
    ):  # in parts: float64 copies of large tables would be the most that is held
        part = given[start : start + step]
        if not np.isfinite(part).all():
            row = start + int(np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(axis=1))[0])
            raise InvalidInput(name, f"a number that is not finite in row {row}", "an array of finite numbers")
    validate.as_array(name, np.broadcast_to(np.float64(0), given.shape), shape)
    return given


class Projection:
    """x -> W^T x for a matrix W (d, l)."""

    kind: ClassVar[str] = "projection"

    def __init__(self, W: npt.ArrayLike) -> None:
        self.W = kept_precision("W", W, (None, None))

    def __repr__(self) -> str:
        return f"Projection({self.dim} -> {self.width})"

    @property
    def dim(self) -> int:
        """d."""
        return int(self.W.shape[0])

    @property
    def width(self) -> int:
        """l."""
        return int(self.W.shape[1])

    def encode(self, X: AnyArray) -> AnyArray:
        """X W."""
        return np.asarray(X, dtype=self.W.dtype) @ self.W

    def spec(self) -> dict[str, storage.JSON]:
        """Nothing beside the matrix."""
        return {}

    def arrays(self) -> dict[str, AnyArray]:
        """W."""
        return {"W": self.W}


class Layers:
    """A network of several layers: weights (in, out) and biases (out,) of each, and an activation between them.

    The last layer is linear. activation: "relu", "tanh", "gelu" (with the error function), "sigmoid", "silu", "identity".
    """

    kind: ClassVar[str] = "layers"

    def __init__(
        self, weights: Sequence[npt.ArrayLike], biases: Sequence[npt.ArrayLike], activation: str = "relu"
    ) -> None:
        if not len(weights) or len(weights) != len(biases):
            raise InvalidInput("biases", f"{len(biases)} for {len(weights)} layers", "one for each layer, at least one")
        if activation not in ACTIVATIONS:
            raise InvalidInput("activation", repr(activation), f"one of {', '.join(ACTIVATIONS)}")
        self.activation = activation
        self.weights: list[AnyArray] = []
        self.biases: list[AnyArray] = []
        before: int | None = None
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            matrix = kept_precision(f"weights[{layer}]", weight, (before, None))
            before = int(matrix.shape[1])
            self.weights.append(matrix)
            self.biases.append(kept_precision(f"biases[{layer}]", bias, (before,)))
        self._precision = np.result_type(*self.weights, *self.biases)

    def __repr__(self) -> str:
        sizes = " -> ".join(str(size) for size in [self.dim, *(len(bias) for bias in self.biases)])
        return f"Layers({sizes}, activation={self.activation!r})"

    @property
    def dim(self) -> int:
        """d."""
        return int(self.weights[0].shape[0])

    @property
    def width(self) -> int:
        """l."""
        return int(self.weights[-1].shape[1])

    def encode(self, X: AnyArray) -> AnyArray:
        """The network's output, (n, l)."""
        act = ACTIVATIONS[self.activation]
        h = np.asarray(X, dtype=self._precision)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = (act(h) if layer else h) @ weight + bias
        return h

    def spec(self) -> dict[str, storage.JSON]:
        """How many layers, and the activation."""
        return {"layers": len(self.weights), "activation": self.activation}

    def arrays(self) -> dict[str, AnyArray]:
        """Weights and biases by layer."""
        named = {f"weight-{layer}": weight for layer, weight in enumerate(self.weights)}
        return named | {f"bias-{layer}": bias for layer, bias in enumerate(self.biases)}


def fitting(encoder: Encoder | None, width: int, what: str) -> int:
    """d, the length of the contexts, once it is known that encodings are as long as the vectors they meet."""
    if encoder is None:
        return width
    if not isinstance(encoder, Encoder):
        raise InvalidInput("encoder", validate.describe(encoder), "an encoder, such as Projection or Layers")
    if encoder.width != width:
        raise InvalidInput("encoder", f"encodings of length {encoder.width}", f"length {width}, as {what} have")
    return encoder.dim


def written(encoder: Encoder | None) -> tuple[dict[str, storage.JSON], dict[str, AnyArray]]:
    """What a policy saves of its encoder: a part of its spec and arrays under "encoder/"."""
    if encoder is None:
        return {}, {}
    arrays = {f"encoder/{name}": array for name, array in encoder.arrays().items()}
    return {"encoder": {"type": encoder.kind, **encoder.spec()}}, arrays


def restored(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Encoder | None:
    """The encoder that `written` put into a policy's spec and arrays."""
    inner = spec.get("encoder")
    if inner is None:
        return None
    if inner["type"] == Projection.kind:
        return Projection(arrays["encoder/W"])
    if inner["type"] == Layers.kind:
        layers = range(inner["layers"])
        weights = [arrays[f"encoder/weight-{layer}"] for layer in layers]
        return Layers(weights, [arrays[f"encoder/bias-{layer}"] for layer in layers], inner["activation"])
    raise StorageError(f"unknown type of encoder {inner['type']!r}")


__all__ = ["ACTIVATIONS", "Encoder", "Layers", "Projection", "fitting", "kept_precision", "restored", "written"]
