"""Products of matrices by either library are the products, and a step of learning is the same step with both."""

from __future__ import annotations

import platform

import numpy as np
import pytest
import torch

from manyarms.learning import blockwise, products
from manyarms.learning.products import RightFactor
from manyarms.learning.rooms import Rooms

LIBRARIES = ["mkl", "onednn"]


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All products by one of the two libraries, however small, on any processor."""
    if request.param == "mkl":
        monkeypatch.setattr(products, "ONE_DNN", None)
    else:
        if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
            pytest.skip("oneDNN is used on AMD's processors alone")
        monkeypatch.setattr(products, "_is_wide_amd", lambda: True)
        monkeypatch.setattr(products, "ONE_DNN", products._one_dnn())
        monkeypatch.setattr(products, "LEAST", 0)
    return str(request.param)


def test_every_supported_pytorch_on_these_tests_machines_has_the_product(library: str) -> None:
    """Else the path of oneDNN would be tested nowhere, and nobody would notice."""
    assert (products.ONE_DNN is None) == (library == "mkl")


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (1024, 64, 256), (700, 33, 31), (16, 200, 1)])
def test_a_product_is_the_product(library: str, shape: tuple[int, int, int]) -> None:
    k, width, m = shape
    rng = np.random.default_rng(k)
    left, right = rng.standard_normal((k, width)), rng.standard_normal((width, m))
    # sides as they come: rows of a table, and the transpose of what lies by rows
    whole = torch.tensor(np.vstack((left, left)), dtype=torch.float32)
    factor = RightFactor(torch.tensor(right.T.copy(), dtype=torch.float32).T)
    found = factor.times(whole[k:], torch.empty(k, m))
    again = factor.times(whole[:k], torch.empty(k, m))
    # each of the sums of `width` terms is off by at most so many roundings of their sizes
    bound = (width + 2) * 2.0**-23 * (np.abs(left) @ np.abs(right)) + 1e-30
    assert (np.abs(found.numpy() - left @ right) <= bound).all()
    assert torch.equal(found, again)


def test_double_precision_stays_double(library: str) -> None:
    left, right = torch.randn(300, 40, dtype=torch.float64), torch.randn(40, 300, dtype=torch.float64)
    found = RightFactor(right).times(left, torch.empty(300, 300, dtype=torch.float64))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, left @ right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("held", [0, 200 * 12, 1 << 20], ids=["nothing kept", "some kept", "all kept"])
@pytest.mark.parametrize("size", [64, 512], ids=["blocks", "one block"])
def test_both_passes_agree_with_double_precision(library: str, held: int, size: int) -> None:
    actions, rows, width = 300, 12, 7
    generator = torch.Generator().manual_seed(3)
    beta = torch.randn(actions, width, generator=generator, dtype=torch.float64) * 0.5
    h = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    ids = torch.randint(0, actions, (rows,), generator=generator)
    weights = torch.rand(rows, generator=generator, dtype=torch.float64)
    dense = beta.clone().requires_grad_()
    log_pi = torch.log_softmax(h @ dense.T, dim=1)[torch.arange(rows), ids]
    (weights * log_pi).sum().backward()  # type: ignore[no-untyped-call]

    found = torch.full((actions, width), torch.nan)

    def receive(first: int, last: int, block: torch.Tensor) -> None:
        found[first:last] = block

    rooms = Rooms(held=held)
    low, short = beta.float(), h.float()
    for _ in range(2):  # rooms are used again
        measured = blockwise.measure(short, low, safe=True, size=size, rooms=rooms)
        upstream = blockwise.Upstream(torch.arange(rows), ids, weights.float(), one_each=True)
        blockwise.pull(short, low, measured, upstream, receive=receive, safe=True, size=size, rooms=rooms)
        torch.testing.assert_close(measured.log_z.double(), torch.logsumexp(h @ beta.T, dim=1), rtol=1e-5, atol=1e-5)
        assert dense.grad is not None
        torch.testing.assert_close(found.double(), dense.grad, rtol=1e-4, atol=1e-5)
