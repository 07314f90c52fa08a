"""Small pieces of linear algebra that the beliefs share: packed symmetric matrices and stable rank-one updates."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from manyarms._base.typing import AnyArray, Array, Ints

GATHERED = 1 << 22  # numbers in a block of gathered rows
MUCH = 64.0  # times as large, and no matter
ROUNDING = 8 * float(np.finfo(np.float64).eps)


class Packing:
    """Symmetric d x d matrices stored as their upper triangle, d(d+1)/2 numbers each.

    With S_a packed as rows of one table, x^T S_a y for *all* a is a single product of that table with `bilinear(x, y)`:
    half the memory of full matrices, and the fastest layout we measured for scoring many actions.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.rows, self.columns = np.triu_indices(dim)
        self.size = len(self.rows)
        self._position = np.empty((dim, dim), dtype=np.int64)
        self._position[self.rows, self.columns] = np.arange(self.size)
        self._position[self.columns, self.rows] = np.arange(self.size)
        self._diagonal = self.rows == self.columns
        self._times = np.where(self._diagonal, 1.0, 2.0)  # entries beside the diagonal stand for two

    def pack(self, matrices: Array) -> Array:
        """(..., d, d) to (..., d(d+1)/2); the lower triangle is taken to mirror the upper one."""
        return matrices[..., self.rows, self.columns]

    def unpack(self, packed: Array) -> Array:
        """(..., d(d+1)/2) to full matrices (..., d, d)."""
        return packed[..., self._position]

    def unpack_rows(self, packed: Array) -> Array:
        """The same of rows (n, d(d+1)/2) that lie one after the other in memory: and so do the matrices."""
        return packed.take(self._position, axis=1)

    def trace(self, packed: Array) -> Array:
        """(...): traces of packed matrices (..., d(d+1)/2)."""
        return cast(Array, packed[..., self._diagonal].sum(axis=-1))

    def bilinear(self, x: Array, y: Array) -> Array:
        """Coefficients f with f . packed(S) = x^T S y for symmetric S; x and y of shape (..., d)."""
        left = x[..., self.rows] * y[..., self.columns]
        if x is y:
            left *= self._times
            return left
        right = x[..., self.columns] * y[..., self.rows]
        right[..., self._diagonal] = 0.0
        left += right
        return left


@lru_cache(maxsize=64)
def packing(dim: int) -> Packing:
    """The packing of d x d matrices (index tables are made once per d)."""
    return Packing(dim)


def inverse(matrices: Array) -> Array:
    """Inverse of symmetric positive definite matrices (..., d, d), symmetric to the last bit."""
    result = np.linalg.inv(matrices)
    return (result + np.swapaxes(result, -1, -2)) / 2


def row_norms(matrices: Array) -> Array:
    """(...,): the largest sum of absolute values in a row of symmetric (..., d, d), a bound on their eigenvalues."""
    return cast(Array, np.abs(matrices).sum(axis=-1).max(axis=-1))


