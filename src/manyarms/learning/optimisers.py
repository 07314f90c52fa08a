"""Steps for a table of parameters that come block by block, or for the touched rows only.

`ParameterTable` keeps beta (M, l) and the state of its optimiser. A step is `begin(rate)`, then either `block` for every block
of rows (each row exactly once) or `rows` for those that a batch touched. The gradients are those of a loss: steps go down.

    sgd       beta <- beta - rate g
    adam      m <- 0.9 m + 0.1 g,  v <- 0.999 v + 0.001 g^2,  beta <- beta - rate m' / (sqrt(v') + 1e-8), primes: over their bias
    adagrad   one number per row: s <- s + mean(g^2),  beta <- beta - rate g / (sqrt(s) + 1e-10)

For touched rows alone, adam is "lazy": untouched rows keep their moments and their place until they are touched again, and the
bias is corrected by the number of steps taken in all. `anchor` and `pull` add pull (beta - anchor) to every gradient: that
of pull/2 ||beta - anchor||^2, weight decay for an anchor of zero.

Whoever exponentiates scores asks whether all rows of beta are short (`within`). Their norms are counted rarely: an optimiser that
divides by the size of its gradients moves no number by more than a multiple of the rate (`largest_move`), and sgd moves no row by
more than the rate times the gradient's norm. So norms of some steps ago mostly decide, and where they do not, norms are counted.
The answer is the same whenever they were counted last, and with it the bits of a run that was resumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from manyarms._base import validate
from manyarms.learning.settings import OPTIMISERS, SCHEDULES, one_of

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8
FUSED: Callable[..., None] | None = getattr(torch, "_fused_adam_", None)  # what torch.optim.Adam(fused=True) calls
RISE = 0.3  # share of the steps in which a one-cycle rate rises


class ParameterTable:
    """beta (M, l), updated in place, and what its optimiser remembers."""

    def __init__(
        self, beta: Tensor, kind: str = "adam", *, pull: float = 0.0, anchor: Tensor | None = None, learned: bool = True
    ) -> None:
        one_of("optimiser", kind, OPTIMISERS)
        self.beta, self.kind = beta, kind
        self.pull, self.anchor = validate.not_negative("l2", pull), anchor
        self.steps, self.rate = 0, 0.0
        self.version = 0  # counts changes, for whoever keeps something derived from beta
        self.moments: dict[str, Tensor] = {}  # made when first needed: by then the start may be gone from memory
        self._learned = learned
        # the largest norm of a row when it was counted last, and how far a row may have gone since
        self._norm, self._drift = 0.0, math.inf

    def begin(self, rate: float) -> None:
        """A new step with this learning rate."""
        self._remember()
        self.steps += 1
        if self.kind == "adam":
            self._count = torch.tensor(float(self.steps))
        self.rate = rate

    def finish(self) -> None:
        """The step is over."""

    @property
    def reach(self) -> float:
        """The largest norm of a row, on a processor; elsewhere asking would stop the device, and infinity says nothing."""
        if self.beta.device.type != "cpu" or not len(self.beta):
            return math.inf
        if self._drift:
            self._norm, self._drift = self._largest(self.beta), 0.0
        return self._norm

    def surely_within(self, limit: float) -> bool:
        """Whether what is known of norms is enough to say that `reach` is at most this."""
        return self._norm + self._drift <= limit and self.beta.device.type == "cpu"

    def within(self, limit: float) -> bool:
        """Whether `reach` is at most this; norms are counted only where those that are known do not decide."""
        if self.surely_within(limit):
            return True
        if self._norm - self._drift > limit:
            return False
        return self.reach <= limit

    def block(self, first: int, last: int, gradient: Tensor) -> None:
        """Update the rows first..last-1; `gradient` may be overwritten."""
        whole = last - first == self.beta.shape[0]  # a slice that changes nothing costs as much as any
        beta = self.beta if whole else self.beta[first:last]
        self.version += 1
        if self.pull:
            anchor = self.anchor if whole or self.anchor is None else self.anchor[first:last]
            gradient.add_(beta if anchor is None else beta - anchor, alpha=self.pull)
        moments = self.moments.values() if whole else [moment[first:last] for moment in self.moments.values()]
        if self.kind == "sgd":
            beta.sub_(gradient, alpha=self.rate)
            if (
                beta.device.type == "cpu"
            ):  # no row by more than all of them: the blocks' norms add up to more than needed
                self._drift += 1.01 * self.rate * float(torch.linalg.vector_norm(gradient))
            return
        if not first:  # every row moves once a step
            self._drift += self.rate * self.largest_move() * math.sqrt(self.beta.shape[1])
        if self.kind == "adagrad":
            (squares,) = moments
            squares += gradient.square().mean(dim=1)
            beta.sub_(gradient / (squares.sqrt()[:, None] + 1e-10), alpha=self.rate)
        else:
            self._adam(beta, gradient, *moments)

    def largest_move(self) -> float:
        """What no number moves by more than, over the rate, and a hundredth for rounding.

        By Cauchy and Schwarz on the sums that m and v are, with a = 0.9 and c = 0.999, after t steps

            |m| <= (1 - a) sqrt(sum over j < t of (a^2/c)^j) sqrt(v / (1 - c)),

        between 1 and 7.3 once both are over their bias; adagrad's row of l numbers moves by sqrt(l) at most, one each.
        """
        if self.kind == "adagrad":
            return 1.01
        ratio = FIRST**2 / SECOND
        sums = (1 - ratio**self.steps) / (1 - ratio)
        rate, scale = (1 - FIRST) / (1 - FIRST**self.steps), math.sqrt((1 - SECOND**self.steps) / (1 - SECOND))
        return 1.01 * rate * scale * math.sqrt(sums)

    def _adam(self, beta: Tensor, gradient: Tensor, mean: Tensor, square: Tensor) -> None:
        """In place; in one pass by PyTorch's own fused step where this PyTorch has it, else in six."""
        if FUSED is not None and beta.device.type == "cpu":
            FUSED(
                [beta], [gradient], [mean], [square], [], [self._count], amsgrad=False, lr=self.rate, beta1=FIRST, beta2=SECOND,
                weight_decay=0.0, eps=TINY, maximize=False,
            )  # fmt: skip
            return
        mean.lerp_(gradient, 1 - FIRST)
        square.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        rate, scale = self.rates()
        # m' / (sqrt(v') + tiny) with both sides times the root of v's bias: one pass less
        beta.addcdiv_(mean, torch.sqrt(square, out=gradient).add_(TINY / scale), value=-rate / scale)

    def rows(self, ids: Tensor, gradient: Tensor) -> None:
        """Update some rows, each named once; `gradient` may be overwritten. Rows are read and written by number, never twice."""
        self.version += 1
        if self.pull:
            beta = self.beta.index_select(0, ids)
            gradient.add_(beta if self.anchor is None else beta - self.anchor.index_select(0, ids), alpha=self.pull)
        rate, scale = self.rates()
        step = gradient
        if self.kind == "adagrad":
            squares = self.moments["squares"]
            squares.index_add_(0, ids, gradient.square().mean(dim=1))
            step = gradient.div_(squares.index_select(0, ids).sqrt_().add_(1e-10)[:, None])
        elif self.kind == "adam":
            mean = self.moments["first"].index_select(0, ids).lerp_(gradient, 1 - FIRST)
            self.moments["first"].index_copy_(0, ids, mean)
            square = self.moments["second"].index_select(0, ids).mul_(SECOND)
            square.addcmul_(gradient, gradient, value=1 - SECOND)
            self.moments["second"].index_copy_(0, ids, square)
            step, rate = mean.div_(square.sqrt_().add_(TINY / scale)), rate / scale
        self.beta.index_add_(0, ids, step.mul_(-rate))
        self._drift = math.inf

    def state(self) -> dict[str, Tensor]:
        """Everything that a later `restore` needs to go on to the same result."""
        return {"beta": self.beta, **self.moments}

    def shapes(self) -> dict[str, torch.Size]:
        """What `state` holds after the first step, by shape."""
        whole = self.beta.shape
        moments = {"adam": {"first": whole, "second": whole}, "adagrad": {"squares": whole[:1]}}
        return {"beta": whole} | (moments.get(self.kind, {}) if self._learned else {})

    def restore(self, state: dict[str, Tensor], steps: int) -> None:
        """Go on from a saved state."""
        self.beta.copy_(state["beta"])
        self._remember()
        for name, moment in self.moments.items():
            moment.copy_(state[name])
        self.steps = steps
        self.version += 1
        self._drift = math.inf

    def _remember(self) -> None:
        if self.moments or not self._learned:
            return
        if self.kind == "adam":
            self.moments = {"first": _zeros(self.beta, self.beta.shape), "second": _zeros(self.beta, self.beta.shape)}
        elif self.kind == "adagrad":
            self.moments = {"squares": _zeros(self.beta, self.beta.shape[:1])}

    def rates(self) -> tuple[float, float]:
        """rate / bias of m, and 1 / root of the bias of v, for Adam; else the rate, and 1."""
        if self.kind != "adam":
            return self.rate, 1.0
        return self.rate / (1 - FIRST**self.steps), 1 / math.sqrt(1 - SECOND**self.steps)

    @staticmethod
    def _largest(beta: Tensor) -> float:
        return float(torch.linalg.vector_norm(beta, dim=1).max())


def _zeros(like: Tensor, shape: torch.Size) -> Tensor:
    """Zeros; on a processor from pages that take memory only once they are written: rows that are never touched cost nothing."""
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    return torch.from_numpy(np.zeros(tuple(shape), dtype=np.float64 if like.dtype == torch.float64 else np.float32))


def schedule(name: str, step: int, total: int) -> float:
    """The share of the learning rate at a step of `total`."""
    one_of("schedule", name, SCHEDULES)
    done = step / max(1, total)
    if name == "constant":
        return 1.0
    if name == "linear":
        return 1.0 - done
    if name == "cosine":
        return 0.5 * (1 + math.cos(math.pi * done))
    if name == "one-cycle":
        # from 1/25 up to 1 in the first 30 % of the steps, then down to 0, each along half a cosine
        if done < RISE:
            return 1 / 25 + (1 - 1 / 25) * 0.5 * (1 - math.cos(math.pi * done / RISE))
        return 0.5 * (1 + math.cos(math.pi * (done - RISE) / (1 - RISE)))
    return float(0.01**done)


__all__ = ["ParameterTable", "schedule"]
