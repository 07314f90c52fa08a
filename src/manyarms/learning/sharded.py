"""Engines of several processes that learn one policy: each answers for its share, and all see the answers to everything.

A table that is learned is divided by its rows, the actions (`ShardedActions`). All processes have the same batch. With S_w the
rows of process w, scores s in base 2 and the top t_i = max over a of s_i(a) in common,

    Z_i = sum over w of ( sum over a in S_w of 2^(s_i(a) - t_i) ) 2^t_i,        likewise the masses of groups, and sums of pi v,

so b numbers a sum are all that is told of any number of actions: the exact softmax. The score of a listed action is told by the
process that has its row. The objective's derivatives by these numbers are then known to all; each process has the gradient of its
own rows (`pull`) and steps them with moments of their own. The gradient of h is a sum over actions, and so over processes.

A table that stays as it is, under an encoder that is learned, is had by all, and the rows of a batch are divided (`DividedRows`):
answers for its rows are told by each, and the derivatives by the encoder's parameters are summed (`EncoderInTraining.step`).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from manyarms.estimators.base import Answers, Batch, Request
from manyarms.learning.blockwise import Measured, Sums, Upstream, scores_at, singles_of
from manyarms.learning.engines import AllActions, Engine, ListedActions, gradient_of, sparse_step
from manyarms.learning.optimisers import ParameterTable
from manyarms.learning.peers import Peers

LARGEST_SUM = 60.0  # log Z up to which powers of safe scores are divided by Z as they are, in single precision


class OwnRows:
    """The rows first .. last - 1 of a table of which a process has no others."""

    def __init__(self, first: int, count: int) -> None:
        self.first, self.last = first, first + count

    def here(self, ids: Tensor) -> Tensor:
        """Where ids name one of these rows."""
        return (ids >= self.first) & (ids < self.last)

    def local(self, ids: Tensor) -> Tensor:
        """Their numbers in the own table, -1 for all others."""
        return torch.where(self.here(ids), ids - self.first, -1)


class ShardedActions(AllActions):
    """The exact softmax over all rows of a table of which this process has some: from number `first` on."""

    def __init__(self, table: ParameterTable, peers: Peers, first: int) -> None:
        super().__init__(table, learns_table=True)
        self.peers, self.own = peers, OwnRows(first, len(table.beta))

    def _own_scores(self, h: Tensor, ids: Tensor) -> Tensor:
        """Scores of the own rows; 0 where another process knows better."""
        local = self.own.local(ids)
        return scores_at(h, self.table.beta, local).masked_fill_(local < 0, 0.0)

    def _scores_at(self, h: Tensor, ids: Tensor) -> Tensor:
        (scores,) = self.peers.sum(self._own_scores(h, ids))
        return scores.masked_fill_(ids < 0, -torch.inf)

    def _seen(self, h: Tensor, ids: Tensor) -> tuple[Tensor, Measured]:
        sums = self._sums(h)
        own_top = torch.zeros_like(sums.total) if sums.top is None else sums.top
        top = self.peers.largest(own_top)
        shrink = (own_top - top).exp2_()
        told = [self._own_scores(h, ids), sums.total * shrink]
        told += [part * shrink for part in (sums.inside, sums.above) if part is not None]
        scores, total, *others = self.peers.sum(*told)
        inside = None if sums.inside is None else others.pop(0)
        above = None if sums.above is None else others.pop(0)
        measured = Sums(top, total, inside, above, sums.kept_from).measured()
        # scores of the own rows that are safe may be far below those of others
        self._safe = self._safe and bool((measured.log_z < LARGEST_SUM).all())
        return scores.masked_fill_(ids < 0, -torch.inf), measured

    def _upstream(self, ids: Tensor, gradient: Tensor) -> Upstream:
        upstream = singles_of(self.own.local(ids), gradient)
        upstream.by_row = gradient.masked_fill(ids < 0, 0.0).sum(dim=1)
        return upstream

    def backward(self, want_h: bool) -> Tensor | None:
        return _summed(self.peers, super().backward(want_h))


class ShardedLists(ListedActions):
    """The softmax over a list of actions a row, of a table of which this process has some rows: from number `first` on."""

    def __init__(self, table: ParameterTable, peers: Peers, first: int) -> None:
        super().__init__(table, learns_table=True)
        self.peers, self.own = peers, OwnRows(first, len(table.beta))

    def _scores(self, known: Tensor) -> Tensor:
        rows, columns = self.own.here(known).nonzero(as_tuple=True)
        beta = self.table.beta.index_select(0, known[rows, columns] - self.own.first)
        own = self._h.new_zeros(known.shape)
        own[rows, columns] = (beta * self._h.index_select(0, rows)).sum(dim=1)
        (scores,) = self.peers.sum(own)
        return scores

    def backward(self, want_h: bool) -> Tensor | None:
        # every listed row, also where its gradient is 0: moments decay and rows are pulled there all the same
        rows, columns = self.own.here(self._lists).nonzero(as_tuple=True)
        ids, singles = self._lists[rows, columns] - self.own.first, gradient_of(self._leaf)[rows, columns]
        return _summed(self.peers, sparse_step(self, self._h, rows, ids, singles, want_h))


class DividedRows(Engine):
    """A fixed table that all processes have: each answers for its share of a batch's rows, of which alone it has the features."""

    def __init__(self, inner: Engine, peers: Peers) -> None:
        super().__init__(inner.table, learns_table=False)
        self.inner, self.peers = inner, peers

    def forward(self, batch: Batch, request: Request) -> Answers:
        rows = len(batch.ids)
        mine = self.peers.share(rows)
        cut = {
            name: part[mine] for name in ("x", "ids", "wanted", "lists") if (part := getattr(batch, name)) is not None
        }
        found = self.inner.forward(replace(batch, **cut), request)
        names = ("log_probability", "scores", "group_log_mass", "expectation")
        self._mine: dict[str, Tensor] = {name: answer for name in names if (answer := getattr(found, name)) is not None}
        told = self.peers.placed(*(answer.detach() for answer in self._mine.values()), rows=rows)
        self._whole = {name: answer.requires_grad_() for name, answer in zip(self._mine, told, strict=True)}
        answers = Answers()
        for name, answer in self._whole.items():
            setattr(answers, name, answer)
        return answers

    def backward(self, want_h: bool) -> Tensor | None:
        pairs = [
            (own, gradient_of(self._whole[name])[self.peers.share(len(self._whole[name]))])
            for name, own in self._mine.items()
            if own.requires_grad
        ]
        torch.autograd.backward([own for own, _ in pairs], [gradient for _, gradient in pairs])
        return self.inner.backward(want_h)


def _summed(peers: Peers, gradient: Tensor | None) -> Tensor | None:
    return None if gradient is None else peers.sum(gradient)[0]


__all__ = ["DividedRows", "OwnRows", "ShardedActions", "ShardedLists"]
