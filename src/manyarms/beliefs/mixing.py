"""How an action's parameter hangs on the root: theta_a | m ~ N(W_a m, Sigma_a).

Four forms of W_a, one interface. What all of them share is that the mean score of an action nobody has played is
*linear in a row of features*: x^T W_a m = features_a . coefficients(x, m), so that grouping equal actions, scanning many
of them and bounding whole blocks of them need to be written only once.

    IdentityMixing      W_a = I            no features (every action alike), coefficient x^T m
    CommonMixing(W)     W_a = W            no features, coefficient x^T W m              (linear chains, thesis, Appendix B.3)
    MixingWeights(b)    W_a = b_a^T kron I features b_a, coefficients x^T psi_l      (mixed effects, thesis, Section 3.1)
    MixingMatrices(W)   any W_a (d x p)    features vec(W_a), coefficients vec(x m^T) (sDM, thesis, Section 6.3)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self, cast

import numpy as np

from manyarms._base import block_diagonal, linalg, validate
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs.growable import SteadyArray
from manyarms.errors import InvalidInput


class Mixing(ABC):
    """What leaves need to know about W_a."""

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return MIXINGS.name_of(type(self))

    @property
    @abstractmethod
    def features(self) -> Array | None:
        """(K, f) rows that tell actions apart, or None where all actions are alike."""

    @abstractmethod
    def root_dim(self, dim: int) -> int:
        """Length p of the root."""

    @abstractmethod
    def coefficients(self, X: Array, M: Array) -> Array:
        """(n, f): the unplayed score means are features @ coefficients."""

    def effects(self, M: Array) -> Array | None:
        """(n, L, d): what the actions' features weigh, W_a m = sum_l features_al effects_l; L = 1 without features.

        None where W_a m is no such sum.
        """
        return None

    @abstractmethod
    def apply(self, ids: Ints, m: Array) -> Array:
        """(n, d): W_a m for each id."""

    @abstractmethod
    def lift(self, action: int, v: Array) -> Array:
        """(p,): W_a^T v."""

    @abstractmethod
    def lift_all(self, ids: Ints, V: Array) -> Array:
        """(n, p): W_a^T v_a, row by row."""

    def sizes(self, ids: Ints, dim: int) -> Array:
        """(n,): the sum of squares of the entries of W_a."""
        out = np.zeros(len(ids))
        for row in np.eye(dim):
            lifted = self.lift_all(ids, np.broadcast_to(row, (len(ids), dim)))
            out += np.einsum("ap,ap->a", lifted, lifted)
        return out

    def row_sizes(self, rows: Array, dim: int) -> Array:
        """(n,): a bound on the `sizes` that actions with these features (n, f) would have."""
        return dim * cast(Array, np.einsum("af,af->a", rows, rows))

    def largest_size(self, dim: int) -> float:
        """The largest of the `sizes` of all actions."""
        features = self.features
        return float(self.sizes(np.arange(1 if features is None else len(features)), dim).max())

    @abstractmethod
    def gather(self, ids: Ints, D: Array, e: Array) -> tuple[Array, Array]:
        """Sums over the ids of W_a^T D_a W_a (p, p) and of W_a^T e_a (p,)."""

    def gather_parts(self, ids: Ints, D: Array, e: Array, parts: int) -> tuple[Array, Array]:
        """The same, but of the first only so many blocks on its diagonal, (parts, p / parts, p / parts)."""
        precision, information = self.gather(ids, D, e)
        return block_diagonal.diagonal_blocks(precision, parts), information

    def root_variances(self, x: Array, factor: Array, ids: Ints) -> Array:
        """(n,): |S^T W_a^T x|^2 for each id, S S^T the covariance of the root."""
        lifted = self.lift_all(ids, np.broadcast_to(x, (len(ids), len(x)))) @ factor
        return cast(Array, np.einsum("up,up->u", lifted, lifted))

    @abstractmethod
    def add(self, rows: Array | None, number: int) -> None:
        """Append the rows of new actions."""

    def replace(self, ids: Ints, rows: Array, dim: int) -> None:
        """Give actions other rows of features, (n, f)."""
        raise InvalidInput("mixing", type(self).__name__, "a mixing whose actions have features of their own")

    @abstractmethod
    def check_rows(self, rows: object, number: int | None) -> tuple[Array | None, int]:
        """Validate what describes new actions before anything changes."""

    def arrays(self) -> dict[str, AnyArray]:
        """Its state."""
        return {}

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray], dim: int) -> Self:
        """The mixing that `arrays` describe, for actions of dimension d."""
        return cls()


MIXINGS: Registry[type[Mixing]] = Registry("mixing", package="manyarms.beliefs", group="manyarms.mixings")


@MIXINGS.register("identity")
class IdentityMixing(Mixing):
    """W_a = I: every action hangs on the root itself."""

    @property
    def features(self) -> Array | None:
        return None

    def root_dim(self, dim: int) -> int:
        return dim

    def coefficients(self, X: Array, M: Array) -> Array:
        return cast(Array, np.einsum("nd,nd->n", X, M)[:, None])

    def effects(self, M: Array) -> Array:
        return M[:, None, :]

    def apply(self, ids: Ints, m: Array) -> Array:
        return cast(Array, np.broadcast_to(m, (len(ids), len(m))))

    def lift(self, action: int, v: Array) -> Array:
        return v

    def lift_all(self, ids: Ints, V: Array) -> Array:
        return V

    def sizes(self, ids: Ints, dim: int) -> Array:
        return np.full(len(ids), float(dim))

    def gather(self, ids: Ints, D: Array, e: Array) -> tuple[Array, Array]:
        return D.sum(axis=0), e.sum(axis=0)

    def root_variances(self, x: Array, factor: Array, ids: Ints) -> Array:
        lifted = self.lift(0, x) @ factor
        return np.full(len(ids), float(lifted @ lifted))

    def add(self, rows: Array | None, number: int) -> None:
        pass

    def check_rows(self, rows: object, number: int | None) -> tuple[Array | None, int]:
        if rows is not None:
            raise InvalidInput("weights", validate.describe(rows), "nothing: actions of this agent have no weights")
        return None, validate.count("number", 1 if number is None else number)


@MIXINGS.register("common")
class CommonMixing(IdentityMixing):
    """W_a = W: every action hangs on the same linear map of the root."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = validate.owned(validate.as_array("matrix", matrix, (None, None)))

    def root_dim(self, dim: int) -> int:
        if dim != len(self.matrix):
            raise InvalidInput("matrix", f"shape {self.matrix.shape}", f"a matrix with {dim} rows")
        return int(self.matrix.shape[1])

    def coefficients(self, X: Array, M: Array) -> Array:
        return super().coefficients(X, M @ self.matrix.T)

    def effects(self, M: Array) -> Array:
        return super().effects(M @ self.matrix.T)

    def apply(self, ids: Ints, m: Array) -> Array:
        return super().apply(ids, self.matrix @ m)

    def lift(self, action: int, v: Array) -> Array:
        return v @ self.matrix

    def lift_all(self, ids: Ints, V: Array) -> Array:
        return V @ self.matrix

    def sizes(self, ids: Ints, dim: int) -> Array:
        return np.full(len(ids), float(np.vdot(self.matrix, self.matrix)))

    def gather(self, ids: Ints, D: Array, e: Array) -> tuple[Array, Array]:
        return self.matrix.T @ D.sum(axis=0) @ self.matrix, e.sum(axis=0) @ self.matrix

    def arrays(self) -> dict[str, AnyArray]:
        return {"matrix": self.matrix}

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray], dim: int) -> Self:
        return cls(arrays["matrix"])


