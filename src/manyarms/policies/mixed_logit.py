"""The arithmetic of mixed-logit policies: means of softmaxes over draws of noise that all contexts share.

    pi(a|x) = E[softmax(h^T mu + sigma ||h|| eps)_a]  ~  (1/S) sum over s of softmax(h^T mu + sigma ||h|| eps_s)_a

(thesis, Appendix E.3.2). exp(score + scale eps) = exp(score) exp(scale eps): for contexts of one scale sigma ||h||, as
normalised ones are, the sums over actions and over draws are products of matrices.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies.base import ACTIONS, PolicyRows, action_blocks
from manyarms.policies.softmax import LinearScores

STEEP = 50.0  # up to this scale, exponentials of the noise can be written out: normals of size 7 give exp(350)
DRAWN = 1 << 20  # numbers of noise in a block
CACHED = 1 << 22  # numbers of noise that a policy caches; more are drawn again when they are needed
ROUNDING = 1e-3  # of a score, that an exponential may take part in
TILE = 64  # actions whose noise comes from one generator, so that any part of the noise can be drawn alone


class Noise:
    """Standard normals eps (K, S), one row an action, the same whenever and in whatever part they are asked for."""

    def __init__(self, actions: int, draws: int, seed: int) -> None:
        self.actions, self.draws, self.seed = actions, draws, seed
        self._cache: Array | None = None

    def block(self, first: int, last: int) -> Array:
        """(last - first, S)."""
        if self._cache is None and self.actions * self.draws <= CACHED:
            self._cache = self._drawn(0, self.actions)
        return self._drawn(first, last) if self._cache is None else self._cache[first:last]

    def at(self, ids: Ints) -> Array:
        """(m, S) of the actions ids (m,)."""
        if self.actions * self.draws <= CACHED:
            return self.block(0, self.actions)[ids]
        out = np.empty((len(ids), self.draws))
        for tile in np.unique(ids // TILE):
            here = np.flatnonzero(ids // TILE == tile)
            out[here] = self._drawn(int(tile) * TILE, min((int(tile) + 1) * TILE, self.actions))[ids[here] % TILE]
        return out

    def _drawn(self, first: int, last: int) -> Array:
        parts = []
        for tile in range(first // TILE, (last - 1) // TILE + 1):
            begin, end = max(first - tile * TILE, 0), min(last - tile * TILE, TILE)
            rng = np.random.default_rng([self.seed, tile])
            parts.append(rng.standard_normal((end, self.draws))[begin:])
        return np.concatenate(parts)


class MixedLogitRows(PolicyRows):
    """Means of softmaxes at b contexts; those of a scale so large that the factors might overflow go one by one."""

    def __init__(self, linear: LinearScores, h: AnyArray, scale: Array, noise: Noise) -> None:
        self._linear, self._h, self._scale, self._noise = linear, h, scale, noise
        self.total = np.ones(len(h))  # every draw's softmax sums to 1
        self._top: Array | None = None
        self._log_z: Array = np.empty((len(h), 0))
        steep = scale > STEEP
        self._alike = [(float(s), np.flatnonzero(scale == s)) for s in np.unique(scale[~steep])]
        self._steep = np.flatnonzero(steep)

    def score(self, first: int, last: int) -> Array:
        """The most probable action is the one with the largest mean."""
        return self._linear.scores(self._h, first, last)

    def mass(self, first: int, last: int) -> Array:
        self._prepare()
        out = np.empty((len(self._h), last - first))
        for begin, end, scores, noise in self._blocks(first, last):
            here = slice(begin - first, end - first)
            for scale, rows in self._alike:
                inverse = np.exp(-self._log_z[rows])
                out[rows, here] = np.exp(scores[rows]) * (inverse @ np.exp(scale * noise).T)
            for row in self._steep:
                out[row, here] = np.exp(self._logits(scores, row, noise) - self._log_z[row]).sum(axis=1)
        return np.divide(out, self._noise.draws, out=out)

    def mass_at(self, ids: Ints) -> Array:
        out = np.empty(ids.shape)
        for column in range(ids.shape[1]):
            out[:, column] = self.draws_at(ids[:, column]).mean(axis=1)
        return out

    def draws_at(self, ids: Ints) -> Array:
        """(b, S): every draw's probability of one action per context, (b,)."""
        top = self._prepare()
        scores = self._linear.scores_at(self._h, ids[:, None])[:, 0] - top
        return np.asarray(np.exp(scores[:, None] + self._scale[:, None] * self._noise.at(ids) - self._log_z))

    def only(self, index: Ints) -> PolicyRows:
        out = MixedLogitRows(self._linear, self._h[index], self._scale[index], self._noise)
        out._top, out._log_z = self._prepare()[index], self._log_z[index]
        return out

    def _prepare(self) -> Array:
        """(b,) the largest scores; and log Z (b, S), from them, of every draw."""
        if self._top is None:
            top, largest = np.full(len(self._h), -np.inf), np.zeros(len(self._h))
            for first, last in action_blocks(self._noise.actions):
                scores = self.score(first, last)
                np.maximum(top, scores.max(axis=1), out=top)
                np.maximum(largest, np.abs(scores).max(axis=1), out=largest)
            self._refuse_unresolved(largest)
            self._top = top
            z = np.zeros((len(top), self._noise.draws))
            z[self._steep] = -np.inf
            for _, _, scores, noise in self._blocks(0, self._noise.actions):
                for scale, rows in self._alike:
                    z[rows] += np.exp(scores[rows]) @ np.exp(scale * noise)
                for row in self._steep:
                    logits = self._logits(scores, row, noise)
                    shift = logits.max(axis=0)
                    z[row] = np.logaddexp(z[row], shift + np.log(np.exp(logits - shift).sum(axis=0)))
            for _, rows in self._alike:
                z[rows] = np.log(z[rows])
            self._log_z = z
        return self._top

    def _refuse_unresolved(self, largest: Array) -> None:
        """Scores whose rounding, or that of their noise, would show in the exponentials."""
        limit = ROUNDING / float(np.finfo(self._h.dtype).eps)
        most = float(largest.max(initial=0.0))
        if most > limit or self._scale.max(initial=0.0) > ROUNDING / float(np.finfo(np.float64).eps):
            came = f"scores up to {most:.3g} with noise of scale {self._scale.max(initial=0.0):.3g}"
            raise InvalidInput("X", came, f"scores below {limit:.2g}, for probabilities in {self._h.dtype}")

    def _logits(self, scores: Array, row: np.int64, noise: Array) -> Array:
        return np.asarray(scores[row][:, None] + self._scale[row] * noise)

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, Array, Array]]:
        """Bounds, scores less the largest (b, k), and noise (k, S) of a few actions at a time."""
        assert self._top is not None
        width = max(1, min(ACTIONS, DRAWN // self._noise.draws))
        for begin in range(first, last, width):
            end = min(begin + width, last)
            yield begin, end, self.score(begin, end) - self._top[:, None], self._noise.block(begin, end)


__all__ = ["MixedLogitRows", "Noise"]
