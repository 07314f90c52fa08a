"""Cheaper than the exact softmax, when asked: the normaliser from a sample of actions.

With S actions b drawn from a proposal q(.|x), the sum over b of exp(s_b) / (S q_b), leaving out the row's own actions and adding
theirs exactly, is an unbiased estimate of Z. Its logarithm is not, nor is the gradient: the bias falls as 1/S and is small
where q is close to pi. `gradient_gap` measures it against the exact gradient on the caller's own batch.

    SampledSoftmax(count)        q uniform: a row costs `count` actions whatever K is
    TopProposal(count, top, share)   with probability 1 - share one of the `top` best actions by inner product in proportion to
                                     exp(score), else any action: the proposal of fast offline policy optimisation by
                                     maximum inner product search. The best actions are looked up on parameters `every` steps old.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.policies.retrieval import ExactScan


class Sampler(Protocol):
    """Draws actions for a batch."""

    def draw(self, h: Tensor, beta: Tensor, ids: Tensor, step: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Lists (b, m + S) that begin with the rows' own ids, and what is added to their scores, -log(S q) for drawn ones."""


@dataclass(frozen=True)
class SampledSoftmax:
    """`count` uniform actions a batch row."""

    count: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", validate.count("count", self.count))

    def draw(self, h: Tensor, beta: Tensor, ids: Tensor, step: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Uniform draws with replacement, one set for the whole batch: rows differ in their own ids alone."""
        drawn = torch.as_tensor(rng.integers(0, len(beta), self.count)).to(ids.device).expand(len(ids), -1)
        offset = h.new_full(drawn.shape, -math.log(self.count / len(beta)))
        return _joined(ids, drawn, offset)


class TopProposal:
    """A mixture of the softmax over the `top` best actions and the uniform distribution, share of the latter `share`."""

    def __init__(self, count: int = 256, top: int = 256, share: float = 0.5, every: int = 100) -> None:
        self.count, self.top = validate.count("count", count), validate.count("top", top)
        self.share, self.every = validate.probability("share", share), validate.count("every", every)
        if self.share == 0:
            raise InvalidInput("share", 0, "a share above 0: every action must be possible")
        self._index: ExactScan | None = None
        self._looked = -1

    def __repr__(self) -> str:
        return f"TopProposal(count={self.count}, top={self.top}, share={self.share:g}, every={self.every})"

    def draw(self, h: Tensor, beta: Tensor, ids: Tensor, step: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Draws from the mixture, and their log-probabilities under it."""
        # a round number of steps looks again in any case: the same object may have served another run
        if self._index is None or step % self.every == 0 or self._looked != step // self.every:
            self._index, self._looked = ExactScan(beta.detach().cpu().numpy().copy()), step // self.every
        top = min(self.top, len(beta))
        best, scores = self._index.search(h.detach().cpu().numpy(), top)
        mass = np.exp(scores - scores.max(axis=1, keepdims=True))
        mass /= mass.sum(axis=1, keepdims=True)
        b = len(best)
        upto = mass.cumsum(axis=1)
        point = rng.random((b, self.count)) * upto[:, -1:]
        place = np.minimum((point[:, :, None] > upto[:, None, :]).sum(axis=2), top - 1)
        anywhere = rng.integers(0, len(beta), (b, self.count))
        drawn = np.where(rng.random((b, self.count)) < self.share, anywhere, np.take_along_axis(best, place, axis=1))
        order = np.argsort(best, axis=1)
        known, weight = np.take_along_axis(best, order, axis=1), np.take_along_axis(mass, order, axis=1)
        row = np.arange(b)[:, None] * len(beta)
        keys, asked = (known + row).ravel(), drawn + row
        at = np.minimum(np.searchsorted(keys, asked), keys.size - 1)
        inside = np.where(keys[at] == asked, weight.ravel()[at], 0.0)
        q = self.share / len(beta) + (1 - self.share) * inside
        offset = torch.as_tensor(-np.log(self.count * q)).to(h)
        return _joined(ids, torch.as_tensor(drawn).to(ids.device), offset)


def _joined(ids: Tensor, drawn: Tensor, offset: Tensor) -> tuple[Tensor, Tensor]:
    """The rows' own ids first, with no offset; drawn ones that are among them count no second time."""
    again = (drawn[:, :, None] == ids[:, None, :]).any(dim=2)
    drawn = drawn.masked_fill(again, -1)
    return torch.cat([ids, drawn], dim=1), torch.cat(
        [offset.new_zeros(ids.shape), offset.masked_fill(again, 0.0)], dim=1
    )


@dataclass(frozen=True)
class Gap:
    """How far a sampled gradient is from the exact one: its bias and its spread over draws, both over the exact one's norm."""

    bias: float
    spread: float
    draws: int

    @property
    def noise_in_bias(self) -> float:
        """What the measured bias would be, about, for a gradient without any: the spread over the root of the draws."""
        return self.spread / math.sqrt(self.draws)


def gradient_gap(
    h: Tensor, beta: Tensor, ids: Tensor, weights: Tensor, sampler: Sampler, draws: int = 100, seed: int = 0
) -> Gap:
    """Bias and spread of the sampled gradient of mean_i weights_i log pi(ids_i|h_i) by beta, against the exact one.

    h (b, l), beta (K, l), ids (b,), weights (b,). Small problems: the gradients are held whole.
    """
    from manyarms.learning.blockwise import log_probability

    own = ids[:, None]
    parameters = beta.detach().clone().requires_grad_()
    (log_probability(h, parameters, own)[:, 0] * weights).mean().backward()  # type: ignore[no-untyped-call]
    assert parameters.grad is not None
    exact = parameters.grad.clone()
    mean, squares = torch.zeros_like(exact), 0.0
    rng = np.random.default_rng(seed)
    for step in range(draws):
        lists, offsets = sampler.draw(h, parameters.detach(), own, step, rng)
        parameters.grad = None
        scores = (h[:, None] * parameters[lists.clamp(min=0)]).sum(dim=2) + offsets
        log_pi = torch.log_softmax(scores.masked_fill(lists < 0, -math.inf), dim=1)[:, 0]
        (log_pi * weights).mean().backward()  # type: ignore[no-untyped-call]
        assert parameters.grad is not None
        mean += parameters.grad / draws
        squares += float((parameters.grad - exact).square().sum()) / draws
    size = float(exact.norm())
    bias = float((mean - exact).norm())
    return Gap(bias / size, math.sqrt(max(squares - bias**2, 0.0)) / size, draws)


__all__ = ["Gap", "SampledSoftmax", "Sampler", "TopProposal", "gradient_gap"]
