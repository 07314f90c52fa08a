"""A softmax over a short list that was made for a whole segment of contexts: what large catalogues are often served with."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.linalg import GATHERED
from manyarms._base.private import kept
from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.errors import InvalidInput
from manyarms.policies.base import POLICIES
from manyarms.policies.softmax import OfLinearScores
from manyarms.policies.support import SupportedPolicy, softmax_rows


@POLICIES.register("segment-softmax")
class SegmentSoftmaxPolicy(OfLinearScores, SupportedPolicy):
    """pi(a|x) in proportion to exp(x^T beta_a / T) over the list of x's segment, and 0 elsewhere.

    weights: beta (K, d), float64 or float32. centres: (S, d), the segment of x is that of the nearest. lists: (S, k0), the
    ids of each segment's actions, distinct. A context costs S + k0 products of length d, whatever K is, where the best k0
    of all actions for every context cost K of them.
    """

    _argument = "weights"

    def __init__(
        self, weights: npt.ArrayLike, centres: npt.ArrayLike, lists: npt.ArrayLike, temperature: float = 1.0
    ) -> None:
        super().__init__(weights, temperature)
        self.weights = self.actions
        self.centres = kept(validate.as_array("centres", centres, (None, self.dim)), centres)
        self.lists = kept(self._ids("lists", lists, (len(self.centres), None)), lists)
        if not self.lists.shape[1] or (np.diff(np.sort(self.lists, axis=1), axis=1) == 0).any():
            raise InvalidInput("lists", "an empty list, or an action twice in one", "distinct actions for each segment")

    def __repr__(self) -> str:
        segments, k0 = self.lists.shape
        return (
            f"SegmentSoftmaxPolicy(actions={self.action_count}, segments={segments}, k0={k0}, "
            f"temperature={self.temperature:g})"
        )

    def segment_of(self, X: Array) -> Ints:
        """The nearest centre of each context, (b,)."""
        X = self._contexts(X)
        closeness = X @ self.centres.T - 0.5 * np.einsum("sd,sd->s", self.centres, self.centres)
        return np.asarray(closeness.argmax(axis=1), dtype=np.int64)

    def support_block(self, X: Array) -> tuple[Ints, Array]:
        """Ids (b, k0) and probabilities (b, k0) of each context's segment."""
        ids = self.lists[self.segment_of(X)]
        x = self._linear.scaled(X)
        scores = np.empty(ids.shape)
        step = max(1, GATHERED // (ids.shape[1] * x.shape[1]))
        for start in range(0, len(x), step):
            part = slice(start, start + step)
            scores[part] = np.matmul(self.weights[ids[part]], x[part, :, None])[..., 0]
        return ids, softmax_rows(scores)

    def arrays(self) -> dict[str, AnyArray]:
        return {**super().arrays(), "centres": self.centres, "lists": self.lists}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Self:
        return cls(arrays["weights"], arrays["centres"], arrays["lists"], **cls._options(spec, arrays))


__all__ = ["SegmentSoftmaxPolicy"]
