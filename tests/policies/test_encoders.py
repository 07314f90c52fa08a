"""Encoders in NumPy against the same networks in torch, and by hand; and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from manyarms.errors import InvalidInput
from manyarms.policies.encoders import ACTIVATIONS, ContextEncoder, Layers, Projection, restored_encoder, saved_encoder

TORCH = {
    "relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "gelu": torch.nn.GELU, "sigmoid": torch.nn.Sigmoid,
    "silu": torch.nn.SiLU, "identity": torch.nn.Identity,
}  # fmt: skip


def test_a_projection_is_a_product(rng):
    W, X = rng.standard_normal((3, 5)), rng.standard_normal((4, 3))
    encoder = Projection(W)
    assert isinstance(encoder, ContextEncoder)
    assert (encoder.dim, encoder.width) == (3, 5)
    np.testing.assert_allclose(encoder.encode(X), X @ W, rtol=1e-14)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_layers_are_torchs(activation, rng):
    first, second, third = (torch.nn.Linear(*s, dtype=torch.float64) for s in ((3, 7), (7, 4), (4, 2)))
    network = torch.nn.Sequential(first, TORCH[activation](), second, TORCH[activation](), third)
    linears = (first, second, third)
    encoder = Layers(
        [l.weight.detach().numpy().T for l in linears], [l.bias.detach().numpy() for l in linears], activation
    )
    X = 3 * rng.standard_normal((20, 3))
    with torch.no_grad():
        truth = network(torch.as_tensor(X)).numpy()
    assert isinstance(encoder, ContextEncoder)
    assert (encoder.dim, encoder.width) == (3, 2)
    np.testing.assert_allclose(encoder.encode(X), truth, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_single_precision_stays_single(activation, rng):
    weights, biases = [rng.standard_normal(s) for s in ((3, 4), (4, 2))], [rng.standard_normal(s) for s in (4, 2)]
    single = Layers([w.astype(np.float32) for w in weights], [b.astype(np.float32) for b in biases], activation)
    X = rng.standard_normal((5, 3))
    assert single.encode(X).dtype == np.float32
    np.testing.assert_allclose(single.encode(X), Layers(weights, biases, activation).encode(X), rtol=1e-4, atol=1e-5)
    assert Projection(weights[0].astype(np.float32)).encode(X).dtype == np.float32


def test_what_is_written_is_read_back(rng):
    X = rng.standard_normal((6, 3))
    network = Layers([rng.standard_normal((3, 4)), rng.standard_normal((4, 2))], [np.ones(4), np.zeros(2)], "gelu")
    for encoder in (None, Projection(rng.standard_normal((3, 2))), network):
        again = restored_encoder(*saved_encoder(encoder))
        assert type(again) is type(encoder)
        if encoder is not None and again is not None:
            np.testing.assert_array_equal(again.encode(X), encoder.encode(X))


def test_bad_input_is_named():
    for make, what in (
        (lambda: Projection([1.0, 2.0]), "W"),
        (lambda: Layers([], []), "biases"),
        (lambda: Layers([np.eye(2)], []), "biases"),
        (lambda: Layers([np.eye(2)], [np.ones(3)]), r"biases\[0\]"),
        (lambda: Layers([np.eye(2), np.eye(3)], [np.ones(2), np.ones(3)]), r"weights\[1\]"),
        (lambda: Layers([np.eye(2)], [np.ones(2)], "softmax"), "activation"),
    ):
        with pytest.raises(InvalidInput, match=what):
            make()
