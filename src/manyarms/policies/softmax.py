"""Softmax policies over linear scores, on all actions or on the best k0 of them.

    pi(a|x) = exp(x^T beta_a / T) / Z(x),    Z(x) = sum over b of exp(x^T beta_b / T)

x may be what an encoder makes of the context. Z is summed block by block; the scores of all actions at all contexts never
exist at once.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, validate
from manyarms._base.explanation import Explanation
from manyarms._base.linalg import inner_products_at
from manyarms._base.top_k import inner_product_top_k
from manyarms._base.typing import AnyArray, Array, Ints, Spec
from manyarms.errors import InvalidInput
from manyarms.policies.base import POLICIES, PolicyRows, StreamedPolicy, action_blocks, row_blocks
from manyarms.policies.encoders import ContextEncoder, fitting, float_array, restored_encoder, saved_encoder
from manyarms.policies.in_context import InContext, Summed
from manyarms.policies.support import SupportedPolicy, softmax_rows

# no score may be larger: what is computed from scores is then finite
LARGEST_SCORE = {np.dtype(np.float64): 1e300, np.dtype(np.float32): 1e37}
# scores up to this size can be exponentiated as they are: neither they nor a sum of a billion overflows or vanishes
SAFE = {np.dtype(np.float64): 600.0, np.dtype(np.float32): 60.0}


# up to this size the rounding of a score does not show in its exponential, however its products were summed
RESOLVED = {np.dtype(np.float64): 1e8, np.dtype(np.float32): 1e3}


class LinearScores:
    """Scores enc(x)^T beta_a / T in blocks; computed in the precision of beta, which is float64 or float32."""

    def __init__(
        self, name: str, weights: npt.ArrayLike, temperature: float, encoder: ContextEncoder | None = None
    ) -> None:
        self.name = name
        self.weights = float_array(name, weights, (None, None))
        self.temperature = validate.positive("temperature", temperature)
        self.encoder = encoder
        self.dim = fitting(encoder, int(self.weights.shape[1]), name)

    @cached_property
    def largest_norm(self) -> float:
        """The largest ||beta_a||: |x^T beta_a| <= ||x|| largest_norm."""
        return float(np.sqrt(np.einsum("kd,kd->k", self.weights, self.weights).max()))

    @cached_property
    def largest_entry(self) -> float:
        """The largest |beta_ai|."""
        return max(float(self.weights.max()), -float(self.weights.min()))

    def scaled(self, X: Array) -> AnyArray:
        """Encoded contexts over T, so that scores are plain products; refused where a product might overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = (X if self.encoder is None else self.encoder.encode(X)) / self.temperature
        largest = float(np.abs(x).max(initial=0.0))
        precision = self.weights.dtype
        if not largest * max(1.0, self.largest_entry * self.weights.shape[1]) < LARGEST_SCORE[precision]:
            came = f"contexts that give numbers up to {largest:.3g} beside {self.name} up to {self.largest_entry:.3g}"
            raise InvalidInput("X", came, f"products below {LARGEST_SCORE[precision]:g} in size, in {precision}")
        return np.asarray(x, dtype=precision)

    def scores(self, x: AnyArray, first: int, last: int, out: AnyArray | None = None) -> AnyArray:
        """(b, last - first) scores of scaled contexts."""
        return np.matmul(x, self.weights[first:last].T, out=out)

    def scores_at(self, x: AnyArray, ids: Ints) -> AnyArray:
        """(b, m) scores of the actions `ids` (b, m)."""
        return inner_products_at(x, self.weights, ids)

    def best(self, x: AnyArray, k: int) -> tuple[Ints, Array]:
        """Ids and scores of the k best actions, falling."""
        return inner_product_top_k(x, self.weights, k)


