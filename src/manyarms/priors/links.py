"""Links of a diffusion chain: psi_(l-1) | psi_l ~ N(f_l(psi_l), Sigma_l).

    LinearLink(W)              f(psi) = W psi: the chain's posterior is exact where all links are of this kind
    NetworkLink(skip, layers)  f(psi) = skip psi + a small ReLU network: what pre-training gives, as plain matrix products
    FunctionLink(f)            anything else; cannot be saved

`as_link` takes arrays, functions and links alike. A function that turns out to be linear becomes a LinearLink, so that a
chain of linear links written as functions still gets the exact posterior.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self, cast

import numpy as np

from manyarms._base import validate
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput

LAYER = "matrix", "vector"  # what the two parts of a layer are called when they are saved


class Link(ABC):
    """What a chain needs of a link."""

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return LINKS.name_of(type(self))

    @abstractmethod
    def __call__(self, psi: Array) -> Array:
        """f at points (..., d)."""

    @abstractmethod
    def jacobian(self, psi: Array) -> Array:
        """(n, d, d): derivatives of f at points (n, d), rows by output."""

    @abstractmethod
    def arrays(self) -> dict[str, AnyArray]:
        """What is needed to build it again."""

    @classmethod
    @abstractmethod
    def restored(cls, arrays: dict[str, AnyArray]) -> Self:
        """The link that `arrays` describe."""


LINKS: Registry[type[Link]] = Registry("link", group="manyarms.links")


@LINKS.register("linear")
class LinearLink(Link):
    """f(psi) = W psi."""

    def __init__(self, matrix: Array) -> None:
        matrix = validate.as_array("matrix", matrix, (None, None))
        if matrix.shape[0] != matrix.shape[1]:
            raise InvalidInput("matrix", f"shape {matrix.shape}", "a square matrix")
        self.matrix = validate.owned(matrix)

    def __call__(self, psi: Array) -> Array:
        return psi @ self.matrix.T

    def jacobian(self, psi: Array) -> Array:
        return np.broadcast_to(self.matrix, (len(psi), *self.matrix.shape))

    def arrays(self) -> dict[str, AnyArray]:
        return {"matrix": self.matrix}

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray]) -> Self:
        return cls(arrays["matrix"])


@LINKS.register("network")
class NetworkLink(Link):
    """f(psi) = skip * psi + network(psi), the network a chain of affine maps with ReLU in between.

    layers: pairs (A, c) of a matrix (out, in) and a vector (out,).
    """

    def __init__(self, skip: float, layers: Sequence[tuple[Array, Array]]) -> None:
        self.skip = validate.number("skip", skip)
        self.layers = _layers(layers)
        width = self.layers[0][0].shape[1] if self.layers else 0
        for A, c in self.layers:
            if A.shape != (len(c), width):
                raise InvalidInput("layers", f"a matrix of {A.shape} with a vector of {c.shape}", f"{width} columns")
            width = len(c)
        if not self.layers or width != self.layers[0][0].shape[1]:
            raise InvalidInput("layers", f"{width} outputs", "as many outputs as inputs")
        self._transposed = tuple((np.ascontiguousarray(A.T), c) for A, c in self.layers)

    @classmethod
    def random(cls, dim: int, hidden: int, rng: np.random.Generator, *, scaled: bool = False) -> NetworkLink:
        """Two layers with weights uniform on [-1, 1] and no constants (thesis, Section 4.4.1); `scaled`: over sqrt(fan-in)."""
        dim, hidden = validate.count("dim", dim), validate.count("hidden", hidden)
        rng = validate.instance("rng", rng, np.random.Generator, "a numpy Generator")
        scaled = validate.flag("scaled", scaled)
        # two matrices, their copies and their transposes
        validate.room("hidden", hidden, 48 * dim, f"units for {dim:,} dimensions")
        A = rng.uniform(-1, 1, (hidden, dim)) / (np.sqrt(dim) if scaled else 1.0)
        B = rng.uniform(-1, 1, (dim, hidden)) / (np.sqrt(hidden) if scaled else 1.0)
        return cls(0.0, [(A, np.zeros(hidden)), (B, np.zeros(dim))])

    def __call__(self, psi: Array) -> Array:
        out = psi
        for i, (A, c) in enumerate(self._transposed):
            if i:
                out = np.maximum(out, 0.0)
            out = out @ A + c
        return out + self.skip * psi if self.skip else out

    def jacobian(self, psi: Array) -> Array:
        out, slope = psi, None
        for i, (A, c) in enumerate(self.layers):
            if i:
                slope = cast(Array, slope) * (out > 0)[:, :, None]
                out = np.maximum(out, 0.0)
            out = out @ A.T + c
            slope = np.broadcast_to(A, (len(psi), *A.shape)) if slope is None else A @ slope
        return cast(Array, slope) + self.skip * np.eye(psi.shape[1])

    def arrays(self) -> dict[str, AnyArray]:
        return {"skip": np.array(self.skip), **layer_arrays(self.layers)}

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray]) -> Self:
        return cls(float(arrays["skip"]), restored_layers(arrays, len(arrays) // 2))


def layer_arrays(layers: Sequence[tuple[Array, Array]]) -> dict[str, AnyArray]:
    """A network's layers (A, c) by name, as they are saved."""
    return {f"{kind}{i}": part for i, layer in enumerate(layers) for kind, part in zip(LAYER, layer, strict=True)}


