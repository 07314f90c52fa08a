"""Engines: a batch of rows in, what an objective asked for out, and the objective's derivatives back into the parameters.

    answers = engine.forward(batch, request)        differentiable tensors
    (-objective.value(answers, batch)).backward()
    gradient_h = engine.backward()                  updates the table's rows, and gives the gradient for the encoder that made h

`AllActions` takes the exact softmax over the whole table, block by block. `ListedActions` takes it over a list of actions a row:
the logging support, candidates, or a sample with its log-probabilities; only rows of the table that a list names are touched.
`Clusters` is the two-stage policy: a softmax over clusters, each of which plays its best action under a reward model.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Answers, Batch, ModelValues, Request
from manyarms.learning.blockwise import (
    Groups,
    Measured,
    Rooms,
    Sums,
    Upstream,
    Values,
    pull,
    safe_norm,
    scores_at,
    singles_of,
    sums_of,
)
from manyarms.learning.optimisers import ParameterTable

HELD = 1 << 28  # bytes in a processor's memory: a table, two moments, and powers that the second pass takes again


@dataclass(frozen=True)
class ModelOnDevice:
    """A reward model at tensors of contexts: by its weights (K, d) where it is linear, else by its own predictions.

    before: the actions before the first one in weights, and in any block, where others have those.
    """

    model: ModelValues
    weights: Tensor | None
    before: int = 0

    def block(self, X: Array, ids: Ints) -> Array:
        """r_hat of contexts (b, d) and ids (k,), (b, k)."""
        return self.model.block(X, ids)

    def values(self, x: Tensor, first: int, last: int) -> Tensor:
        """r_hat at the rows for a block of actions."""
        if self.weights is not None:
            return x @ self.weights[first:last].T
        ids = np.arange(self.before + first, self.before + last)
        return torch.as_tensor(self.block(x.double().cpu().numpy(), ids)).to(x)

    def values_at(self, x: Tensor, lists: Tensor) -> Tensor:
        """r_hat at listed actions (b, k)."""
        safe = lists.clamp(min=0)
        if self.weights is not None:
            return torch.einsum("bd,bkd->bk", x, self.weights[safe])
        ids, where = torch.unique(safe, return_inverse=True)
        return torch.as_tensor(self.block(x.double().cpu().numpy(), ids.cpu().numpy())).to(x).gather(1, where)


def model_of(request: Request) -> ModelOnDevice | None:
    """The reward model of a request that was sent to a device."""
    return cast(ModelOnDevice | None, request.model)


class Engine(ABC):
    """A policy's parameters in training. extra: what is learned beside the table, by name."""

    def __init__(self, table: ParameterTable, learns_table: bool = True) -> None:
        self.table, self.learns_table = table, learns_table
        self.extra: dict[str, ParameterTable] = {}

    @abstractmethod
    def forward(self, batch: Batch, request: Request) -> Answers:
        """What the objective asked for."""

    @abstractmethod
    def backward(self, want_h: bool) -> Tensor | None:
        """After the objective's own backward: step the table, return the gradient of h."""


