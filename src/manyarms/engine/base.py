"""What an engine does: pieces of work in many processes, sums over them, and processes that train together.

    engine.map(function, pieces)                      each piece with its outcome, as they come
    engine.reduce(function, pieces, combine)          all outcomes combined, two at a time
    engine.train(function, workers)                   one function in several processes that talk to each other

Two engines do this: worker processes on this machine (`local.py`), and a Ray cluster (`cluster.py`). Functions belong to modules,
pieces and outcomes are plain data: both are sent to other processes. What all pieces need, a policy or a log, is `common`: it is
sent once to each worker, and not with every piece.

Outcomes are combined in a tree that the order of the pieces alone decides, ((0 1) (2 3)) ((4 5) (6 7)): sums are rounded in the
same way whatever the number of workers, whoever finishes first, and whichever engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

from manyarms.errors import ManyArmsError

Piece = TypeVar("Piece")
Outcome = TypeVar("Outcome")

FAILURES = 3
"""How often workers that died are replaced before an engine gives up."""


class WorkerDied(ManyArmsError):
    """A worker process ended without an answer, most often for want of memory."""


class NoCommon:
    """Stands for no `common`."""


NO_COMMON = NoCommon()


class Engine(ABC):
    """Where work is done. `workers`: how many pieces are in work at once."""

    workers: int

    @abstractmethod
    def map(
        self, function: Callable[..., Outcome], pieces: Sequence[Piece], *, common: Any = NO_COMMON
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Each piece with its outcome, as they come; the first error ends the pass.

        Calls function(piece), or function(piece, common) where there is something common.
        """

    @abstractmethod
    def reduce_parts(
        self,
        function: Callable[..., Sequence[Outcome]],
        pieces: Sequence[Piece],
        combine: Callable[[Outcome, Outcome], Outcome],
        parts: int,
        *,
        common: Any = NO_COMMON,
    ) -> Iterator[Outcome]:
        """What pieces give in `parts` parts each, every part combined over all pieces: one after the other, never all at once.

        On a cluster no worker and no caller holds more than a part at a time; worker processes of one machine leave all of
        them with the caller, who has them in order.
        """

    def reduce(
        self,
        function: Callable[..., Outcome],
        pieces: Sequence[Piece],
        combine: Callable[[Outcome, Outcome], Outcome],
        *,
        common: Any = NO_COMMON,
    ) -> Outcome:
        """What all pieces give, combined. combine(a, b) may change a and give it back; a comes before b in the pieces' order."""
        (outcome,) = self.reduce_parts(AsOnePart(function), pieces, combine, 1, common=common)
        return cast(Outcome, outcome)

    @abstractmethod
    def train(
        self,
        function: Callable[..., Outcome],
        workers: int,
        *,
        common: Any = NO_COMMON,
        failures: int = FAILURES,
        hear: Callable[[Any], None] | None = None,
    ) -> Outcome:
        """One function in `workers` processes at once, in which `torch.distributed` is ready; the outcome of the first of them.

        A process that dies takes the others with it, and all are started again, up to `failures` times: the function goes on from
        what it has stored. An error of the function ends all of them. hear: is called with what they `tell`, in place of the
        engine's own.
        """


class AsOnePart:
    """A function whose outcome is one part; a class, so that it can be sent to other processes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> tuple[Any]:
        return (self.function(*arguments),)


class Tree:
    """Outcomes combined two at a time, by the order of their pieces, as soon as both of a pair are there.

    combine: of two outcomes, or of two promises of such: a tree of either kind has the same shape.
    """

    def __init__(self, count: int, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._waiting: dict[tuple[int, int], Any] = {}
        self._widths = [count]  # of each level: a last one without a partner goes up as it is
        while self._widths[-1] > 1:
            self._widths.append(-(-self._widths[-1] // 2))

    def add(self, place: int, outcome: Any) -> None:
        """The outcome of the piece at this place."""
        level = 0
        while level < len(self._widths) - 1:
            partner = place ^ 1
            if partner < self._widths[level]:
                if (level, partner) not in self._waiting:
                    break
                other = self._waiting.pop((level, partner))
                outcome = self._combine(other, outcome) if partner < place else self._combine(outcome, other)
            level, place = level + 1, place // 2
        self._waiting[level, place] = outcome

    @property
    def top(self) -> Any:
        """All of them, once all are there."""
        ((outcome),) = self._waiting.values()
        return outcome


__all__ = ["FAILURES", "NO_COMMON", "Engine", "Outcome", "Piece", "Tree", "WorkerDied"]
