"""Encoders between NumPy, where they are used, and PyTorch, where they are trained."""

from __future__ import annotations

import copy
from typing import ClassVar

import numpy as np
import torch

from manyarms._base import validate
from manyarms._base.nested import under
from manyarms._base.typing import AnyArray, Array, Spec
from manyarms.errors import InvalidInput
from manyarms.policies.encoders import ContextEncoder, Layers, Projection

ACTIVATIONS: dict[str, type[torch.nn.Module]] = {
    "relu": torch.nn.ReLU,
    "tanh": torch.nn.Tanh,
    "gelu": torch.nn.GELU,
    "sigmoid": torch.nn.Sigmoid,
    "silu": torch.nn.SiLU,
    "identity": torch.nn.Identity,
}


class TorchEncoder:
    """Any PyTorch module from contexts (n, d) to features (n, l), as an encoder of a policy.

    A chain of linear layers with one kind of activation between them is turned into plain arrays once it is learned, so that the
    policy can be saved and needs no PyTorch any more; any other module works in memory, and cannot be saved.
    """

    kind: ClassVar[str] = "torch"

    def __init__(self, module: torch.nn.Module, dim: int, width: int) -> None:
        self.module = validate.instance("module", module, torch.nn.Module, "a module of PyTorch")
        self.dim, self.width = validate.count("dim", dim), validate.count("width", width)

    def encode(self, X: AnyArray) -> AnyArray:
        """Features of contexts."""
        first = next(self.module.parameters(), None)
        with torch.no_grad():
            x = torch.tensor(X, dtype=torch.float32, device=None if first is None else first.device)
            return np.asarray(self.module(x).cpu().numpy(), dtype=np.asarray(X).dtype)

    def spec(self) -> Spec:
        """Refused: the code of a module cannot be saved without running code when it is read."""
        raise InvalidInput(
            "encoder",
            f"a {type(self.module).__name__}",
            "a chain of torch.nn.Linear with one kind of activation between, to be saved",
        )

    def arrays(self) -> dict[str, AnyArray]:
        """Refused, as `spec`."""
        self.spec()
        return {}


def to_torch(encoder: ContextEncoder) -> torch.nn.Module:
    """A module of its own for training; what was given stays as it is."""
    if isinstance(encoder, TorchEncoder):
        return copy.deepcopy(encoder.module).train()
    if isinstance(encoder, Projection):
        return _linear(encoder.W, None)
    if isinstance(encoder, Layers):
        parts: list[torch.nn.Module] = []
        for weights, bias in zip(encoder.weights, encoder.biases, strict=True):
            parts += [_linear(weights, bias), ACTIVATIONS[encoder.activation]()]
        return torch.nn.Sequential(*parts[:-1])
    raise InvalidInput("encoder", type(encoder).__name__, "a Projection, Layers or a TorchEncoder")


def from_torch(start: ContextEncoder, module: torch.nn.Module, parameters: dict[str, AnyArray]) -> ContextEncoder:
    """The encoder of trained parameters: plain arrays wherever the module is plain enough."""
    state = under("encoder/", parameters)
    if isinstance(start, Projection):
        return Projection(state["weight"].T)
    layers = _chain(module)
    if layers is not None:
        names, activation = layers
        return Layers(
            [state[f"{name}weight"].T for name in names],
            [state.get(f"{name}bias", np.zeros(len(state[f"{name}weight"]), dtype=np.float32)) for name in names],
            activation,
        )
    assert isinstance(start, TorchEncoder)
    filled = copy.deepcopy(module).cpu()
    filled.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
    return TorchEncoder(filled.eval(), start.dim, start.width)


def _linear(weights: Array, bias: Array | None) -> torch.nn.Linear:
    start = torch.as_tensor(np.asarray(weights).T.copy())
    layer = torch.nn.Linear(weights.shape[0], weights.shape[1], bias=bias is not None, dtype=start.dtype)
    with torch.no_grad():
        layer.weight.copy_(start)
        if bias is not None:
            layer.bias.copy_(torch.tensor(np.asarray(bias)))
    return layer


def _chain(module: torch.nn.Module) -> tuple[list[str], str] | None:
    """Names of the linear layers and the activation between them, where the module is such a chain."""
    if isinstance(module, torch.nn.Linear):
        return [""], "relu"
    if not isinstance(module, torch.nn.Sequential):
        return None
    parts = list(module)
    activations = {_activation(part) for part in parts[1::2]} or {"relu"}
    activation = activations.pop()
    linear = all(isinstance(part, torch.nn.Linear) for part in parts[::2])
    if len(parts) % 2 == 0 or not linear or activations or activation is None:
        return None
    return [f"{place}." for place in range(0, len(parts), 2)], activation


def _activation(part: torch.nn.Module) -> str | None:
    if getattr(part, "approximate", "none") != "none":  # of a GELU
        return None
    return next((name for name, kind in ACTIVATIONS.items() if type(part) is kind), None)


__all__ = ["TorchEncoder", "from_torch", "to_torch"]