class _FeatureMixing(Mixing):
    """The features of a catalogue as a table that new actions extend."""

    def __init__(self, features: Array) -> None:
        self._table = SteadyArray.of(features)
        self._largest = 0, 0.0  # how many rows were looked at, and the largest sum of squares in one

    def largest_size(self, dim: int) -> float:
        seen, largest = self._largest
        if seen < len(self.features):
            largest = max(largest, float(self.row_sizes(self.features[seen:], dim).max()))
            self._largest = len(self.features), largest
        return largest

    @property
    def features(self) -> Array:
        return self._table.rows

    def add(self, rows: Array | None, number: int) -> None:
        assert rows is not None
        self._table.extend(rows)

    def replace(self, ids: Ints, rows: Array, dim: int) -> None:
        seen, largest = self._largest
        before = ids[ids < seen]
        if len(before) and self.sizes(before, dim).max() >= largest:
            self._largest = 0, 0.0  # it may have been the largest: they are all looked at again
            seen = 0
        self._table.replace(ids, rows)
        if seen and len(before):
            self._largest = seen, max(largest, float(self.sizes(before, dim).max()))

    def arrays(self) -> dict[str, AnyArray]:
        return {"features": self.features}

    def _matches(self, rows: Array, number: int | None) -> int:
        if number is not None and validate.count("number", number) != len(rows):
            raise InvalidInput("number", number, f"{len(rows)}, the number of rows given")
        return len(rows)


