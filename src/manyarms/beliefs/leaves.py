"""The leaves: what is known about each played action, given the root.

    theta_a | m ~ N(W_a m, Sigma_a),    G_a = sum x x^T / sigma^2,    B_a = sum r x / sigma^2        (thesis, Section 3.2.2)
    theta_a | m, data ~ N(S_a (Sigma_a^-1 W_a m + B_a), S_a),    S_a = (Sigma_a^-1 + G_a)^-1

G_a and B_a are the state; beside them each slot carries what decisions read, S_a (packed) and the part of the mean that does not
depend on the root, c_a = S_a B_a (with a known root, all of the mean: c_a = S_a (Sigma_a^-1 W_a m + B_a)).

One row (x, r) of a linear reward is a rank-one change: with s = S_a x and v = sigma^2 + x^T s,

    S_a <- S_a - s s^T / v,    c_a <- c_a + s (r - x^T c_a) / v,

and, since r | m ~ N(x^T c_a + s^T Sigma_a^-1 W_a m, v), the root sees u^T m = r - x^T c_a with variance v, where
u = W_a^T Sigma_a^-1 s. Nothing is inverted and no other action is touched.

Two things would cost digits, and both are seen coming. A row whose noise is far below the prior's spread (`SHARP`) makes S_a so
narrow in one direction that a table of S_a cannot hold it beside the others; and where Sigma_a is nearly singular (`STEEP`), S_a
is like that from the start. Such slots keep a square root of S_a, in the coordinates in which their prior is I, and
Sigma_a^-1 S_a is computed as I - G_a S_a while G_a is the smaller of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, cast

import numpy as np

from manyarms._base import linalg, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs.actions.catalogue import Catalogue
from manyarms.beliefs.growable import GrowableArray, SteadyArray
from manyarms.beliefs.mixing import MIXINGS, Mixing
from manyarms.errors import InvalidInput

SHARP = 1e8  # the square of the factor by which a row may narrow a direction before a square root is kept
STEEP = 1e6  # condition number of Sigma_a from which its inverse is avoided
PLAIN = 1e6  # how many times the variances of a root may be those of a leaf before differences of S_a would lose digits
FULL_AT_A_TIME = 1 << 21  # numbers in full d x d matrices that are alive at once


class Leaves:
    """Sufficient statistics and conditional posteriors of the played actions."""

    def __init__(self, mixing: Mixing, covariance: Array, actions: int | None = None) -> None:
        """`covariance` (d, d) shared by all actions, or (K, d, d)."""
        covariance = validate.covariance("covariance", covariance)
        self.mixing = validate.instance("mixing", mixing, Mixing, "a mixing, such as IdentityMixing()")
        self.dim = int(covariance.shape[-1])
        self.root_dim = mixing.root_dim(self.dim)
        self.packing = linalg.packing(self.dim)
        self.chunk = max(1, FULL_AT_A_TIME // self.dim**2)  # actions whose full matrices are made at a time
        self.shared = covariance.ndim == 2
        if actions is None:
            source = mixing.features if mixing.features is not None else (None if self.shared else covariance)
            if source is None:
                raise InvalidInput("actions", "None", "the number of actions, which nothing else determines")
            actions = len(source)
        actions = validate.count("actions", actions)
        for name, table in (("weights", mixing.features), ("covariance", None if self.shared else covariance)):
            if table is not None and len(table) != actions:
                raise InvalidInput(name, f"{len(table)} rows", f"one for each of the {actions} actions")
        self.catalogue = Catalogue(actions, mixing.features, distinct=not self.shared)
        if self.shared:
            self.covariance = covariance
            self.precision = linalg.inverse(covariance)
            self._steep = 0, bool(covariance.trace() * self.precision.trace() > STEEP * self.dim**2)
        else:
            self._steep = 0, False  # how many actions were looked at, and whether one was nearly singular
            self.covariances = SteadyArray((self.packing.size,), by_column=True)
            self._largest_prior = 0, 0.0  # how many actions were looked at, and the largest trace among them
            self.covariances.extend(self.packing.pack(covariance))
        self.counts = GrowableArray((), np.int64)
        self.G = GrowableArray((self.packing.size,))
        self.B = GrowableArray((self.dim,))
        self.S = GrowableArray((self.packing.size,), by_column=True)
        self.c = GrowableArray((self.dim,), by_column=True)
        self.sharp: dict[int, Array] = {}  # by slot, K_a with S_a = C_a K_a K_a^T C_a^T, where S_a cannot hold it
        self.played_weights: GrowableArray | None = None  # b_a of the played actions, by slot
        if mixing.features is not None and mixing.effects(np.zeros((1, self.root_dim))) is not None:
            self.played_weights = GrowableArray((int(mixing.features.shape[1]),), by_column=True)

    # ---- priors of single actions -------------------------------------------------------------------------------------

    def prior_covariance(self, ids: Ints) -> Array:
        """(n, d, d) Sigma_a."""
        if self.shared:
            return np.broadcast_to(self.covariance, (len(ids), self.dim, self.dim))
        return self.packing.unpack(self.covariances.rows[ids])

    def _prior_factor(self, ids: Ints) -> Array:
        """(d, d) or (n, d, d): lower triangular C_a with C_a C_a^T = Sigma_a."""
        return cast(Array, np.linalg.cholesky(self.covariance if self.shared else self.prior_covariance(ids)))

    def prior_sizes(self, ids: Ints) -> Array:
        """(n,) or (1,): the traces of Sigma_a."""
        if self.shared:
            return np.array([float(self.covariance.trace())])
        return self.packing.trace(self.covariances.rows[ids])

    def largest_prior_size(self) -> float:
        """The largest trace of Sigma_a, of all actions."""
        if self.shared:
            return float(self.covariance.trace())
        seen, largest = self._largest_prior
        if seen < len(self.covariances):
            largest = max(largest, float(self.packing.trace(self.covariances.rows[seen:]).max()))
            self._largest_prior = len(self.covariances), largest
        return largest

    def prior_precision(self, ids: Ints) -> Array:
        """(n, d, d) Sigma_a^-1."""
        if self.shared:
            return np.broadcast_to(self.precision, (len(ids), self.dim, self.dim))
        return linalg.inverse(self.prior_covariance(ids))

    def prior_variances(self, x: Array, ids: Ints | None) -> Array:
        """x^T Sigma_a x: one number (1,) where Sigma is shared, else one for each id (None: for every action)."""
        if self.shared:
            return np.array([float(x @ self.covariance @ x)])
        rows = self.covariances.rows
        return cast(Array, self.packing.bilinear(x, x) @ (rows if ids is None else rows[ids]).T)

    def check_new_covariance(self, covariance: Array | None, number: int) -> Array | None:
        """Prior covariances of new actions, checked and packed; None where all actions share theirs."""
        if self.shared:
            if covariance is not None:
                raise InvalidInput("covariance", validate.describe(covariance), "nothing: the actions share theirs")
            return None
        if covariance is None:
            raise InvalidInput("covariance", "None", f"{number} matrices of {self.dim} x {self.dim}")
        array = validate.covariance("covariance", covariance, self.dim)
        array = np.broadcast_to(array, (number, self.dim, self.dim)) if array.ndim == 2 else array
        if len(array) != number:
            raise InvalidInput("covariance", f"{len(array)} matrices", f"{number}, one for each new action")
        return self.packing.pack(array)

    # ---- learning -----------------------------------------------------------------------------------------------------

    def slot(self, action: int, known: Array | None) -> int:
        """Slot of an action; a new one starts at its prior (`known` is the root where it is known)."""
        slot, new = self.catalogue.play(action)
        if new:
            ids = np.array([action])
            self.counts.append(0)
            self.G.append(0.0)
            self.B.append(0.0)
            prior = self.covariance if self.shared else self.prior_covariance(ids)[0]
            self.S.append(self.packing.pack(prior))
            self.c.append(0.0 if known is None else self.mixing.apply(ids, known)[0])
            if self.played_weights is not None:
                self.played_weights.append(cast(Array, self.mixing.features)[action])
        return slot

    def slots(self, ids: Ints, known: Array | None) -> Ints:
        """Slots of distinct actions; those that nobody had played start at their prior, all in one step."""
        slots, new = self.catalogue.play_all(ids)
        if not len(new):
            return slots
        self.counts.extend(np.zeros(len(new), dtype=np.int64))
        for table in (self.G, self.B):
            table.extend(np.zeros((len(new), *table.rows.shape[1:])))
        if self.shared:
            prior = self.packing.pack(self.covariance)
            self.S.extend(np.broadcast_to(prior, (len(new), len(prior))))
        else:
            self.S.extend(self.covariances.rows[new])
        self.c.extend(np.zeros((len(new), self.dim)) if known is None else self.mixing.apply(new, known))
        if self.played_weights is not None:
            self.played_weights.extend(cast(Array, self.mixing.features)[new])
        return slots

    def observe_row(
        self, action: int, x: Array, r: float, noise_variance: float, known: Array | None
    ) -> tuple[Array, float, float] | None:
        """Learn one linear row; returns what the root sees, (u, variance, value), unless the root is known."""
        slot = self.slot(action, known)
        S = self.packing.unpack(self.S.rows[slot])
        c = self.c.rows[slot]
        value = r - float(x @ c)
        K = self.sharp.get(slot)
        if K is None and self.steep and not self.counts.rows[slot] and self.steep_of(np.array([action]))[0]:
            K = np.eye(self.dim)
        if K is None:
            new_S, gain, variance = linalg.condition(S, x, noise_variance)
            if variance > SHARP * noise_variance:
                K = self._own_factors(np.array([slot]))[0]
        if K is not None:
            C = self._prior_factors(np.array([action]))[0]
            self.sharp[slot], own_gain, variance = linalg.condition_half(K, x @ C, noise_variance)
            factor, gain = C @ self.sharp[slot], C @ own_gain
            new_S = factor @ factor.T
        seen = None
        if known is None:
            Sx = gain * variance
            if K is not None:
                towards = np.linalg.solve(C.T, own_gain * variance)
            elif self.steep:
                towards = self.towards(np.array([slot]), Sx[None], x[None])[0]
            else:
                towards = self._own(np.array([action]))[0] @ Sx
            seen = (self.mixing.lift(action, towards), variance, value)
        c += gain * value
        self.S.rows[slot] = self.packing.pack(new_S)
        self.counts.rows[slot] += 1
        self.G.rows[slot] += self.packing.pack(np.outer(x, x / noise_variance))
        self.B.rows[slot] += x * (r / noise_variance)
        return seen

    def replace(
        self, slots: Ints, G: Array, B: Array, known: Array | None, spread: float
    ) -> tuple[Array, Array] | None:
        """Give these slots new statistics, G packed and B (n, d); returns the change of the root's precision and information.

        spread: a bound on the prior variances of W_a m.
        """
        p = self.root_dim
        precision_change, information_change = np.zeros((p, p)), np.zeros(p)
        for start in range(0, len(slots), self.chunk):
            some = slice(start, start + self.chunk)
            where, ids = slots[some], self.catalogue.played.rows[slots[some]]
            full, right = self.packing.unpack(G[some]), B[some]
            centre = None if known is None else self.mixing.apply(ids, known)
            if centre is not None:  # S (Sigma^-1 m + B) = m + S (B - G m): nothing is inverted
                right = right - np.einsum("nij,nj->ni", full, centre)
            S, mean = linalg.shrink(self._prior_factor(ids), full, right)
            if centre is not None:
                mean += centre
            else:
                own = self.precision if self.shared else self.prior_precision(ids)
                if not self.steep and spread * np.trace(own, axis1=-2, axis2=-1).max() <= PLAIN:
                    # the change itself, which loses roundings of Sigma^-1: nothing to most priors
                    D = linalg.sandwich(own, self.packing.unpack(self.S.rows[where]) - S)
                    e = np.matmul(own, (mean - self.c.rows[where])[..., None])[..., 0]
                else:
                    D, e = linalg.told(own.reshape(-1, self.dim, self.dim), full, B[some], S, mean)
                    before = np.flatnonzero(self.packing.trace(self.G.rows[where]) > 0)
                    if len(before):
                        old_D, old_e = self.told(where[before])
                        D[before] -= old_D
                        e[before] -= old_e
                precision, information = self.mixing.gather(ids, D, e)
                precision_change += precision
                information_change += information
            self.c.rows[where] = mean
            self.G.rows[where] = G[some]
            self.B.rows[where] = B[some]
            self.S.rows[where] = self.packing.pack(S)
        return None if known is not None else (precision_change, information_change)

    def absorb(self, slots: Ints, rows: Array, values: Array, known: Array | None) -> tuple[Array, Array]:
        """Learn rows (n, d, d) with values (n, d) and noise of variance 1 on top of what these slots know, by square roots.

        Returns what the root sees: rows (n d, p) and values (n d,), again with variance 1.
        """
        ids, c = self.catalogue.played.rows[slots], self.c.rows[slots]
        C, K = self._prior_factors(ids), self._own_factors(slots)
        factors = C @ K
        found = linalg.condition_on_blocks(factors, c, rows, values)
        lifted = np.empty((0, self.root_dim))
        if known is None:
            told = found.told_rows.copy()
            before = np.flatnonzero(self.packing.trace(self.G.rows[slots]) > 0)
            told[before] = told[before] @ self.pulls(slots[before])  # where nobody had played, c_a is W_a m itself
            for i in [i for i, slot in enumerate(slots.tolist()) if slot in self.sharp]:
                told[i] = np.linalg.solve(C[i].T, K[i] @ (found.told_rows[i] @ factors[i]).T).T
            lifted = self.mixing.lift_all(np.repeat(ids, self.dim), told.reshape(-1, self.dim))
        new = factors @ found.right
        self.S.rows[slots] = self.packing.pack(new @ np.swapaxes(new, 1, 2))
        self.c.rows[slots] = found.mean
        columns = np.swapaxes(rows, 1, 2)
        self.G.rows[slots] += self.packing.pack(columns @ rows)
        self.B.rows[slots] += np.einsum("ndk,nk->nd", columns, values)
        keep = (found.shrunk * SHARP < 1) | self.steep_of(ids)
        for i, slot in enumerate(slots.tolist()):
            if slot in self.sharp or keep[i]:
                self.sharp[slot] = K[i] @ found.right[i]
        return lifted, found.told_values.ravel()

    def _own_factors(self, slots: Ints) -> Array:
        """(n, d, d): K_a with S_a = C_a K_a K_a^T C_a^T; I where nobody had played."""
        out = np.broadcast_to(np.eye(self.dim), (len(slots), self.dim, self.dim)).copy()
        before = np.flatnonzero(self.packing.trace(self.G.rows[slots]) > 0)
        if len(before):
            C = self._prior_factors(self.catalogue.played.rows[slots[before]])
            out[before] = np.linalg.solve(C, linalg.half(self.packing.unpack(self.S.rows[slots[before]])))
        for i, slot in enumerate(slots.tolist()) if self.sharp else ():
            if slot in self.sharp:
                out[i] = self.sharp[slot]
        return out

    def _prior_factors(self, ids: Ints) -> Array:
        """(n, d, d): C_a."""
        return np.broadcast_to(self._prior_factor(ids), (len(ids), self.dim, self.dim))

    def pulls(self, slots: Ints) -> Array:
        """(n, d, d): S_a Sigma_a^-1, how the mean of theta_a moves with W_a m."""
        S, own = self.packing.unpack(self.S.rows[slots]), self._own(self.catalogue.played.rows[slots])
        return linalg.pulls(own, self.packing.unpack(self.G.rows[slots]), S) if self.steep else S @ own

    def towards(self, slots: Ints, Sx: Array, x: Array) -> Array:
        """(n, d): Sigma_a^-1 S_a x, how scores move with W_a m, for contexts x (n, d) and Sx = S_a x."""
        own = self._own(self.catalogue.played.rows[slots])
        if not self.steep:
            return Sx @ self.precision if self.shared else np.einsum("nij,nj->ni", own, Sx)
        G = self.packing.unpack(self.G.rows[slots])
        out = np.einsum("nij,nj->ni", np.broadcast_to(own, G.shape), Sx)
        few = np.trace(G, axis1=1, axis2=2) <= np.trace(own, axis1=1, axis2=2)
        out[few] = x[few] - np.einsum("nij,nj->ni", G[few], Sx[few])
        return cast(Array, out)

    @property
    def steep(self) -> bool:
        """Whether some Sigma_a is nearly singular."""
        seen, steep = self._steep
        if not self.shared and seen < len(self.covariances):
            for start in range(seen, len(self.covariances), self.chunk):
                ids = np.arange(start, min(start + self.chunk, len(self.covariances)))
                left = np.square(np.diagonal(self._prior_factor(ids), axis1=1, axis2=2)).min(axis=1)
                steep = steep or bool((self.prior_sizes(ids) > STEEP * left).any())
            self._steep = len(self.covariances), steep
        return steep

    def steep_of(self, ids: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(n,): whose Sigma_a is nearly singular."""
        if self.shared or not self.steep:
            return np.full(len(ids), self.steep)
        conditions = self.prior_sizes(ids) * np.trace(self.prior_precision(ids), axis1=1, axis2=2)
        return np.asarray(conditions > STEEP * self.dim**2, dtype=np.bool_)

    def _own(self, ids: Ints) -> Array:
        """(1, d, d) or (n, d, d): Sigma_a^-1."""
        return self.precision[None] if self.shared else self.prior_precision(ids)

    def told(self, slots: Ints) -> tuple[Array, Array]:
        """What these slots tell about W_a m: precisions (n, d, d) and information (n, d)."""
        unpack = self.packing.unpack
        ids, G, S = self.catalogue.played.rows[slots], self.G.rows[slots], self.S.rows[slots]
        return linalg.told(self._own(ids), unpack(G), self.B.rows[slots], unpack(S), self.c.rows[slots])

    # ---- scores -------------------------------------------------------------------------------------------------------

    def scores(self, X: Array, M: Array | None, slots: Ints | None) -> tuple[Array, Array]:
        """Mean and variance (n, P) of x^T theta_a given the root, for contexts X (n, d) and roots M (n, p) (None: known)."""
        S, c = self.S.rows, self.c.rows
        if slots is not None:
            S, c = S[slots], c[slots]
        n = len(X)
        mean = X @ c.T
        quadratic = self.packing.bilinear(X, X)
        if M is None:
            return mean, quadratic @ S.T
        effects = self.mixing.effects(M) if self.shared and not self.steep else None
        if effects is None:
            return self._scores_one_by_one(X, M, slots, mean, quadratic @ S.T)
        # sum_l b_al x^T S_a Sigma^-1 psi_l: with the effects' coefficients stacked under those of the variance, one product
        # with the table of S_a gives everything
        psi = effects @ self.precision
        coefficients = np.concatenate([quadratic[:, None], self.packing.bilinear(X[:, None, :], psi)], axis=1)
        table = (coefficients.reshape(-1, self.packing.size) @ S.T).reshape(n, -1, len(c))
        if self.played_weights is None:
            mean += table[:, 1]
        else:
            weights = self.played_weights.rows if slots is None else self.played_weights.rows[slots]
            mean += np.einsum("nlp,lp->np", table[:, 1:], weights.T)
        return mean, table[:, 0]

    def _scores_one_by_one(
        self, X: Array, M: Array, slots: Ints | None, mean: Array, variance: Array
    ) -> tuple[Array, Array]:
        """The general form, x^T S_a Sigma_a^-1 W_a m, in chunks of actions with full matrices."""
        slots = np.arange(len(self.counts)) if slots is None else slots
        ids = self.catalogue.played.rows[slots]
        for start in range(0, len(ids), self.chunk):
            some = slice(start, start + self.chunk)
            pulls = np.swapaxes(self.pulls(slots[some]), 1, 2)
            for i, (x, m) in enumerate(zip(X, M, strict=True)):
                mean[i, some] += np.einsum("ai,ai->a", pulls @ x, self.mixing.apply(ids[some], m))
        return mean, variance

    def pulled(self, x: Array, slots: Ints) -> Array:
        """(n, p): W_a^T Sigma_a^-1 S_a x, how the score of each slot moves with the root."""
        ids = self.catalogue.played.rows[slots]
        out = np.empty((len(slots), self.root_dim))
        for start in range(0, len(slots), self.chunk):
            some = slice(start, start + self.chunk)
            v = self.packing.unpack(self.S.rows[slots[some]]) @ x
            v = self.towards(slots[some], v, np.broadcast_to(x, v.shape))
            out[some] = self.mixing.lift_all(ids[some], v)
        return out

    def listed_scores(
        self,
        Z: Array,
        ids: Ints,
        known: Array | None,
        centre: Callable[[int, Ints], Array],
        factor: Array | None = None,
    ) -> tuple[Array, Array]:
        """Mean and variance (n, m) of z_a^T theta_a for listed actions, played or not, each with its own context Z (n, m, d).

            mean z_a^T c_a + u_a^T w_a,    variance z_a^T S_a z_a + |F^T W_a^T u_a|^2,    u_a = Sigma_a^-1 S_a z_a

        centre(i, ids) gives w_a = W_a m of the i-th context, (len(ids), d). `known`: the root where it is known, c_a being
        the whole mean then. `factor` F of the root's covariance, where it is to be integrated out. Where nobody has
        played a, S_a = Sigma_a, c_a = 0 and u_a = z_a.
        """
        n, m, d = Z.shape
        mean, variance = np.empty((n, m)), np.empty((n, m))
        slots = self.catalogue.slots(ids)
        same = n > 1 and Z.strides[0] == 0  # one matrix of contexts, repeated: all but the root's part is computed once
        if same:
            Z = Z[:1]
        step = max(1, FULL_AT_A_TIME // (d * (d + len(Z))))
        for start in range(0, m, step):
            some = slice(start, start + step)
            z, here, played = Z[:, some], ids[some], slots[some] >= 0
            where = slots[some][played]
            if self.shared:
                Sz = z @ self.covariance
                Sz[:, played] = _times(self.packing.unpack(self.S.rows[where]), z[:, played])
            else:
                S = self.covariances.rows[here]
                S[played] = self.S.rows[where]
                Sz = _times(self.packing.unpack(S), z)
            c = np.zeros((len(here), d)) if known is None else self.mixing.apply(here, known).copy()
            c[played] = self.c.rows[where]
            mean[:, some] = np.einsum("nad,ad->na", z, c)
            variance[:, some] = np.einsum("nad,nad->na", z, Sz)
            if known is not None:
                continue
            u = z.copy()
            if len(where):
                if self.steep:
                    u[:, played] = _times(np.swapaxes(self.pulls(where), 1, 2), z[:, played])
                elif self.shared:
                    u[:, played] = Sz[:, played] @ self.precision
                else:
                    u[:, played] = _times(self.prior_precision(here[played]), Sz[:, played])
            for i in range(n):
                ui = u[0 if same else i]
                mean[i, some] += np.einsum("ad,ad->a", ui, centre(i, here))
                if factor is not None:
                    pulled = self.mixing.lift_all(here, ui) @ factor
                    variance[i, some] += np.einsum("ap,ap->a", pulled, pulled)
        return mean, variance

    # ---- state --------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, AnyArray]:
        """Everything that the next decision depends on."""
        catalogue = self.catalogue
        out: dict[str, AnyArray] = {
            "played": catalogue.played.rows,
            "retired": catalogue.retired_ids(),
            "sizes": np.array([catalogue.units.founders, catalogue.size, int(self.shared)]),
            "counts": self.counts.rows,
            "G": self.G.rows,
            "B": self.B.rows,
            # in one order of memory, whatever room the tables have: equal states are then equal files
            "S": np.ascontiguousarray(self.S.rows),
            "c": np.ascontiguousarray(self.c.rows),
        }
        kept = sorted(self.sharp)
        out["sharp_slots"] = np.array(kept, dtype=np.int64)
        out["sharp"] = np.array([self.sharp[slot] for slot in kept]).reshape(-1, self.dim, self.dim)
        out["covariance"] = self.covariance if self.shared else self.covariances.rows
        return out | prefixed("mixing.", self.mixing.arrays())

    @classmethod
    def restored(cls, mixing_kind: str, arrays: dict[str, AnyArray], dim: int) -> Self:
        """The leaves that `arrays()` describes."""
        founders, size, shared = (int(v) for v in arrays["sizes"])
        parts = under("mixing.", arrays)
        features = parts.pop("features", None)
        if features is not None:
            parts["features"] = features[:founders]  # the others come later, as they did before
        mixing = MIXINGS[mixing_kind].restored(parts, dim)
        covariance = arrays["covariance"]
        leaves = cls(mixing, covariance if shared else linalg.packing(dim).unpack(covariance[:founders]), founders)
        catalogue = leaves.catalogue
        if size > founders:
            mixing.add(None if features is None else features[founders:], size - founders)
            if not shared:
                leaves.covariances.extend(covariance[founders:])
            catalogue.add(size - founders, mixing.features)
        catalogue.play_all(catalogue.check("played", arrays["played"], unique=True))
        catalogue.retire(catalogue.check("retired", arrays["retired"], unique=True))
        for name in ("counts", "G", "B", "S", "c"):
            if len(arrays[name]) != len(arrays["played"]):
                raise InvalidInput(
                    name, f"{len(arrays[name])} rows", f"{len(arrays['played'])}, one for each played action"
                )
            getattr(leaves, name).extend(arrays[name])
        leaves.sharp = dict(zip(arrays["sharp_slots"].tolist(), arrays["sharp"].copy(), strict=True))
        if leaves.played_weights is not None:
            leaves.played_weights.extend(cast(Array, mixing.features)[arrays["played"]])
        return leaves

    @property
    def nbytes(self) -> int:
        """Bytes of the tables of played actions, of the prior's tables and of the catalogue's index."""
        tables = [self.counts, self.G, self.B, self.S, self.c, self.catalogue.played]
        tables += [] if self.played_weights is None else [self.played_weights]
        prior = 0 if self.mixing.features is None else self.mixing.features.nbytes
        prior += self.covariance.nbytes if self.shared else self.covariances.nbytes
        kept = sum(factor.nbytes for factor in self.sharp.values())
        return (
            sum(t.nbytes for t in tables)
            + kept
            + prior
            + self.catalogue.units.nbytes
            + 100 * len(self.catalogue.slot_of)
        )


def _times(matrices: Array, z: Array) -> Array:
    """(n, m, d): A_a z_na for one matrix for each action (m, d, d)."""
    return cast(Array, np.matmul(matrices, np.ascontiguousarray(z.transpose(1, 2, 0))).transpose(2, 0, 1))


__all__ = ["Leaves"]
