"""A table of parameters on a GPU: how far to step is a number on the device, so that steps can be captured and replayed."""

from __future__ import annotations

import torch
from torch import Tensor

from manyarms.learning.optimisers import FIRST, FUSED, SECOND, TINY, ParameterTable


class DeviceTable(ParameterTable):
    """`ParameterTable` whose rate and count of steps are read where the work is done. pace: (2, 1), as kernels read it."""

    def __init__(
        self, beta: Tensor, kind: str = "adam", *, pull: float = 0.0, anchor: Tensor | None = None, learned: bool = True
    ) -> None:
        super().__init__(beta, kind, pull=pull, anchor=anchor, learned=learned)
        self.pace = torch.ones((2, 1), dtype=torch.float32, device=beta.device)
        self._rate, self._over_bias, self._scale = beta.new_ones(()), beta.new_ones(()), beta.new_ones(())
        self._taken = torch.zeros((), dtype=torch.float32, device=beta.device)

    def begin(self, rate: float) -> None:
        super().begin(rate)
        over_bias, scale = self.rates()
        self.pace[0].fill_(over_bias)
        self.pace[1].fill_(scale)
        self._rate.fill_(rate)
        self._over_bias.fill_(over_bias)
        self._scale.fill_(scale)
        self._taken.fill_(float(self.steps))

    def block(self, first: int, last: int, gradient: Tensor) -> None:
        part = slice(first, last)
        beta = self.beta[part]
        self.version += 1
        if self.pull:
            gradient.add_(beta if self.anchor is None else beta - self.anchor[part], alpha=self.pull)
        if self.kind == "sgd":
            beta.sub_(gradient.mul_(self._rate))
        elif self.kind == "adagrad":
            squares = self.moments["squares"][part]
            squares += gradient.square().mean(dim=1)
            beta.sub_(gradient.div_(squares.sqrt()[:, None].add_(1e-10)).mul_(self._rate))
        else:
            self._adam(beta, gradient, self.moments["first"][part], self.moments["second"][part])

    def _adam(self, beta: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        if FUSED is not None and beta.dtype == torch.float32:  # the fused step reads a rate of single precision
            FUSED(
                [beta], [gradient], [mean], [square], [], [self._taken], lr=self._rate, beta1=FIRST, beta2=SECOND,
                weight_decay=0.0, eps=TINY, amsgrad=False, maximize=False,
            )  # fmt: skip
            return
        mean.lerp_(gradient, 1 - FIRST)
        square.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        torch.sqrt(square, out=gradient).add_(TINY / self._scale)
        beta.sub_(torch.div(mean, gradient, out=gradient).mul_(self._over_bias / self._scale))


__all__ = ["DeviceTable"]
