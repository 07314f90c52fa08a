"""The leaves: what is known about each played action, given the root.

    theta_a | m ~ N(W_a m, Sigma_a),    G_a = sum x x^T / sigma^2,    B_a = sum r x / sigma^2        (thesis, Section 3.2.2)
    theta_a | m, data ~ N(S_a (Sigma_a^-1 W_a m + B_a), S_a),    S_a = (Sigma_a^-1 + G_a)^-1

G_a and B_a are the state; beside them each slot carries what decisions read, S_a (packed) and the part of the mean that does not
depend on the root, c_a = S_a B_a (with a known root, all of the mean: c_a = S_a (Sigma_a^-1 W_a m + B_a)).

One row (x, r) of a linear reward is a rank-one change: with s = S_a x and v = sigma^2 + x^T s,

    S_a <- S_a - s s^T / v,    c_a <- c_a + s (r - x^T c_a) / v,

and, since r | m ~ N(x^T c_a + s^T Sigma_a^-1 W_a m, v), the root sees u^T m = r - x^T c_a with variance v, where
u = W_a^T Sigma_a^-1 s. Nothing is inverted and no other action is touched.

Two things would cost digits, and both are seen coming. A row whose noise is far below the spread of S_a (`SHARP`) makes S_a so
narrow in one direction that a table of S_a cannot hold it beside the others: the widest is what rounds, whether or not the row
looks there, so that |x|^2 tr S_a is asked for, before anything is lost. And where Sigma_a is nearly singular
(action_priors.py), S_a is like that from the start. Such slots keep a square root of S_a, in the coordinates in which their prior
is I, and Sigma_a^-1 S_a is computed as I - G_a S_a while G_a is the smaller of the two.
"""

from __future__ import annotations

from typing import ClassVar, Self, cast

import numpy as np

from manyarms._base import linalg, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs.action_priors import FULL_AT_A_TIME, STEEP, ActionPriors
from manyarms.beliefs.actions.catalogue import ActionCatalogue
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.mixing import MIXINGS, Mixing
from manyarms.errors import InvalidInput

SHARP = (
    1e7  # how many times its noise's variance a row's score may have, by its length alone, before a square root is kept
)
PLAIN = 1e-8 / float(np.finfo(np.float64).eps)  # see `Leaves.plain`


