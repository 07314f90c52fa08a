"""Encoders: what a policy makes of a context before it is compared with actions, in NumPy alone.

    Projection    x -> W^T x                               the lightweight scores phi0(x)^T W beta_a (thesis, Appendix D.4.1)
    Layers        x -> B_L + s(... s(B_1 + x W_1) ...) W_L    a network with one activation s between its layers

A learned encoder is kept as these arrays, so that a policy decides where no learning library is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy.special import erf, expit

from manyarms._base import storage, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.private import kept
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Spec, loose
from manyarms.errors import InvalidInput


@runtime_checkable
class ContextEncoder(Protocol):
    """A map of contexts (n, d) to vectors (n, l)."""

    @property
    def dim(self) -> int:
        """d, the length of a context."""

    @property
    def width(self) -> int:
        """l, the length of its encoding."""

    def encode(self, X: AnyArray) -> AnyArray:
        """(n, l), in the encoder's own precision."""

    def spec(self) -> Spec:
        """What is saved in words and numbers, beside its kind."""

    def arrays(self) -> dict[str, AnyArray]:
        """What is saved in arrays."""


class SavedEncoder(ContextEncoder, Protocol):
    """An encoder that can be restored from what was saved of it."""

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> SavedEncoder:
        """The encoder that `spec` and `arrays` describe."""


ENCODERS: Registry[type[SavedEncoder]] = Registry("encoder", package="manyarms.policies", group="manyarms.encoders")


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


def float_array(name: str, value: npt.ArrayLike, shape: tuple[int | None, ...]) -> AnyArray:
    """A checked array of one's own in float64, or in float32 where it came so: half the memory and time for six digits."""
    own_type = hasattr(value, "__array__") and not np.ma.isMaskedArray(value)
    given: AnyArray = np.asarray(value) if own_type else np.empty(())
    if given.dtype != np.float32 or given.ndim != len(shape):
        return kept(validate.as_array(name, value, shape), value)
    step = max(1, CHECKED // max(1, given[:1].size))
    # in parts: float64 copies of large tables would be the largest arrays of all
    for start in range(0, max(1, len(given)), step):
        if not np.isfinite(given[start : start + step]).all():
            validate.as_floats(name, given)  # which says where
    validate.as_array(name, np.broadcast_to(np.float64(0), given.shape), shape)
    return kept(given, value)


@ENCODERS.register("projection")
class Projection:
    """x -> W^T x for a matrix W (d, l)."""

    def __init__(self, W: npt.ArrayLike) -> None:
        self.W = float_array("W", W, (None, None))
        self.dim, self.width = self.W.shape

    def __repr__(self) -> str:
        return f"Projection({self.dim} -> {self.width})"

    def encode(self, X: AnyArray) -> AnyArray:
        """X W."""
        return np.asarray(X, dtype=self.W.dtype) @ self.W

    def spec(self) -> Spec:
        """Nothing beside the matrix."""
        return {}

    def arrays(self) -> dict[str, AnyArray]:
        """W."""
        return {"W": self.W}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Projection:
        return cls(arrays["W"])


@ENCODERS.register("layers")
class Layers:
    """A network of several layers: weights (in, out) and biases (out,) of each, and an activation between them.

    The last layer is linear. activation: "relu", "tanh", "gelu" (with the error function), "sigmoid", "silu", "identity".
    """

    def __init__(
        self, weights: Sequence[npt.ArrayLike], biases: Sequence[npt.ArrayLike], activation: str = "relu"
    ) -> None:
        for name, given in (("weights", weights), ("biases", biases)):
            if not isinstance(given, Sequence | np.ndarray) or isinstance(given, str | bytes):
                raise InvalidInput(name, validate.describe(given), "a list with an array for each layer")
        if not len(weights) or len(weights) != len(biases):
            raise InvalidInput("biases", f"{len(biases)} for {len(weights)} layers", "one for each layer, at least one")
        self.activation = validate.one_of("activation", activation, tuple(ACTIVATIONS))
        self.weights: list[AnyArray] = []
        self.biases: list[AnyArray] = []
        before: int | None = None
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            matrix = float_array(f"weights[{layer}]", weight, (before, None))
            before = int(matrix.shape[1])
            self.weights.append(matrix)
            self.biases.append(float_array(f"biases[{layer}]", bias, (before,)))
        self.dim, self.width = len(self.weights[0]), len(self.biases[-1])
        self._precision = np.result_type(*self.weights, *self.biases)

    def __repr__(self) -> str:
        sizes = " -> ".join(str(size) for size in [self.dim, *(len(bias) for bias in self.biases)])
        return f"Layers({sizes}, activation={self.activation!r})"

    def encode(self, X: AnyArray) -> AnyArray:
        """The network's output, (n, l)."""
        act = ACTIVATIONS[self.activation]
        h = np.asarray(X, dtype=self._precision)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = (act(h) if layer else h) @ weight + bias
        return h

    def spec(self) -> Spec:
        """How many layers, and the activation."""
        return {"layers": len(self.weights), "activation": self.activation}

    def arrays(self) -> dict[str, AnyArray]:
        """Weights and biases by layer."""
        named = {f"weight-{layer}": weight for layer, weight in enumerate(self.weights)}
        return named | {f"bias-{layer}": bias for layer, bias in enumerate(self.biases)}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Layers:
        told = loose(spec)
        layers = range(told["layers"])
        weights = [arrays[f"weight-{layer}"] for layer in layers]
        return cls(weights, [arrays[f"bias-{layer}"] for layer in layers], told["activation"])


def fitting(encoder: ContextEncoder | None, width: int, what: str) -> int:
    """d, the length of the contexts, once it is known that encodings are as long as the vectors they meet."""
    if encoder is None:
        return width
    if not isinstance(encoder, ContextEncoder):
        raise InvalidInput("encoder", validate.describe(encoder), "an encoder, such as Projection or Layers")
    if encoder.width != width:
        raise InvalidInput("encoder", f"encodings of length {encoder.width}", f"length {width}, as {what} have")
    return encoder.dim


def saved_encoder(encoder: ContextEncoder | None) -> tuple[dict[str, storage.JSON], dict[str, AnyArray]]:
    """What a policy saves of its encoder: a part of its spec and arrays under "encoder/"."""
    if encoder is None:
        return {}, {}
    spec = {**encoder.spec(), "type": ENCODERS.name_of(cast("type[SavedEncoder]", type(encoder)))}
    return {"encoder": spec}, prefixed("encoder/", encoder.arrays())


def restored_encoder(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> ContextEncoder | None:
    """The encoder that `saved_encoder` put into a policy's spec and arrays."""
    told = loose(spec)
    inner = told.get("encoder")
    return None if inner is None else ENCODERS[inner["type"]].restored(inner, under("encoder/", arrays))


__all__ = [
    "ACTIVATIONS",
    "ENCODERS",
    "ContextEncoder",
    "Layers",
    "Projection",
    "fitting",
    "float_array",
    "restored_encoder",
    "saved_encoder",
]
