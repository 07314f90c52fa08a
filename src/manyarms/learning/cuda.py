"""The exact softmax over all actions on a GPU: Triton kernels where they apply, the blocks of PyTorch elsewhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from manyarms.learning.blockwise import SAFE, Measured, Upstream
from manyarms.learning.engines import AllActions
from manyarms.learning.optimisers import ParameterTable
from manyarms.learning.settings import TrainingSettings

if TYPE_CHECKING:
    from manyarms.learning.trainable import Trainable

PRODUCTS = {"fp32": ("tf32x3", torch.float32), "tf32": ("tf32", torch.float32), "bf16": ("tf32", torch.bfloat16)}
KINDS = {"adam": 1, "sgd": 2}
CROWDED = 8  # actions for every row, from which on the kernels are used for any objective
WIDEST = {torch.float32: 128, torch.bfloat16: 256}  # features, beyond which tiles no longer fit a multiprocessor


class CudaActions(AllActions):
    """`AllActions` with kernels of its own for objectives that look at listed actions alone (PWLL, the IPS family).

    precision: of the products: "fp32", three tf32 products each, which is nearly as exact; "tf32"; or "bf16", which keeps a
    bfloat16 copy of beta beside it. Sums, beta and its moments are float32 in each.
    """

    def __init__(self, table: ParameterTable, learns_table: bool = True, precision: str = "fp32") -> None:
        super().__init__(table, learns_table)
        self._name, self._dtype = PRODUCTS[precision]
        self.low = table.beta  # what products are taken from
        self._version, self._planned = -1, -1
        self.reach = torch.zeros(
            2, device=table.beta.device
        )  # the largest squared norm of a row, and room for the next

    def _has_kernel(self) -> bool:
        rows, width = self._h.shape
        plain = self._groups is None and self._values is None and rows > 0
        # a block of actions adds its single derivatives one by one: where they are many, PyTorch's products are faster
        return plain and width <= WIDEST[self._dtype] and CROWDED * rows <= len(self.table.beta) and triton_is_there()

    def _measure(self, h: Tensor) -> Measured:
        if not self._has_kernel():
            return super()._measure(h)
        from manyarms.learning import launching

        self.bring_up_to_date()
        if self._planned != len(h):
            self._plan, self._planned = launching.Plan.of_one(len(h), h.device), len(h)
        limit = h.norm(dim=1).max()[None]
        return Measured(
            launching.log_normaliser(h, self.low, limit, self.reach, self._plan, safe=SAFE, precision=self._name)
        )

    def _pull(self, measured: Measured, upstream: Upstream, want_h: bool) -> Tensor | None:
        table = self.table
        if not self._has_kernel():
            table.version += 1
            return super()._pull(measured, upstream, want_h)
        from manyarms.learning import launching

        h = self._h
        factor = h.new_zeros(len(h)).index_add_(0, upstream.rows, upstream.singles).neg_()
        for_h: Tensor | None = None
        if want_h:
            for_h = launching.pull_features(h, self.low, measured.log_z, factor, precision=self._name)
            for_h.index_add_(0, upstream.rows, upstream.singles[:, None] * table.beta[upstream.ids])
        if not self.learns_table:
            return for_h
        singles = launching.Singles.sorted(upstream.rows, upstream.ids, upstream.singles)
        step = partial(launching.step, h, self.low, measured.log_z, factor, singles, self._plan, precision=self._name)
        if table.kind not in KINDS:
            gradient = torch.empty_like(table.beta)
            step(kind=0, gradient=gradient)
            table.block(0, len(table.beta), gradient)
            return for_h
        self.reach[1].zero_()
        step(
            kind=KINDS[table.kind],
            beta=table.beta,
            moments=(table.moments["first"], table.moments["second"]) if table.kind == "adam" else None,
            anchor=table.anchor,
            pull=table.pull,
            pace=getattr(table, "pace", None),
            reach=self.reach,
            signed=not self._rising,
        )
        self.reach[0].copy_(self.reach[1])
        return for_h

    def bring_up_to_date(self) -> None:
        """Make the copy that products are taken from again, if beta was changed by anything but the kernel."""
        table = self.table
        if self._version == table.version:
            return
        if table.beta.dtype == self._dtype:
            self.low = table.beta
        elif self.low is table.beta:
            self.low = table.beta.to(self._dtype)
        else:  # where it is: a captured step knows its address
            self.low.copy_(table.beta)
        self.reach[0] = table.beta.square().sum(dim=1).max()
        self._version = table.version


def can_fuse(trainable: Trainable, settings: TrainingSettings) -> bool:
    """Whether objectives with `linear_terms` need nothing but the kernels: Adam or SGD on all rows of one table."""
    engine = trainable.engine
    if not isinstance(engine, CudaActions) or not engine.learns_table or trainable.learns_encoder:
        return False
    fits = engine.table.beta.shape[1] <= WIDEST[PRODUCTS[settings.precision][1]]
    return fits and settings.optimiser in KINDS and triton_is_there()


def triton_is_there() -> bool:
    """Whether kernels can be compiled."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return False
    return True


__all__ = ["KINDS", "PRODUCTS", "CudaActions", "can_fuse", "triton_is_there"]