def raised(matrix: Array, least: float) -> Array:
    """A symmetric matrix with the eigenvalues below `least` raised to it; the same matrix where there is none."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= least:
        return matrix
    out = (vectors * np.maximum(values, least)) @ vectors.T
    return cast(Array, (out + out.T) / 2)


def shrink(C: Array, G: Array, b: Array) -> tuple[Array, Array]:
    """S = (Sigma^-1 + G)^-1 and S b, for Sigma = C C^T (n, d, d), positive semi-definite G and vectors b (n, d).

    S = C (I + C^T G C)^-1 C^T: the matrix in the middle has no eigenvalue below 1 however large or
    small Sigma is. Should rounding in a huge G spoil even that, its eigenvalues are clipped where they must lie.
    S b is solved for, not multiplied: where contexts are nearly collinear and noise is tiny, S alone has too few digits.
    """
    d = C.shape[-1]
    Ct = np.swapaxes(C, -1, -2)
    middle = sandwich(Ct, G)
    right = np.concatenate([np.broadcast_to(np.eye(d), middle.shape), Ct @ b[..., None]], axis=-1)
    try:
        solved = np.linalg.solve(middle + np.eye(d), right)
        inner = solved[..., :d]
        diagonal = np.diagonal(inner, axis1=-2, axis2=-1)
        sound = bool(((diagonal > 0) & (diagonal <= 1 + 1e-9)).all())
    except np.linalg.LinAlgError:
        sound = False
    if not sound:
        values, vectors = np.linalg.eigh(middle)
        solved = vectors @ ((np.swapaxes(vectors, -1, -2) @ right) / (1 + np.maximum(values, 0.0))[..., None])
    return sandwich(C, solved[..., :d]), (C @ solved[..., d:])[..., 0]


def sandwich(A: Array, middle: Array) -> Array:
    """A M A^T for symmetric M (n, d, d) and one A (d, d) or a stack of them; symmetric to the last bit."""
    if A.ndim == 2 and np.count_nonzero(A) == np.count_nonzero(diagonal := np.diagonal(A)):
        result = middle * np.multiply.outer(diagonal, diagonal)
    else:
        result = A @ middle @ np.swapaxes(A, -1, -2)
    return (result + np.swapaxes(result, -1, -2)) / 2


def condition(covariance: Array, x: Array, noise_variance: float) -> tuple[Array, Array, float]:
    """Covariance of theta after one noisy observation of x^T theta: (new covariance, gain, total variance).

    gain k = S x / (x^T S x + s^2). The Joseph form (I - k x^T) S (I - k x^T)^T + s^2 k k^T equals the usual
    S - k (S x)^T in exact arithmetic and stays positive and accurate when the noise is tiny or contexts nearly repeat.
    Noise below the rounding error of x^T S x itself is raised to it: no observation can tell more than that.
    """
    Sx = covariance @ x
    noise_variance = max(noise_variance, ROUNDING * float(x @ x) * float(covariance.trace()))
    total = float(x @ Sx) + noise_variance
    gain = Sx / total
    left = covariance - gain[:, None] * Sx
    right = left @ x - noise_variance * gain  # zero in exact arithmetic: this is the correction of rounding
    left -= right[:, None] * gain
    left += left.T
    left *= 0.5
    return left, gain, total


def condition_half(factor: Array, x: Array, noise_variance: float) -> tuple[Array, Array, float]:
    """`condition` for a covariance that is held as a square root, F F^T: (new F, gain, total variance), by Potter's update."""
    w = x @ factor
    total = float(w @ w) + noise_variance
    Sx = factor @ w
    return factor - np.outer(Sx, w / (total + np.sqrt(noise_variance * total))), Sx / total, total


def condition_factor(factor: Array, mean: Array, u: Array, variance: float, value: float) -> None:
    """In place: N(mean, S S^T) given that u^T m was seen as `value` with `variance`.

    Potter's square-root update, S <- S - g (S w) w^T with w = S^T u and g = 1 / (t + sqrt(v t)), t = w^T w + v. The
    covariance S S^T is positive semi-definite by construction, and nothing is factorised or inverted again.
    """
    w = u @ factor
    total = float(w @ w) + variance
    Sw = factor @ w
    mean += Sw * ((value - float(u @ mean)) / total)
    w *= 1.0 / (total + np.sqrt(variance * total))
    factor -= Sw[:, None] * w


class Conditioned(NamedTuple):
    """What `condition_on_blocks` finds."""

    right: Array  # (n, d, d): the new factors are T times it
    mean: Array  # (n, d)
    shrunk: Array  # (n,): the square of the smallest factor by which a direction became narrower
    told_rows: Array  # (n, d, d)
    told_values: Array  # (n, d)


def condition_on_rows(factor: Array, mean: Array, rows: Array, values: Array) -> tuple[Array, Array]:
    """(mean, factor) of N(mean, F F^T) given that rows (n, p) times m were seen as values (n,), each with variance 1.

    With R the triangle of the stacked matrix [I; rows F], the new factor is F R^-1, and the mean moves by F times its
    least-squares solution: no square is ever summed, so that what is lost is a rounding of the rows, not of their squares.
    """
    from scipy.linalg import solve_triangular  # late: it takes a while to import, and only batches need it

    p = len(mean)
    stacked = np.zeros((p + len(rows), p + 1))
    stacked[:p, :p] = np.eye(p)
    stacked[p:, :p] = rows @ factor
    stacked[p:, p] = values - rows @ mean
    triangle = cast(Array, np.linalg.qr(stacked, mode="r"))
    new = np.ascontiguousarray(solve_triangular(triangle[:p, :p], factor.T, trans="T", check_finite=False).T)
    return mean + new @ triangle[:p, p], new