class AllActions(Engine):
    """The exact softmax over all rows of the table."""

    def __init__(self, table: ParameterTable, learns_table: bool = True) -> None:
        super().__init__(table, learns_table)
        self._numbers = torch.arange(0)
        self._limit = 0.0  # of a norm that is safe for a batch and other rows
        self._rooms: Rooms | None = None
        if table.beta.device.type == "cpu":
            # A large table would gain as much from powers that stay, but it is what fills the memory.
            self._rooms = Rooms(held=max(0, HELD // table.beta.element_size() - 3 * table.beta.numel()))

    def forward(self, batch: Batch, request: Request, values: Values | None = None) -> Answers:
        h = batch.h.detach()
        self._h, self._ids, self._raw, self._rising = h, batch.ids, request.raw_scores, request.rising
        if request.raw_scores:
            self._leaf = self._scores_at(h, batch.ids).requires_grad_()
            return Answers(scores=self._leaf)
        self._groups: Groups | None = None
        if request.labels is not None and batch.wanted is not None:
            self._groups = request.labels, batch.wanted
        self._values, model = values, model_of(request)
        if values is None and model is not None:
            x = batch.x
            self._values = lambda first, last: model.values(x, first, last)
        self._limit = 0.0
        scores, self._measured = self._seen(h, batch.ids)
        self._leaf = (scores - self._measured.log_z[:, None]).requires_grad_()
        for found in (self._measured.log_mass, self._measured.expectation):
            if found is not None:
                found.requires_grad_()
        return Answers(self._leaf, group_log_mass=self._measured.log_mass, expectation=self._measured.expectation)

    def backward(self, want_h: bool) -> Tensor | None:
        upstream = self._upstream(self._ids, gradient_of(self._leaf))
        if self._raw:
            return sparse_step(self, self._h, upstream.rows, upstream.ids, upstream.singles, want_h)
        measured = Measured(self._measured.log_z, total=self._measured.total, kept_from=self._measured.kept_from)
        if self._measured.log_mass is not None:
            measured.log_mass, upstream.group = self._measured.log_mass.detach(), gradient_of(self._measured.log_mass)
        if self._measured.expectation is not None:
            measured.expectation = self._measured.expectation.detach()
            upstream.expectation = gradient_of(self._measured.expectation)
        return self._pull(measured, upstream, want_h)

    def climb(
        self, h: Tensor, ids: Tensor, weights: Tensor, of_log: bool, *, limit: float = 0.0, want_h: bool = False
    ) -> tuple[float, Tensor | None]:
        """`forward` and `backward` for the sum of weights * log pi, or of weights * pi, at one action a row.

        Its derivatives by log pi are the weights, or weights * pi. limit: a `safe_norm` of rows that include these. The sum
        before the step, and the gradient of h.
        """
        self._h, self._groups, self._values, self._rising = h, None, None, of_log
        self._limit = limit
        measured = self._measure(h)
        log_pi = (self.table.beta.index_select(0, ids) * h).sum(dim=1) - measured.log_z
        terms = weights * (log_pi if of_log else log_pi.exp_())
        value = float(terms.sum())
        if self._numbers.shape[0] < h.shape[0]:
            self._numbers = torch.arange(h.shape[0])
        upstream = Upstream(self._numbers[: h.shape[0]], ids, -weights if of_log else terms.neg_(), one_each=True)
        return value, self._pull(measured, upstream, want_h)

    # ---- what is otherwise where others have some of the rows of the table

    def _scores_at(self, h: Tensor, ids: Tensor) -> Tensor:
        return scores_at(h, self.table.beta, ids)

    def _seen(self, h: Tensor, ids: Tensor) -> tuple[Tensor, Measured]:
        """The scores at ids, and what a pass over all actions finds."""
        return self._scores_at(h, ids), self._measure(h)

    def _upstream(self, ids: Tensor, gradient: Tensor) -> Upstream:
        return singles_of(ids, gradient)

    # ---- the two passes

    def _measure(self, h: Tensor) -> Measured:
        return self._sums(h).measured()

    def _sums(self, h: Tensor) -> Sums:
        table = self.table
        on_processor = h.device.type == "cpu"  # asking would stop another device
        self._safe = on_processor and (table.surely_within(self._limit) or table.within(safe_norm(h)))
        return sums_of(h, table.beta, groups=self._groups, values=self._values, safe=self._safe, rooms=self._rooms)

    def _pull(self, measured: Measured, upstream: Upstream, want_h: bool) -> Tensor | None:
        return pull(
            self._h,
            self.table.beta,
            measured,
            upstream,
            groups=self._groups,
            values=self._values,
            receive=self.table.block if self.learns_table else None,
            want_h=want_h,
            safe=self._safe,
            rooms=self._rooms,
        )


class ListedActions(Engine):
    """The softmax over a list of actions a row; only the rows of the table in a batch's lists are read and stepped."""

    def forward(self, batch: Batch, request: Request) -> Answers:
        if batch.lists is None:
            raise InvalidInput("support", "nothing", "a list of actions for every row")
        lists, ids = batch.lists, batch.ids
        self._h, self._lists = batch.h.detach(), lists
        self._padded = bool((lists < 0).any())
        self._leaf = self._scores(lists.clamp(min=0) if self._padded else lists).requires_grad_()
        if request.raw_scores:
            return Answers(scores=self._leaf.gather(1, places(lists, ids)))
        scores = self._leaf if batch.offsets is None else self._leaf + batch.offsets
        log_pi = torch.log_softmax(scores.masked_fill(lists < 0, -math.inf) if self._padded else scores, dim=1)
        answers = Answers(_at(log_pi, lists, ids))
        if batch.offsets is not None:
            # a sampled action stands for 1 / (S q) others: its own probability is without the offset
            answers.log_probability = answers.log_probability - _at(batch.offsets, lists, ids)
        if request.labels is not None and batch.wanted is not None:
            mine = request.labels[lists.clamp(min=0)] == batch.wanted[:, None]
            answers.group_log_mass = torch.logsumexp(log_pi.masked_fill(~mine, -math.inf), dim=1)
        model = model_of(request)
        if model is not None:
            answers.expectation = (log_pi.exp() * model.values_at(batch.x, lists)).sum(dim=1)
        return answers

    def _scores(self, known: Tensor) -> Tensor:
        """(b, k): h_i^T beta_a at listed actions; their rows of beta are kept for the way back."""
        # by number, and not by an index array: that is several times slower
        width = self.table.beta.shape[1]
        self._gathered = self.table.beta.index_select(0, known.reshape(-1)).view(*known.shape, width)  # (b, k, l)
        return torch.bmm(self._gathered, self._h[:, :, None])[:, :, 0]

    def backward(self, want_h: bool) -> Tensor | None:
        gradient = gradient_of(self._leaf)
        for_h = torch.bmm(gradient[:, None], self._gathered)[:, 0] if want_h else None
        if self.learns_table:
            rows = torch.arange(len(gradient), device=gradient.device)[:, None].expand_as(gradient)
            if self._padded:
                used = self._lists >= 0
                rows, ids, singles = rows[used], self._lists[used], gradient[used]
            else:
                rows, ids, singles = rows.reshape(-1), self._lists.reshape(-1), gradient.reshape(-1)
            sparse_step(self, self._h, rows, ids, singles, want_h=False)
        return for_h


class Clusters(AllActions):
    """pi(a|x) = pi_cl(c|x) 1[a is the best of its cluster c under the model]: the table's rows are clusters (POTEC)."""

    def __init__(self, table: ParameterTable, labels: Tensor, model_weights: Tensor, learns_table: bool = True) -> None:
        super().__init__(table, learns_table)
        self.labels, self.model_weights = labels, model_weights

    def forward(self, batch: Batch, request: Request, values: Values | None = None) -> Answers:
        if request.raw_scores:
            raise InvalidInput(
                "policy", "a two-stage policy", "a policy with a score for every action, for this objective"
            )
        best: Tensor | None = None
        model = model_of(request)
        if model is not None or batch.ids.shape[1]:
            best = best_in_cluster(batch.x, self.model_weights, self.labels, len(self.table.beta))
        if batch.wanted is not None:
            if request.labels is None or not torch.equal(request.labels, self.labels):
                raise InvalidInput("objective", "other clusters", "the clusters of the two-stage policy")
            clusters = batch.wanted[:, None]
        else:
            clusters = torch.where(batch.ids < 0, -1, self.labels[batch.ids.clamp(min=0)])
        if model is not None:
            if model.weights is None or not torch.equal(model.weights, self.model_weights):
                raise InvalidInput("objective", "another reward model", "the reward model of the two-stage policy")
            assert best is not None
            known = best
            values = lambda first, last: known[:, first:last]  # noqa: E731
        answers = super().forward(replace(batch, ids=clusters, wanted=None), Request(model=request.model), values)
        if batch.wanted is not None:
            answers.group_log_mass, answers.log_probability = answers.log_probability[:, 0], None
        elif best is not None:
            own = torch.einsum("bd,bmd->bm", batch.x, self.model_weights[batch.ids.clamp(min=0)])
            plays = own >= best.gather(1, clusters.clamp(min=0)) - 1e-6 * own.abs()
            answers.log_probability = answers.log_probability.masked_fill(~plays, -math.inf)
        return answers


def best_in_cluster(x: Tensor, weights: Tensor, labels: Tensor, clusters: int, numbers: int = 1 << 24) -> Tensor:
    """(b, C): the largest x_i^T weights_a over the actions of every cluster; rows are taken a few at a time."""
    out = x.new_full((len(x), clusters), -math.inf)
    step = max(1, numbers // len(weights))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        scores = x[part] @ weights.T
        out[part].scatter_reduce_(1, labels.expand(len(scores), -1), scores, "amax")
    return out


def places(lists: Tensor, ids: Tensor) -> Tensor:
    """Where ids (b, m) stand in lists (b, k); padding stands at 0."""
    if lists.shape[1] == 0:
        raise InvalidInput("support", "empty lists", "at least one action per row")
    hit = lists[:, None, :] == ids[:, :, None]  # (b, m, k)
    missing = ~hit.any(dim=2) & (ids >= 0)
    if missing.any():
        row, column = (int(i) for i in missing.nonzero()[0])
        raise InvalidInput(
            "support",
            f"lists without action {int(ids[row, column])}",
            "lists that contain the logged action of their row",
        )
    return hit.to(torch.uint8).argmax(dim=2)


def _at(numbers: Tensor, lists: Tensor, ids: Tensor) -> Tensor:
    if ids.shape[1] == 0:
        return numbers[:, :0]
    return numbers.gather(1, places(lists, ids)).masked_fill(ids < 0, -math.inf)


def gradient_of(leaf: Tensor) -> Tensor:
    """The derivative, where there is one: an objective may look at only some of what it asked for. -inf takes none."""
    if leaf.grad is None:
        return torch.zeros_like(leaf)
    return leaf.grad.masked_fill(~leaf.isfinite(), 0.0)


def sparse_step(engine: Engine, h: Tensor, rows: Tensor, ids: Tensor, singles: Tensor, want_h: bool) -> Tensor | None:
    """The gradient of table row a is the sum of singles * h over its entries: added up per row, then one lazy step."""
    for_h: Tensor | None = None
    if want_h:
        for_h = torch.zeros_like(h).index_add_(0, rows, singles[:, None] * engine.table.beta[ids].to(h.dtype))
    if engine.learns_table and len(ids):
        unique, where = torch.unique(ids, return_inverse=True)
        gradient = h.new_zeros((len(unique), h.shape[1])).index_add_(
            0, where, h.index_select(0, rows).mul_(singles[:, None])
        )
        engine.table.rows(unique, gradient)
    return for_h


__all__ = [
    "AllActions",
    "Clusters",
    "Engine",
    "ListedActions",
    "ModelOnDevice",
    "best_in_cluster",
    "gradient_of",
    "model_of",
    "places",
    "sparse_step",
]
