"""Products of matrices on a processor, by whichever of PyTorch's two libraries is the faster one there.

PyTorch multiplies float32 matrices with MKL, and carries oneDNN for its layers. On AMD's processors with registers of 512 bits
MKL reaches half of what oneDNN does (`cpu_product_speedup` in benchmarks/softmax.py); elsewhere MKL is left at work. oneDNN is
reached by the operation that PyTorch's own compiler emits for a linear layer; a PyTorch without it has MKL's product alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

LEAST = 1 << 22  # multiplications below which what a call of oneDNN costs is more than what it saves


class RightFactor:
    """The right side of many products: `times(left, room)` is left @ matrix, as it was when this was made."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = matrix
        self._by_column: Tensor | None = None  # as oneDNN wants it, made when first needed
        fits = ONE_DNN is not None and matrix.dtype == torch.float32 and matrix.device.type == "cpu"
        self._enough = LEAST / max(1, matrix.numel()) if fits else math.inf  # rows of the left side

    def times(self, left: Tensor, room: Tensor) -> Tensor:
        """left (k, l) @ matrix (l, m): in room (k, m), or in new memory."""
        if left.shape[0] < self._enough or ONE_DNN is None:
            return torch.mm(left, self._matrix, out=room)
        if self._by_column is None:
            self._by_column = self._matrix.T.contiguous()
        return ONE_DNN(left, self._by_column, None, "none", [], "")


def _is_wide_amd() -> bool:
    """Whether this is one of AMD's processors, with registers of 512 bits that PyTorch uses."""
    if "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return False
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return False


def _one_dnn() -> Callable[..., Tensor] | None:
    """oneDNN's left @ right^T, where it is there and the faster one."""
    if not (torch.backends.mkldnn.is_available() and _is_wide_amd()):  # type: ignore[no-untyped-call]
        return None
    try:
        product: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise
        found = product(torch.eye(2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), None, "none", [], "")
    except (AttributeError, RuntimeError, TypeError):  # another PyTorch: not there, or called in another way
        return None
    return product if found.tolist() == [[1.0, 3.0], [2.0, 4.0]] else None


ONE_DNN = _one_dnn()

__all__ = ["RightFactor"]