def condition_on_blocks(factors: Array, means: Array, rows: Array, values: Array) -> Conditioned:
    """Many vectors at once: theta_a ~ N(c_a, T_a T_a^T) given rows R_a theta_a (n, d, d), seen as values (n, d) with variance 1.

    With R T = P s Q^T, the covariance becomes T Q (1 + s^2)^-1 Q^T T^T. Given c_a alone, the values P^T (y - R c) / sqrt(1 + s^2)
    are independent with variance 1, and P^T R / sqrt(1 + s^2) is how they move with c_a: what the rows tell about it.
    """
    P, s, Qt = np.linalg.svd(rows @ factors)
    shrunk = 1.0 / np.sqrt(1.0 + s * s)
    surprise = np.einsum("nki,nk->ni", P, values - np.einsum("nkd,nd->nk", rows, means))
    turned = factors @ np.swapaxes(Qt, 1, 2)
    moved = means + np.einsum("ndi,ni->nd", turned, s * shrunk**2 * surprise)
    told = (np.swapaxes(P, 1, 2) @ rows) * shrunk[:, :, None]
    right = np.swapaxes(Qt, 1, 2) * shrunk[:, None, :]
    return Conditioned(right, moved, shrunk[:, 0] ** 2, told, shrunk * surprise)


def half(matrices: Array) -> Array:
    """T with T T^T the given symmetric positive semi-definite matrices (n, d, d); what rounding made negative is 0."""
    values, vectors = np.linalg.eigh(matrices)
    return cast(Array, vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def rows_of_sums(G: Array, B: Array) -> tuple[Array, Array]:
    """Rows R (n, d, d) and values y (n, d) with R^T R = G and R^T y = B, of sums over rows.

    What lies below the rounding of G is no information: rows that it would make are 0.
    """
    d = G.shape[-1]
    values, vectors = np.linalg.eigh(G)
    real = values > 2 * d * ROUNDING * values[:, -1:]
    root = np.sqrt(np.where(real, values, 1.0))
    turned = np.einsum("nji,nj->ni", vectors, B)
    return (
        np.where(real, root, 0.0)[:, :, None] * np.swapaxes(vectors, 1, 2),
        np.where(real, turned / root, 0.0),
    )


def triangles(rows: Array, labels: Ints, number: int, start: Array | None = None) -> Array:
    """(number, w, w) upper triangles R_a with R_a^T R_a = sum of z z^T over the rows z (n, w) labelled a; QR squares nothing.

    start: triangles of rows that came before. Rows of one label are taken a few at a time, all labels at once.
    """
    w = rows.shape[1]
    out = np.zeros((number, w, w)) if start is None else start.copy()
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=number)
    rank = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    step = 2 * w
    together = max(1, GATHERED // (w * (w + step)))
    turn = rank // step
    by_turn = np.argsort(turn, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(turn))])
    for first in range(0, int(counts.max(initial=0)), step):
        now = by_turn[ends[first // step] : ends[first // step + 1]]
        of_label = labels[order[now]]  # rising
        active = np.flatnonzero(counts > first)
        for begin in range(0, len(active), together):
            some = active[begin : begin + together]
            these = slice(*np.searchsorted(of_label, [some[0], some[-1] + 1]))
            stacked = np.zeros((len(some), w + step, w))
            stacked[:, :w] = out[some]
            stacked[np.searchsorted(some, of_label[these]), w + rank[now[these]] - first] = rows[order[now[these]]]
            out[some] = np.linalg.qr(stacked, mode="r")
    return out


def evidence_factor(factor: Array, precision: Array) -> Array:
    """T with T T^T = (Sigma^-1 + E)^-1 for Sigma = F F^T and positive semi-definite E, one matrix or a stack.

    T = F (I + F^T E F)^-1/2. The matrix in the middle has no eigenvalue below 1; where rounding in a huge E says otherwise,
    they are put there.
    """
    Ft = np.swapaxes(factor, -1, -2)
    middle = Ft @ precision @ factor
    middle = (middle + np.swapaxes(middle, -1, -2)) / 2
    try:
        lower = np.linalg.cholesky(middle + np.eye(middle.shape[-1]))
        found = np.linalg.solve(lower, Ft)
        # no variance can have grown
        sound = bool((np.square(found).sum(axis=-2) <= (1 + 1e-7) * np.square(Ft).sum(axis=-2)).all())
    except np.linalg.LinAlgError:
        sound = False
    if not sound:
        values, vectors = np.linalg.eigh(middle)
        return cast(Array, (factor @ vectors) / np.sqrt(1.0 + np.maximum(values, 0.0))[..., None, :])
    return cast(Array, np.swapaxes(found, -1, -2))


def told(own: Array, G: Array, B: Array, S: Array, c: Array) -> tuple[Array, Array]:
    """What theta ~ N(m, Sigma) with evidence (G, B) tells about m: a precision (n, d, d) and an information vector (n, d).

    With own = Sigma^-1 (1 or n, d, d), S = (own + G)^-1 and c = S B: own - own S own = G - G S G, and own c = B - G c, in the
    form that cancels less. The first loses roundings of Sigma^-1, the second roundings of G: whichever is smaller, or
    not much larger where one form serves all.
    """
    sizes, own_sizes = np.trace(G, axis1=1, axis2=2), np.trace(own, axis1=1, axis2=2)
    if (sizes <= MUCH * own_sizes).all():
        D, e = G - G @ S @ G, B - np.einsum("nij,nj->ni", G, c)
    elif (own_sizes <= MUCH * sizes).all():
        D, e = own - own @ S @ own, np.einsum("nij,nj->ni", np.broadcast_to(own, S.shape), c)
    else:
        D, e, few = np.empty_like(S), np.empty_like(c), sizes <= own_sizes
        for some in (few, ~few):
            D[some], e[some] = told(own if len(own) == 1 else own[some], G[some], B[some], S[some], c[some])
        return D, e
    return (D + np.swapaxes(D, 1, 2)) / 2, e


def pulls(own: Array, G: Array, S: Array) -> Array:
    """(n, d, d): S Sigma^-1 = I - S G, how the mean of theta moves with m (see `told`), in the form that cancels less."""
    out = S @ own
    few = np.trace(G, axis1=1, axis2=2) <= np.trace(own, axis1=1, axis2=2)
    out[few] = np.eye(S.shape[-1]) - S[few] @ G[few]
    return out


def factor_from_precision(precision: Array) -> Array:
    """S with S S^T = precision^-1, for one matrix or a stack; S is upper triangular."""
    lower = np.linalg.cholesky(precision)
    eye = np.broadcast_to(np.eye(precision.shape[-1]), precision.shape)
    return cast(Array, np.swapaxes(np.linalg.solve(lower, eye), -1, -2))


def inner_products_at(x: AnyArray, rows: AnyArray, ids: Ints) -> AnyArray:
    """(b, m): x_i . rows[ids_ij] for x (b, d), rows (K, d) and ids (b, m), in blocks of gathered rows."""
    out = np.empty(ids.shape, dtype=rows.dtype)
    step = max(1, GATHERED // max(1, ids.shape[1] * rows.shape[1]))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        np.einsum("bd,bmd->bm", x[part], rows[ids[part]], out=out[part])
    return out


def as_slice(places: Ints) -> Ints | slice:
    """Places as a slice where they follow each other: what it reads is then no copy."""
    if not len(places) or int(places[-1]) - int(places[0]) != len(places) - 1 or (np.diff(places) != 1).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1)


def first_rows(labels: AnyArray) -> Ints:
    """Position of the first occurrence of each label in a sorted array of labels."""
    return np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