@MIXINGS.register("weights")
class MixingWeights(_FeatureMixing):
    """W_a = b_a^T kron I: a weighted sum of L effects of dimension d."""

    def __init__(self, weights: Array) -> None:
        super().__init__(validate.as_array("weights", weights, (None, None)))

    def root_dim(self, dim: int) -> int:
        return int(self.features.shape[1]) * dim

    def coefficients(self, X: Array, M: Array) -> Array:
        n, d = X.shape
        return cast(Array, np.matmul(M.reshape(n, -1, d), X[:, :, None])[:, :, 0])

    def effects(self, M: Array) -> Array:
        return M.reshape(len(M), int(self.features.shape[1]), -1)

    def apply(self, ids: Ints, m: Array) -> Array:
        b = self.features[ids]
        return b @ m.reshape(b.shape[1], -1)

    def lift(self, action: int, v: Array) -> Array:
        return cast(Array, np.multiply.outer(self.features[action], v).ravel())

    def lift_all(self, ids: Ints, V: Array) -> Array:
        b = self.features[ids]
        return (b[:, :, None] * V[:, None, :]).reshape(len(b), -1)

    def sizes(self, ids: Ints, dim: int) -> Array:
        return self.row_sizes(self.features[ids], dim)

    def gather(self, ids: Ints, D: Array, e: Array) -> tuple[Array, Array]:
        b = self.features[ids]
        L, d = b.shape[1], D.shape[1]
        pairs = (b[:, :, None] * b[:, None, :]).reshape(len(b), L * L)
        # sum_a (b_a b_a^T) kron D_a as one product, then put the four axes (l, m, i, j) in the order of the root
        blocks = (pairs.T @ D.reshape(len(b), d * d)).reshape(L, L, d, d)
        return blocks.transpose(0, 2, 1, 3).reshape(L * d, L * d), (b.T @ e).ravel()

    def gather_parts(self, ids: Ints, D: Array, e: Array, parts: int) -> tuple[Array, Array]:
        b = self.features[ids]
        if parts != b.shape[1]:
            return super().gather_parts(ids, D, e, parts)
        # one block for each effect, sum_a b_al^2 D_a: what two effects have to do with each other is never computed
        return (np.square(b).T @ D.reshape(len(b), -1)).reshape(parts, *D.shape[1:]), (b.T @ e).ravel()

    def root_variances(self, x: Array, factor: Array, ids: Ints) -> Array:
        b = self.features[ids]
        return cast(Array, np.einsum("ul,ul->u", b @ self.root_form(x, factor), b))

    def root_form(self, x: Array, factor: Array) -> Array:
        """(L, L): C with b^T C b the variance that the root gives to weights b, C_lm = x^T Cov(psi_l, psi_m) x."""
        T = np.einsum("d,ldp->lp", x, factor.reshape(-1, len(x), factor.shape[1]))
        return cast(Array, T @ T.T)

    def check_rows(self, rows: object, number: int | None) -> tuple[Array | None, int]:
        if rows is None:
            raise InvalidInput("weights", "None", f"rows of {self.features.shape[1]} mixing weights")
        array = np.atleast_2d(validate.as_floats("weights", cast(Array, rows)))
        array = validate.as_array("weights", array, (None, int(self.features.shape[1])))
        return array, self._matches(array, number)

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray], dim: int) -> Self:
        return cls(arrays["features"])


@MIXINGS.register("matrices")
class MixingMatrices(_FeatureMixing):
    """Any W_a, one d x p matrix per action."""

    def __init__(self, matrices: Array) -> None:
        array = validate.as_array("matrices", matrices, (None, None, None))
        self.dim, self.root = int(array.shape[1]), int(array.shape[2])
        super().__init__(array.reshape(len(array), -1))

    def _of(self, ids: Ints | int) -> Array:
        where = ids if isinstance(ids, int) else linalg.as_slice(ids)
        return cast(Array, self.features[where].reshape(-1, self.dim, self.root))

    def root_dim(self, dim: int) -> int:
        if dim != self.dim:
            raise InvalidInput("matrices", f"matrices of {self.dim} x {self.root}", f"matrices with {dim} rows")
        return self.root

    def coefficients(self, X: Array, M: Array) -> Array:
        return cast(Array, (X[:, :, None] * M[:, None, :]).reshape(len(X), -1))

    def apply(self, ids: Ints, m: Array) -> Array:
        return self._of(ids) @ m

    def lift(self, action: int, v: Array) -> Array:
        return cast(Array, v @ self._of(action)[0])

    def lift_all(self, ids: Ints, V: Array) -> Array:
        return cast(Array, np.matmul(V[:, None, :], self._of(ids))[:, 0, :])

    def sizes(self, ids: Ints, dim: int) -> Array:
        return self.row_sizes(self.features[ids], dim)

    def row_sizes(self, rows: Array, dim: int) -> Array:
        return cast(Array, np.einsum("af,af->a", rows, rows))

    def gather(self, ids: Ints, D: Array, e: Array) -> tuple[Array, Array]:
        W = self._of(ids)
        rows = W.reshape(-1, self.root)  # those of all W_a, and of all D_a W_a: one product
        return rows.T @ np.matmul(D, W).reshape(-1, self.root), np.ascontiguousarray(e).ravel() @ rows

    def check_rows(self, rows: object, number: int | None) -> tuple[Array | None, int]:
        if rows is None:
            raise InvalidInput("weights", "None", f"matrices of {self.dim} x {self.root}")
        array = validate.as_floats("weights", cast(Array, rows))
        if array.ndim == 2:
            array = array[None]
        array = validate.as_array("weights", array, (None, self.dim, self.root))
        return array.reshape(len(array), -1), self._matches(array, number)

    @classmethod
    def restored(cls, arrays: dict[str, AnyArray], dim: int) -> Self:
        return cls(arrays["features"].reshape(len(arrays["features"]), dim, -1))


__all__ = ["MIXINGS", "CommonMixing", "IdentityMixing", "Mixing", "MixingMatrices", "MixingWeights"]