class OfLinearScores(StreamedPolicy):
    """What policies of linear scores share; beta has a row for every action (or, in two stages, for every cluster).

    A subclass names its array of beta, and the settings that are saved and that its constructor takes by these names.
    """

    _argument = "actions"
    _settings: tuple[str, ...] = ("temperature",)

    def __init__(self, actions: npt.ArrayLike, temperature: float = 1.0, encoder: ContextEncoder | None = None) -> None:
        self._linear = LinearScores(self._argument, actions, temperature, encoder)
        super().__init__(len(self._linear.weights))
        self.dim = self._linear.dim

    @property
    def actions(self) -> AnyArray:
        """beta, (K, l)."""
        return self._linear.weights

    @property
    def temperature(self) -> float:
        """T."""
        return self._linear.temperature

    @property
    def encoder(self) -> ContextEncoder | None:
        """What is made of the context first; None where scores take it as it is."""
        return self._linear.encoder

    def _explained(self, X: Array, row: int) -> Explanation:
        h = np.asarray(self._linear.scaled(X)[0], dtype=np.float64)
        names = () if self.encoder is None else tuple(f"h[{j}]" for j in range(len(h)))
        beta = np.asarray(self._linear.weights[self._scored(row)], dtype=np.float64)
        return Explanation(h * self.temperature, h * beta, quantity="score", names=names)

    def _scored(self, row: int) -> int:
        """Which row of beta scores an action."""
        return row

    def spec(self) -> Spec:
        return {name: getattr(self, name) for name in self._settings} | saved_encoder(self.encoder)[0]

    def arrays(self) -> dict[str, AnyArray]:
        return {"weights": self.actions, **saved_encoder(self.encoder)[1]}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Self:
        return cls(arrays["weights"], **cls._options(spec, arrays))

    @classmethod
    def _options(cls, spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> dict[str, Any]:
        """What was saved beside beta, as the constructor takes it."""
        options = {name: spec[name] for name in cls._settings}
        encoder = restored_encoder(spec, arrays)
        return options if encoder is None else {**options, "encoder": encoder}


class _SoftmaxRows(PolicyRows):
    """exp(score - shift), the shift one number per context, or none where no score can be large.

    best: (b, 1), the action whose score the shift is, where scores are so large that it must be formed anew beside others:
    products of blocks round otherwise than products of single actions. held: the scores of all actions, where there is one
    context: they were formed for the shift, and are not formed again.
    """

    def __init__(
        self,
        linear: LinearScores,
        x: AnyArray,
        shift: AnyArray | None,
        best: Ints | None = None,
        held: AnyArray | None = None,
    ) -> None:
        self._linear, self._x, self.shift, self._best, self._held = linear, x, shift, best, held
        self._buffer: AnyArray = np.empty((len(x), 0), dtype=x.dtype)

    def score(self, first: int, last: int) -> Array:
        room = self._room(last - first)
        if self._held is None:
            return self._linear.scores(self._x, first, last, room)
        room[:] = self._held[:, first:last]
        return room

    def score_at(self, ids: Ints) -> Array:
        return self._linear.scores_at(self._x, ids)

    def mass(self, first: int, last: int) -> Array:
        return self._exp(self.score(first, last))

    def mass_at(self, ids: Ints) -> Array:
        if self._best is None:
            return self._exp(self.score_at(ids))
        scores = self.score_at(np.hstack([self._best, ids]))
        return np.exp(np.minimum(scores[:, 1:] - scores[:, :1], 0.0))

    def mass_among(self, ids: Ints) -> Array:
        # beside the best of all actions those on offer may all be 0 in floating point, though not beside each other
        scores = self.score_at(ids)
        mass: Array = np.exp(scores - scores.max(axis=1, keepdims=True))
        return mass

    def _exp(self, scores: Array) -> Array:
        """In place."""
        if self.shift is not None:
            scores -= self.shift
        return np.exp(scores, out=scores)

    def only(self, index: Ints) -> PolicyRows:
        shift, best = (None if part is None else part[index] for part in (self.shift, self._best))
        held = self._held if len(index) == 1 else None  # of the one context that there is
        return _SoftmaxRows(self._linear, self._x[index], shift, best, held)

    def _room(self, width: int) -> AnyArray:
        if self._buffer.shape[1] != width:
            self._buffer = np.empty((len(self._x), width), dtype=self._x.dtype)
        return self._buffer


@POLICIES.register("softmax")
class SoftmaxPolicy(OfLinearScores):
    """pi(a|x) in proportion to exp(enc(x)^T beta_a / T).

    actions: beta (K, l), float64, or float32 for half the memory and time at six digits. temperature: T > 0. encoder: what
    is made of the context first (None: enc(x) = x and l = d). With parameters for every action the scores are the thesis's
    heavyweight ones; with given embeddings and a learned Projection, the lightweight ones (thesis, Section 7.1.3 and
    Appendix D.4.1).
    """

    def __repr__(self) -> str:
        return f"SoftmaxPolicy(actions={self.action_count}, dim={self.dim}, temperature={self.temperature:g})"

    def rows(self, X: Array) -> _SoftmaxRows:
        """The policy at a block of contexts."""
        x = self._linear.scaled(X)
        largest = float(np.sqrt(np.einsum("bd,bd->b", x, x).max(initial=0.0))) * self._linear.largest_norm
        if largest <= SAFE[x.dtype]:
            return _SoftmaxRows(self._linear, x, None)
        if not largest <= RESOLVED[x.dtype]:
            best, shift = self._linear.best(x, 1)
            return _SoftmaxRows(self._linear, x, shift, best)
        shift = np.full(len(x), -np.inf, dtype=x.dtype)
        held = np.empty((1, self.action_count), dtype=x.dtype) if len(x) == 1 else None
        for first, last in action_blocks(self.action_count):
            scores = self._linear.scores(x, first, last, None if held is None else held[:, first:last])
            np.maximum(shift, scores.max(axis=1), out=shift)
        return _SoftmaxRows(self._linear, x, shift[:, None], held=held)

    def in_context(self, x: npt.ArrayLike) -> InContext:
        """The policy in one context (d,): draws and probabilities of rows that cost one pass over all actions together."""
        return Summed(self.rows(self._one_context(x)), list(action_blocks(self.action_count)))

    def log_normaliser(self, X: npt.ArrayLike) -> Array:
        """log Z(x_i), (n,)."""
        X = self._contexts(X)
        out = np.empty(len(X))
        for part in row_blocks(len(X)):
            rows = self.rows(X[part])
            out[part] = np.log(rows.normaliser(self.action_count))
            if rows.shift is not None:
                out[part] += rows.shift[:, 0]
        return out


@POLICIES.register("top-softmax")
class TopSoftmaxPolicy(OfLinearScores, SupportedPolicy):
    """The softmax of the k0 largest scores x^T beta_a / T, and 0 elsewhere: a logging policy with a small support.

    Equal scores go to the lowest id. `support(X)` gives what a log keeps of it; k0 = 1 is the greedy policy.
    """

    _argument = "weights"
    _settings = ("temperature", "k0")

    def __init__(self, weights: npt.ArrayLike, k0: int, temperature: float = 1.0) -> None:
        super().__init__(weights, temperature)
        self.k0 = validate.count("k0", k0)
        if self.k0 > self.action_count:
            raise InvalidInput("k0", self.k0, f"at most the number of actions, {self.action_count}")

    def __repr__(self) -> str:
        return f"TopSoftmaxPolicy(actions={self.action_count}, k0={self.k0}, temperature={self.temperature:g})"

    def support_block(self, X: Array) -> tuple[Ints, Array]:
        """Ids (b, k0) and probabilities (b, k0), falling."""
        ids, scores = self._linear.best(self._linear.scaled(X), self.k0)
        return ids, softmax_rows(scores.astype(np.float64))


__all__ = ["LinearScores", "OfLinearScores", "SoftmaxPolicy", "TopSoftmaxPolicy"]
