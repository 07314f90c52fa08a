"""The exact softmax over all actions on a GPU: Triton kernels where they apply, the blocks of PyTorch elsewhere."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from manyarms.learning.blockwise import SAFE, Measured, Upstream
from manyarms.learning.engines import AllActions
from manyarms.learning.optimisers import ParameterTable

PRODUCTS = {"fp32": ("ieee", torch.float32), "tf32": ("tf32", torch.float32), "bf16": ("tf32", torch.bfloat16)}
KINDS = {"adam": 1, "sgd": 2}


class CudaActions(AllActions):
    """`AllActions` with kernels of its own for objectives that look at listed actions alone (PWLL, the IPS family).

    precision: of the products: "fp32", which is left to PyTorch's own products, block by block; "tf32"; or "bf16", which keeps
    a bfloat16 copy of beta beside it. Sums, beta and its moments are float32 in each.
    """

    def __init__(self, table: ParameterTable, learns_table: bool = True, precision: str = "fp32") -> None:
        super().__init__(table, learns_table)
        self._precision = precision
        self._name, self._dtype = PRODUCTS[precision]
        self._low: Tensor | None = None
        self._version = -1
        self._reach = torch.zeros(1, device=table.beta.device)

    def _has_kernel(self) -> bool:
        plain = self._groups is None and self._values is None and len(self._h) > 0
        return plain and self._precision != "fp32" and _triton_is_there()

    def _measure(self, h: Tensor) -> Measured:
        if not self._has_kernel():
            return super()._measure(h)
        from manyarms.learning import triton_kernels as kernels

        self._bring_up_to_date()
        assert self._low is not None
        limit = h.norm(dim=1).max() * self._reach.sqrt()
        return Measured(kernels.log_normaliser(h, self._low, limit, safe=SAFE, precision=self._name))

    def _pull(self, measured: Measured, upstream: Upstream, want_h: bool) -> Tensor | None:
        table = self.table
        if not self._has_kernel():
            table.version += 1
            return super()._pull(measured, upstream, want_h)
        from manyarms.learning import triton_kernels as kernels

        assert self._low is not None
        h = self._h
        factor = h.new_zeros(len(h)).index_add_(0, upstream.rows, upstream.singles).neg_()
        for_h: Tensor | None = None
        if want_h:
            for_h = kernels.pull_features(h, self._low, measured.log_z, factor, precision=self._name)
            for_h.index_add_(0, upstream.rows, upstream.singles[:, None] * table.beta[upstream.ids])
        if not self.learns_table:
            return for_h
        singles = kernels.Singles.sorted(upstream.rows, upstream.ids, upstream.singles)
        step = partial(kernels.step, h, self._low, measured.log_z, factor, singles, precision=self._name)
        if table.kind not in KINDS:
            gradient = torch.empty_like(table.beta)
            step(kind=0, gradient=gradient)
            table.block(0, len(table.beta), gradient)
            return for_h
        rate, scale = table.rates()
        self._reach.zero_()
        step(
            kind=KINDS[table.kind],
            beta=table.beta,
            moments=(table.moments["first"], table.moments["second"]) if table.kind == "adam" else None,
            anchor=table.anchor,
            rate=rate,
            scale=scale,
            pull=table.pull,
            reach=self._reach,
            signed=not self._rising,
        )
        return for_h

    def _bring_up_to_date(self) -> None:
        """Make the copy that products are taken from again, if beta was changed by anything but the kernel."""
        table = self.table
        if self._version == table.version and self._low is not None:
            return
        self._low = table.beta.to(self._dtype)  # beta itself where it has the type already
        self._reach = table.beta.square().sum(dim=1).max()[None]
        self._version = table.version


def _triton_is_there() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


__all__ = ["CudaActions"]
