"""The processes that learn one policy together, as one of them sees them: sums over all, and who has which share.

    peers.sum(a, b, ...)     each tensor summed over the processes, all of them in one message
    peers.largest(a)         the largest of each number
    peers.share(n)           this process's part of n rows: consecutive, in the order of the processes, their sizes alike

Whoever calls one of the first two waits for all others to call it too, and all get the same bits. How many numbers were reduced
is counted: `traffic.py` says how many there should be.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
import torch.distributed as together
from torch import Tensor

from manyarms._base.typing import AnyArray

T = TypeVar("T")
NUMBERS_AT_ONCE = 1 << 24  # of a table on its way to the first process


class Peers:
    """This process among those of `torch.distributed`'s group, which is ready. reduced: the numbers that were reduced so far."""

    def __init__(self) -> None:
        self.rank, self.count = together.get_rank(), together.get_world_size()
        self.device = torch.device("cuda" if together.get_backend() == "nccl" else "cpu")  # that messages leave from
        self.reduced = 0

    @property
    def first(self) -> bool:
        """Whether this is the process that speaks for all."""
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """The rows that are this process's."""
        return self.share_of(self.rank, rows)

    def share_of(self, rank: int, rows: int) -> slice:
        """The rows that are a process's."""
        return slice(rank * rows // self.count, (rank + 1) * rows // self.count)

    def sum(self, *tensors: Tensor) -> list[Tensor]:
        """Each of the tensors, summed over all processes."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        flat = self._reduce(flat, together.ReduceOp.SUM)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def largest(self, numbers: Tensor) -> Tensor:
        """The largest of each number over all processes."""
        return self._reduce(numbers.clone(), together.ReduceOp.MAX)

    def placed(self, *tensors: Tensor, rows: int) -> list[Tensor]:
        """Tensors of all rows, from those that every process has of its share: a sum in which all others have zeros."""
        mine, wholes = self.share(rows), []
        for tensor in tensors:
            whole = tensor.new_zeros((rows, *tensor.shape[1:]))
            whole[mine] = tensor
            wholes.append(whole)
        return self.sum(*wholes)

    def _reduce(self, numbers: Tensor, how: together.ReduceOp.RedOpType) -> Tensor:
        if not numbers.numel():
            return numbers
        self.reduced += numbers.numel()
        sent = numbers.to(self.device)
        together.all_reduce(sent, how)
        return sent.to(numbers.device)

    # ---- now and then: not counted

    def by_first(self, function: Callable[[], T]) -> T:
        """What a function gives in the first process, or its error, to all of them."""
        held: list[Any] = [None]
        if self.first:
            held = [_outcome(function)]
        together.broadcast_object_list(held, src=0, device=self.device)
        return cast(T, _given([held[0]])[0])

    def by_all(self, function: Callable[[], T]) -> list[T]:
        """What a function gives in each of them, to all of them; an error of one is an error of all."""
        held: list[Any] = [None] * self.count
        together.all_gather_object(held, _outcome(function))
        return cast(list[T], _given(held))

    def gathered(self, table: Tensor, rows: int) -> AnyArray | None:
        """A table of which every process has its share of rows, at the first process; None at the others."""
        own = table.detach().contiguous()
        if not self.first:
            for piece in torch.split(own, self._at_once(own)):
                together.send(piece.to(self.device).contiguous(), dst=0)
            return None
        whole = torch.empty((rows, *own.shape[1:]), dtype=own.dtype)
        whole[self.share(rows)] = own.cpu()
        for rank in range(1, self.count):
            for piece in torch.split(whole[self.share_of(rank, rows)], self._at_once(own)):
                came = torch.empty(piece.shape, dtype=own.dtype, device=self.device)
                together.recv(came, src=rank)
                piece.copy_(came)
        return whole.numpy()

    @staticmethod
    def _at_once(table: Tensor) -> int:
        """Rows of a table in one message."""
        return max(1, NUMBERS_AT_ONCE // max(1, table[:1].numel()))


def _outcome(function: Callable[[], object]) -> tuple[bool, object]:
    """Whether it went well, and what came of it; an error in a form that can be sent."""
    try:
        return True, function()
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an error that cannot be sent as it is
            return False, RuntimeError(f"{type(error).__name__}: {error}")
        return False, error


def _given(outcomes: list[tuple[bool, Any]]) -> list[Any]:
    """The outcomes, where all went well."""
    for well, said in outcomes:
        if not well:
            raise said
    return [said for _, said in outcomes]


__all__ = ["Peers"]