class Leaves(ActionPriors):
    """Sufficient statistics and conditional posteriors of the played actions."""

    drifts: ClassVar[bool] = False
    """Whether theta_a changes with time (drift/leaves.py)."""

    def __init__(self, mixing: Mixing, covariance: Array, actions: int | None = None) -> None:
        """`covariance` (d, d) shared by all actions, or (K, d, d)."""
        super().__init__(covariance)
        self.mixing = validate.instance("mixing", mixing, Mixing, "a mixing, such as IdentityMixing()")
        self.root_dim = mixing.root_dim(self.dim)
        tables = {"weights": mixing.features, "covariance": None if self.shared else self.covariances}
        lengths = {name: len(table) for name, table in tables.items() if table is not None}
        if actions is None:
            if not lengths:
                raise InvalidInput("actions", "None", "the number of actions, which nothing else determines")
            actions = next(iter(lengths.values()))
        actions = validate.count("actions", actions)
        for name, length in lengths.items():
            if length != actions:
                raise InvalidInput(name, f"{length} rows", f"one for each of the {actions} actions")
        self.catalogue = ActionCatalogue(actions, mixing.features, distinct=not self.shared)
        self.counts = GrowableArray((), np.int64)
        self.G = GrowableArray((self.packing.size,))
        self.B = GrowableArray((self.dim,))
        self.S = GrowableArray((self.packing.size,), by_column=True)
        self.c = GrowableArray((self.dim,), by_column=True)
        self.sharp: dict[int, Array] = {}  # by slot, K_a with S_a = C_a K_a K_a^T C_a^T, where S_a cannot hold it
        self.played_weights: GrowableArray | None = None  # b_a of the played actions, by slot
        if mixing.features is not None and mixing.effects(np.zeros((1, self.root_dim))) is not None:
            self.played_weights = GrowableArray((int(mixing.features.shape[1]),), by_column=True)

    @property
    def tables(self) -> tuple[GrowableArray, ...]:
        """All that is kept by slot, the catalogue's own table aside."""
        own = (self.counts, self.G, self.B, self.S, self.c)
        return own if self.played_weights is None else (*own, self.played_weights)

    def posterior(self, slots: Ints) -> tuple[Array, Array]:
        """S_a packed (n, d(d+1)/2) and c_a (n, d) of these slots, now."""
        return self.S.rows[slots], self.c.rows[slots]

    def release(self, slots: Ints) -> None:
        """Let these slots count as never played: what they have told the root stays."""
        if not len(slots):
            return
        keep = self.catalogue.release(slots)
        for table in self.tables:
            table.keep(keep)
        if self.sharp:
            place = dict(zip(keep.tolist(), range(len(keep)), strict=True))
            self.sharp = {place[slot]: K for slot, K in self.sharp.items() if slot in place}

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

    def slots(self, ids: Ints, known: Array | None, sums: tuple[GrowableArray, GrowableArray] | None = None) -> Ints:
        """Slots of distinct actions; those that nobody had played start at their prior, all in one step.

        sums: of the first actions of all, tables that become those of G_a and B_a, for `replace` to go on with.
        """
        slots, new = self.catalogue.play_all(ids)
        if not len(new):
            return slots
        self.counts.extend(np.zeros(len(new), dtype=np.int64))
        if sums is None:
            for table in (self.G, self.B):
                table.extend(np.zeros((len(new), *table.rows.shape[1:])))
        else:
            self.G, self.B = sums
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
        if K is None and (
            float(x @ x) * float(S.trace()) > SHARP * noise_variance
            or (self.steep and not self.counts.rows[slot] and self.steep_of(np.array([action]))[0])
        ):
            K = self._own_factors(np.array([slot]))[0]
        if K is None:
            new_S, gain, variance = linalg.condition(S, x, noise_variance)
        else:
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
        self.G.rows[slot] += x[self.packing.rows] * (x / noise_variance)[self.packing.columns]
        self.B.rows[slot] += x * (r / noise_variance)
        return seen

    def replace(
        self, slots: Ints, G: Array, B: Array, known: Array | None, spread: float, parts: int = 1, *, new: bool = False
    ) -> tuple[Array, Array] | None:
        """Give these slots new statistics, G packed and B (n, d); returns the change of the root's precision and information.

        spread: a bound on the prior variances of W_a m. parts: the root's, of which more than one take a precision in so many
        diagonal blocks. new: nothing was known of them.
        """
        p = self.root_dim
        information_change = np.zeros(p)
        precision_change = np.zeros((p, p) if parts == 1 else (parts, p // parts, p // parts))
        for start in range(0, len(slots), self.together):
            some = slice(start, start + self.together)
            where = linalg.as_slice(slots[some])
            ids = self.catalogue.played.rows[where]
            centre = None if known is None else self.mixing.apply(ids, known)
            if centre is None:
                S, mean = self.conditioned(ids, G[some], B[some])
                told = self._newly_told(where, ids, G[some], B[some], S, mean, spread, new=new)
                gathered = self.mixing.gather(ids, *told) if parts == 1 else self.mixing.gather_parts(ids, *told, parts)
                precision_change += gathered[0]
                information_change += gathered[1]
            else:  # S (Sigma^-1 m + B) = m + S (B - G m): nothing is inverted
                right = B[some] - np.einsum("nij,nj->ni", self.packing.unpack(G[some]), centre)
                S, mean = self.conditioned(ids, G[some], right)
                mean = mean + centre
            self.c.rows[where] = mean
            self.G.rows[where] = G[some]
            self.B.rows[where] = B[some]
            self.S.rows[where] = S
        return None if known is not None else (precision_change, information_change)

    def _newly_told(
        self, where: Ints | slice, ids: Ints, G: Array, B: Array, S: Array, c: Array, spread: float, *, new: bool
    ) -> tuple[Array, Array]:
        """How what these slots tell about W_a m changes with these statistics, in place of their own: (n, d, d) and (n, d)."""
        own = self.precision if self.shared else self.prior_precision(ids)
        if not self.steep and self.plain(ids, own, spread):
            moved = c - self.c.rows[where]
            e = moved @ own if self.shared else np.einsum("nij,nj->ni", own, moved)
            return self.weighed(own, self.S.rows[where] - S), e
        unpack = self.packing.unpack
        D, e = linalg.told(own.reshape(-1, self.dim, self.dim), unpack(G), B, unpack(S), c)
        before = np.flatnonzero(self.packing.trace(self.G.rows[where]) > 0)
        if len(before) and not new:
            old_D, old_e = self.told(np.arange(len(self.G))[where][before])
            D[before] -= old_D
            e[before] -= old_e
        return D, e

    def shift(self, slots: Ints, b: Array, known: Array | None) -> Array | None:
        """Add b (n, d) to the B_a of these slots, all different; returns the change of the root's information.

        S_a stays, c_a moves by S_a b, and what the root is told by W_a^T Sigma_a^-1 S_a b.
        """
        information = np.zeros(self.root_dim)
        step = max(1, FULL_AT_A_TIME // (self.dim * max(self.dim, self.root_dim)))
        for start in range(0, len(slots), step):
            where, right = slots[start : start + step], b[start : start + step]
            ids = self.catalogue.played.rows[where]
            moved = np.einsum("nij,nj->ni", self.packing.unpack(self.S.rows[where]), right)
            towards = moved if known is not None else self.towards(where, moved, right)
            for i in [i for i, slot in enumerate(where.tolist()) if slot in self.sharp] if self.sharp else ():
                C, K = self._prior_factors(ids[i : i + 1])[0], self.sharp[int(where[i])]
                own = K @ (right[i] @ C @ K)
                moved[i] = C @ own
                if known is None:
                    towards[i] = np.linalg.solve(C.T, own)
            self.c.rows[where] += moved
            self.B.rows[where] += right
            if known is None:
                information += self.mixing.lift_all(ids, towards).sum(axis=0)
        return None if known is not None else information

    def plain(self, ids: Ints, own: Array, spread: float) -> bool:
        """Whether Sigma_a^-1 (S_a - S_a') Sigma_a^-1, the change of what these actions tell, keeps 1e-8 of the root.

        The difference has roundings of S_a, eps |Sigma_a|, and the factors make them eps |Sigma_a| |Sigma_a^-1|^2 of a precision,
        which the root's variances (`spread`) turn into a relative error. Norms are largest sums of a row.
        """
        sizes = linalg.row_norms(self.covariance if self.shared else self.prior_covariance(ids))
        return bool(np.max(sizes * linalg.row_norms(own) ** 2) * spread <= PLAIN)

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

    def pulls(self, slots: Ints) -> Array:
        """(n, d, d): S_a Sigma_a^-1, how the mean of theta_a moves with W_a m."""
        S, own = self.packing.unpack(self.S.rows[slots]), self._own(self.catalogue.played.rows[slots])
        if not self.steep:
            return S @ own
        out = linalg.pulls(own, self.packing.unpack(self.G.rows[slots]), S)
        kept, C, K = self._kept(slots, own)
        if len(kept):  # C K K^T C^-1
            out[kept] = np.swapaxes(np.linalg.solve(np.swapaxes(C, 1, 2), K @ np.swapaxes(C @ K, 1, 2)), 1, 2)
        return out

    def towards(self, slots: Ints, Sx: Array, x: Array) -> Array:
        """(n, d): Sigma_a^-1 S_a x, how scores move with W_a m, for contexts x (n, d) and Sx = S_a x."""
        own = self._own(self.catalogue.played.rows[slots])
        if not self.steep:
            return Sx @ self.precision if self.shared else np.einsum("nij,nj->ni", own, Sx)
        G = self.packing.unpack(self.G.rows[slots])
        out = np.einsum("nij,nj->ni", np.broadcast_to(own, G.shape), Sx)
        few = np.trace(G, axis1=1, axis2=2) <= np.trace(own, axis1=1, axis2=2)
        out[few] = x[few] - np.einsum("nij,nj->ni", G[few], Sx[few])
        kept, C, K = self._kept(slots, own)
        if len(kept):  # C^-T K K^T C^T x
            inner = K @ (np.swapaxes(C @ K, 1, 2) @ x[kept][..., None])
            out[kept] = np.linalg.solve(np.swapaxes(C, 1, 2), inner)[..., 0]
        return cast(Array, out)

    def _kept(self, slots: Ints, own: Array) -> tuple[Ints, Array, Array]:
        """Which of these slots need the square root that they keep, and their C_a and K_a.

        I - S_a G_a has roundings of |S_a| |G_a|, S_a Sigma_a^-1 those of the inverse, |S_a| |Sigma_a^-1| times its condition.
        """
        trace = self.packing.trace
        told, sizes = trace(self.G.rows[slots]), np.trace(own, axis1=1, axis2=2)
        conditions = self.prior_sizes(self.catalogue.played.rows[slots]) * sizes
        smaller = np.where(told <= sizes, told, sizes * conditions)
        large = (
            np.flatnonzero(trace(self.S.rows[slots]) * smaller > STEEP) if self.sharp else np.empty(0, dtype=np.int64)
        )
        among = zip(large.tolist(), slots[large].tolist(), strict=True)
        kept = np.array([i for i, slot in among if slot in self.sharp], dtype=np.int64)
        if not len(kept):
            return kept, np.empty((0, self.dim, self.dim)), np.empty((0, self.dim, self.dim))
        K = np.stack([self.sharp[slot] for slot in slots[kept].tolist()])
        return kept, self._prior_factors(self.catalogue.played.rows[slots[kept]]), K

    def told(self, slots: Ints) -> tuple[Array, Array]:
        """What these slots tell about W_a m: precisions (n, d, d) and information (n, d)."""
        unpack = self.packing.unpack
        ids, G, S = self.catalogue.played.rows[slots], self.G.rows[slots], self.S.rows[slots]
        return linalg.told(self._own(ids), unpack(G), self.B.rows[slots], unpack(S), self.c.rows[slots])

    def pulled(self, x: Array, slots: Ints) -> Array:
        """(n, p): W_a^T Sigma_a^-1 S_a x, how the score of each slot moves with the root."""
        ids = self.catalogue.played.rows[slots]
        if not len(slots):
            return np.empty((0, self.root_dim))
        # S_a x, one column of coefficients for each of its entries
        every = np.broadcast_to(x, (self.dim, self.dim))
        Sx = self.S.rows[linalg.as_slice(slots)] @ self.packing.bilinear(np.eye(self.dim), every).T
        return self.mixing.lift_all(ids, self.towards(slots, Sx, np.broadcast_to(x, Sx.shape)))

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
        tables = [*self.tables, self.catalogue.played]
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


__all__ = ["Leaves"]
