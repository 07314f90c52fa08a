"""The softmax on a support that another policy gives: objective-aware parametrisation.

    pi(a|x) = exp(enc(x)^T beta_a / T) / sum over b in S0(x) of exp(enc(x)^T beta_b / T),    a in S0(x)

The best policies of IPS, cIPS and ES live on the logging policy's support S0(x), which may hold a hundred actions of a million
(thesis, Section 7.1.3).
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Array, Ints, Spec, loose
from manyarms.errors import InvalidInput, StorageError
from manyarms.policies.base import POLICIES, restore_policy
from manyarms.policies.encoders import ContextEncoder
from manyarms.policies.softmax import OfLinearScores
from manyarms.policies.support import SupportedPolicy, softmax_rows

PLACED = 1 << 22  # comparisons of listed ids with the one that is looked for, at once


@POLICIES.register("support-softmax")
class SupportSoftmaxPolicy(OfLinearScores, SupportedPolicy):
    """The softmax of scores enc(x)^T beta_a / T over the actions that `support` plays at x, and 0 elsewhere.

    actions: beta (K, l). support: a policy that lists its actions, such as TopSoftmaxPolicy; what it gives probability 0 is not
    in the support. encoder: what is made of the context for the scores (the support sees the context itself).
    """

    def __init__(
        self,
        actions: npt.ArrayLike,
        support: SupportedPolicy,
        temperature: float = 1.0,
        encoder: ContextEncoder | None = None,
    ) -> None:
        super().__init__(actions, temperature, encoder)
        if not isinstance(support, SupportedPolicy):
            raise InvalidInput(
                "support", validate.describe(support), "a policy that lists its actions (SupportedPolicy)"
            )
        if support.action_count != self.action_count:
            came = f"a policy over {support.action_count} actions"
            raise InvalidInput("support", came, f"one over the {self.action_count} rows of actions")
        if support.dim is not None and support.dim != self.dim:
            raise InvalidInput("support", f"contexts of length {support.dim}", f"length {self.dim}, as the scores take")
        self.restricts_to = support

    def __repr__(self) -> str:
        return f"SupportSoftmaxPolicy(actions={self.action_count}, support={self.restricts_to!r})"

    def support_block(self, X: Array) -> tuple[Ints, Array]:
        """Ids (b, k0), as the support gives them, and their probabilities (b, k0)."""
        ids, there = self.restricts_to.support_block(X)
        scores = self._linear.scores_at(self._linear.scaled(X), ids).astype(np.float64)
        scores[there <= 0] = -np.inf
        return ids, softmax_rows(scores)

    def spec(self) -> Spec:
        return {**super().spec(), "support": self.restricts_to.saved_spec()}

    def arrays(self) -> dict[str, AnyArray]:
        return super().arrays() | prefixed("support/", self.restricts_to.arrays())

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Self:
        told = loose(spec)
        support = restore_policy(told["support"], under("support/", arrays))
        if not isinstance(support, SupportedPolicy):
            raise StorageError(f"a support of type {told['support']['type']!r}, which lists no actions")
        return cls(arrays["weights"], support, **cls._options(told, arrays))


def places(support: Ints, actions: Ints, probabilities: Array | None = None) -> Ints:
    """(n,): at which column of its support (n, k0) each action (n,) stands; refused where one is missing.

    An action that is listed with probability 0 is not in the support.
    """
    out = np.empty(len(support), dtype=np.int64)
    step = max(1, PLACED // max(1, support.shape[1]))
    for start in range(0, len(support), step):
        part = slice(start, start + step)
        here = support[part] == actions[part][:, None]
        if probabilities is not None:
            here &= probabilities[part] > 0
        out[part] = here.argmax(axis=1)
        missing = ~here.any(axis=1)
        if missing.any():
            row = start + int(np.argmax(missing))
            came = f"a support that misses action {int(actions[row])}, which was played in row {row}"
            raise InvalidInput("support", came, "supports that hold the logged action in every row")
    return out


__all__ = ["SupportSoftmaxPolicy", "places"]
