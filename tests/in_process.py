"""An engine for tests that starts no process, and shows all that another process would."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from manyarms.engine import Engine
from manyarms.engine.base import NO_COMMON, NoCommon, Tree


class Sent(Engine):
    """An engine in this process: whatever would be sent to another one is pickled, and outcomes come in another order."""

    workers = 3

    def map(
        self, function: Callable[..., Any], pieces: Sequence[Any], *, common: Any = NO_COMMON
    ) -> Iterator[tuple[Any, Any]]:
        more = () if isinstance(common, NoCommon) else (pickle.loads(pickle.dumps(common)),)
        for place in np.random.default_rng(len(pieces)).permutation(len(pieces)):
            piece = pickle.loads(pickle.dumps(pieces[place]))
            yield pieces[place], pickle.loads(pickle.dumps(function(piece, *more)))

    def reduce_parts(
        self,
        function: Callable[..., Any],
        pieces: Sequence[Any],
        combine: Callable[[Any, Any], Any],
        parts: int,
        *,
        common: Any = NO_COMMON,
    ) -> Iterator[Any]:
        trees = [Tree(len(pieces), combine) for _ in range(parts)]
        for piece, outcome in self.map(function, pieces, common=common):
            for tree, part in zip(trees, outcome, strict=True):
                tree.add(pieces.index(piece), part)
        yield from (tree.top for tree in trees)

    def train(self, function: Callable[..., Any], workers: int, **more: Any) -> Any:
        raise NotImplementedError