def restored_layers(arrays: dict[str, AnyArray], count: int) -> tuple[tuple[AnyArray, AnyArray], ...]:
    """The layers that `layer_arrays` named."""
    return tuple((arrays[f"{LAYER[0]}{i}"], arrays[f"{LAYER[1]}{i}"]) for i in range(count))


@LINKS.register("function")
class FunctionLink(Link):
    """Any function of points (n, d), with derivatives by central differences unless they are given."""

    def __init__(self, function: Callable[[Array], Array], jacobian: Callable[[Array], Array] | None = None) -> None:
        if not callable(function):
            raise InvalidInput("function", validate.describe(function), "a function of points (n, d)")
        if jacobian is not None and not callable(jacobian):
            raise InvalidInput("jacobian", validate.describe(jacobian), "a function of points (n, d), or None")
        self.function = function
        self._jacobian = jacobian

    def __deepcopy__(self, memo: dict[int, object]) -> FunctionLink:
        return self  # the functions are the caller's, and may belong to what cannot be copied

    def __call__(self, psi: Array) -> Array:
        # the function gets points of its own, and what it returns is copied: it may write on both
        flat = np.array(psi.reshape(-1, psi.shape[-1]))
        return np.array(_checked(self.function(flat), flat.shape)).reshape(psi.shape)

    def jacobian(self, psi: Array) -> Array:
        n, d = psi.shape
        if self._jacobian is not None:
            return np.array(_checked(self._jacobian(np.array(psi)), (n, d, d), "jacobian"))
        step = 1e-5 * (1.0 + np.abs(psi))
        moves = step[:, None, :] * np.eye(d)
        up, down = self((psi[:, None, :] + moves).reshape(-1, d)), self((psi[:, None, :] - moves).reshape(-1, d))
        return np.swapaxes((up - down).reshape(n, d, d) / (2 * step[:, :, None]), 1, 2)

    def arrays(self) -> dict[str, AnyArray]:
        raise InvalidInput("links", "a plain function", "a LinearLink or a NetworkLink: functions cannot be saved")

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray]) -> Self:
        raise InvalidInput("links", "a plain function", "a LinearLink or a NetworkLink: functions cannot be saved")


LinkLike = Link | Array | Callable[[Array], Array]


def as_link(name: str, value: LinkLike, dim: int) -> Link:
    """A link of dimension d from a matrix, a function of points (n, d), or a link."""
    if not isinstance(value, Link) and not callable(value):
        return LinearLink(validate.as_array(name, value, (dim, dim)))
    link = value if isinstance(value, Link) else FunctionLink(value)
    probes = np.random.default_rng(0).standard_normal((4, dim))
    try:
        out = link(probes)
    except Exception as error:  # somebody else's function, which may fail in any way
        raise InvalidInput(
            name,
            f"a link that fails on points of shape (4, {dim}): {error}",
            "a link that maps points (n, d) to (n, d)",
        ) from error
    _checked(out, probes.shape, name)
    return _linear_if_it_is(link, dim) if isinstance(link, FunctionLink) else link


def _checked(out: object, shape: tuple[int, ...], name: str = "links") -> Array:
    """What a function of the user's returned at points (n, d)."""
    array = validate.as_floats(name, cast(Array, out), "a function that returns numbers and no NaN")
    if array.shape != shape:
        raise InvalidInput(name, f"a function that returns shape {array.shape}", f"shape {shape} for those points")
    return array


def _layers(layers: object) -> tuple[tuple[Array, Array], ...]:
    """The pairs (A, c) of a network, kept as arrays of its own."""
    out = []
    for layer in layers if isinstance(layers, list | tuple) else [layers]:
        if not isinstance(layer, list | tuple) or len(layer) != 2:
            raise InvalidInput("layers", validate.describe(layers), "a list of pairs, a matrix and a vector each")
        A, c = validate.as_array("layers", layer[0], (None, None)), validate.as_array("layers", layer[1], (None,))
        out.append((validate.owned(A), validate.owned(c)))
    return tuple(out)


def _linear_if_it_is(link: FunctionLink, dim: int) -> Link:
    """A LinearLink where the function equals its own matrix, f(e_1), ..., f(e_d), at points near and far, of both signs."""
    matrix = link(np.eye(dim)).T
    rng = np.random.default_rng(1)
    points = rng.standard_normal((64, dim)) * np.geomspace(1e-3, 1e3, 64)[:, None]
    points = np.vstack([points, -points, np.zeros((1, dim))])
    try:
        values = link(points)
    except InvalidInput:
        return link
    scale = np.abs(points).sum(axis=1, keepdims=True) * max(1e-300, float(np.abs(matrix).max()))
    return LinearLink(matrix) if bool((np.abs(values - points @ matrix.T) <= 1e-9 * scale).all()) else link


__all__ = ["LINKS", "FunctionLink", "LinearLink", "Link", "LinkLike", "NetworkLink", "as_link"]
