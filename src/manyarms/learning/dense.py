"""Policies that are averages over random parameters, and objectives that look at every action: all of pi (b, K) at once.

    softmax        pi(a|x) = softmax(h^T mu)_a
    gaussian       theta_a ~ N(mu_a, sigma^2 I), play the best h^T theta_a: by quadrature, or by S draws as in the thesis
    mixed-logit    the mean of softmax(h^T mu + sigma ||h|| eps) over S draws of eps ~ N(0, I_K)       (thesis, Appendix E.3.2)

Beside the probabilities an objective gets the divergence of the learned distribution from the prior,

    KL(N(mu, s^2 I) || N(mu0, s0^2 I)) = ||mu - mu0||^2 / (2 s0^2) + dK/2 (s^2/s0^2 - 1 - log(s^2/s0^2)),

exact for every s (the lemma of Appendix E.3.3 needs s <= s0). The prior is the policy that learning starts from.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from manyarms.errors import InvalidInput
from manyarms.estimators.base import Answers, Batch, Request
from manyarms.learning.engines import Engine, model_of
from manyarms.learning.normal_choice import choice_probabilities, mixed_logit, monte_carlo_choice
from manyarms.learning.optimisers import ParameterTable

SMALLEST = 1e-30  # a probability that quadrature gives as 0 still has a logarithm


class DenseActions(Engine):
    """An engine for batches in which every action counts."""

    def __init__(
        self,
        table: ParameterTable,
        family: str,
        learns_table: bool = True,
        *,
        log_sigma: ParameterTable | None = None,
        learns_sigma: bool = True,
        draws: int | None = None,
        nodes: int = 64,
    ) -> None:
        super().__init__(table, learns_table)
        self.family, self.log_sigma, self.learns_sigma = family, log_sigma, learns_sigma
        self.draws, self.nodes = draws, nodes  # of simulation where there are draws, else of quadrature
        self.prior_mean, self.prior_log_sigma = table.beta.clone(), 0.0
        if log_sigma is not None:
            self.extra["log_sigma"], self.prior_log_sigma = log_sigma, float(log_sigma.beta)

    def forward(self, batch: Batch, request: Request) -> Answers:
        if request.raw_scores or request.labels is not None:
            raise InvalidInput("policy", f"a {self.family} policy", "a SoftmaxPolicy, for this objective")
        self._h = batch.h.detach().requires_grad_()
        self._mu = self.table.beta.detach().requires_grad_()
        self._log_sigma = None if self.log_sigma is None else self.log_sigma.beta.detach().requires_grad_()
        pi, draws = self._probabilities(batch.seed, request.draws)
        ids = batch.ids
        answers = Answers(pi.clamp(min=SMALLEST).log().gather(1, ids.clamp(min=0)).masked_fill(ids < 0, -math.inf))
        answers.probabilities, answers.draws, answers.divergence = pi, draws, self._divergence()
        if draws is not None:
            answers.own_draws = draws[:, torch.arange(len(pi)), ids[:, 0]]
        model = model_of(request)
        if model is not None:
            answers.expectation = (pi * model.values(batch.x, 0, len(self.table.beta))).sum(dim=1)
        return answers

    def backward(self, want_h: bool) -> Tensor | None:
        if self.learns_table:
            self.table.block(0, len(self.table.beta), _or_zeros(self._mu))
        if self.log_sigma is not None and self._log_sigma is not None and self.learns_sigma:
            self.log_sigma.block(0, 1, _or_zeros(self._log_sigma))
        return self._h.grad if want_h else None

    def _probabilities(self, seed: int, single: bool) -> tuple[Tensor, Tensor | None]:
        scores = self._h @ self._mu.T
        if self._log_sigma is None:
            return torch.softmax(scores, dim=1), None
        spread = self._log_sigma[0, 0].exp() * self._h.norm(dim=1)  # h counts here too, where an encoder is learned
        generator = torch.Generator().manual_seed(seed)
        if self.family == "mixed-logit":
            noise = torch.randn((self.draws or 32, *scores.shape), generator=generator, dtype=torch.float32).to(scores)
            if single:
                draws = torch.softmax(scores + spread[:, None] * noise, dim=-1)
                return draws.mean(0), draws
            return mixed_logit(scores, spread, noise), None
        if single:
            raise InvalidInput("policy", "a Gaussian policy", "a MixedLogitPolicy, for the general form of the bound")
        z = scores / spread.clamp(min=torch.finfo(spread.dtype).tiny)[:, None]
        if self.draws is None:
            return choice_probabilities(z, self.nodes), None
        return monte_carlo_choice(z, torch.randn(self.draws, generator=generator).to(z)), None

    def _divergence(self) -> Tensor | None:
        if self._log_sigma is None:
            return None
        log_ratio = 2 * (self._log_sigma[0, 0] - self.prior_log_sigma)
        distance = (self._mu - self.prior_mean).square().sum() / (2 * math.exp(2 * self.prior_log_sigma))
        return distance + self._mu.numel() / 2 * (log_ratio.exp() - 1 - log_ratio)


def _or_zeros(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def sigma_table(sigma: float, kind: str, dtype: torch.dtype, device: torch.device) -> ParameterTable:
    """log sigma as a table of one number."""
    return ParameterTable(torch.full((1, 1), math.log(sigma), dtype=dtype, device=device), kind)


def seed_of(rng: np.random.Generator) -> int:
    """A seed for torch from a batch's own generator."""
    return int(rng.integers(0, 2**62))


__all__ = ["DenseActions", "seed_of", "sigma_table"]
