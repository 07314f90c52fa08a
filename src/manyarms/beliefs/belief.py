"""A belief: root, leaves and likelihood, composed.

    root m ~ prior,    theta_a | m ~ N(W_a m, Sigma_a),    R | x, a ~ p(. | x^T theta_a)

It learns rows, and answers what decisions ask: conditional scores given a draw of the root, and marginal moments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import linalg, validate
from manyarms._base.explanation import Explanation
from manyarms._base.nested import prefixed, under
from manyarms._base.registry import Registry
from manyarms._base.typing import AnyArray, Array, Bools, Ints, Spec, loose
from manyarms.beliefs import chances, correcting, expansions, explaining, folding, leaf_scores, limits, updating
from manyarms.beliefs.action_priors import FULL_AT_A_TIME
from manyarms.beliefs.actions.catalogue import ActionCatalogue, Offer, Place
from manyarms.beliefs.actions.unplayed_scores import UnplayedScores
from manyarms.beliefs.correcting import Corrections
from manyarms.beliefs.drift.leaves import DriftingLeaves
from manyarms.beliefs.drift.memory import MEMORIES, MOST_SIGNAL, Forgetting
from manyarms.beliefs.drift.timed import Timed
from manyarms.beliefs.folding import Rounds, Triangles
from manyarms.beliefs.growable import GrowableArray
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import LIKELIHOODS, Gaussian, Likelihood, restore_likelihood
from manyarms.beliefs.played_screen import PlayedScreen
from manyarms.beliefs.roots import Root, restore_root
from manyarms.beliefs.saved_state import check_leaves, check_root_prior, check_rows
from manyarms.beliefs.sums import Sums
from manyarms.errors import InvalidInput
from manyarms.logs.actions import Actions
from manyarms.logs.row_sketch import RowSketch

BELIEFS: Registry[type[Belief]] = Registry("belief", package="manyarms.beliefs", group="manyarms.beliefs")


@BELIEFS.register("two-level")
class Belief(Timed):
    """What is known about the rewards of every action."""

    per_action: ClassVar[bool] = True
    """Every action has a parameter of its own."""

    taken: bool = False
    """Whether it belongs to an agent, which alone may change it."""

    training_rows: RowSketch | None = None
    """A sketch of the logs that were folded into it, where that is known; agents' policies carry it. Not saved."""

    def __init__(self, root: Root, leaves: Leaves, likelihood: Likelihood) -> None:
        validate.instance("root", root, Root, "a root, such as GaussianRoot(mean, covariance)")
        validate.instance("leaves", leaves, Leaves, "leaves, Leaves(mixing, covariance, actions)")
        if root.dim != leaves.root_dim:
            raise InvalidInput(
                "root", f"a root of length {root.dim}", f"length {leaves.root_dim}, that of the leaves' root"
            )
        if not isinstance(likelihood, Likelihood):
            names = ", ".join(part.__name__ for part in LIKELIHOODS.values())
            raise InvalidInput("likelihood", validate.describe(likelihood), f"a likelihood ({names})")
        limits.check_noise(root, leaves, likelihood.noise_variance)
        self.root = root
        self.leaves = leaves
        self.likelihood = likelihood
        self._limit = limits.ContextLimit()
        self.unplayed = UnplayedScores(leaves)
        self.screen = PlayedScreen(leaves, root)
        # a leaf whose likelihood is not exact is refitted from its own rows: (X, r) by slot
        self._rows: list[tuple[GrowableArray, GrowableArray]] = []
        self._modes = GrowableArray((leaves.dim,))  # where its last fit ended, the next one's warm start
        self._root_prior: tuple[Array, Array] | None = None  # mean and factor of the root before any evidence

    def forgets(self, how: Forgetting | None) -> Self:
        """Itself, with a memory: rewards drift, or are discounted, or leave a window (None: nothing is forgotten)."""
        if how is not None:
            self.memory = how.memory_of(self)
            self._limit = limits.ContextLimit(MOST_SIGNAL)
        return self

    @property
    def most_signal(self) -> float:
        """How many times the noise a prior's standard deviation may be."""
        return self._limit.most

    @property
    def kind(self) -> str:
        """The name it is registered and saved under."""
        return BELIEFS.name_of(type(self))

    @property
    def dim(self) -> int:
        """d."""
        return self.leaves.dim

    @property
    def catalogue(self) -> ActionCatalogue:
        """The actions."""
        return self.leaves.catalogue

    def contexts(self, x: npt.ArrayLike) -> tuple[Array, bool]:
        """One context or a batch, checked: (X with a leading axis, whether it was one)."""
        return check_contexts(x, (self.dim,))

    def observed_contexts(self, x: npt.ArrayLike, action: object) -> tuple[Array, bool]:
        """Contexts in which actions were taken, checked, as `contexts` does: with contexts per action, that of the one taken."""
        return self.contexts(x)

    @property
    def known(self) -> Array | None:
        """The root where it is known."""
        return self.root.mean() if self.root.known else None

    # ---- learning -----------------------------------------------------------------------------------------------------

    def observe(self, X: Array, actions: Ints, rewards: Array, at: object = None) -> None:
        """Learn checked rows: contexts (n, d), actions (n,), rewards (n,); at: their times, where it forgets."""
        self.learn_at(*self.evidence(X, actions, rewards), self.times(at, len(X)))

    def evidence(self, X: Array, actions: Ints, rewards: Array) -> Rounds:
        """What checked rows say, within the limits, in the form that `learn` takes: equal beliefs that learn it stay equal.

        No function of the caller's has a part in `learn`, where the next time it might answer otherwise or fail; links alone
        have, which belong to the prior.
        """
        self._limit.check(self.root, self.leaves, X, actions, self.likelihood.noise_variance)
        return X, actions, rewards

    def learn(self, X: Array, actions: Ints, rewards: Array) -> None:
        """Learn what `evidence` gave."""
        noise_variance = self.likelihood.noise_variance
        if noise_variance is None:
            self._refit(self._append(X, actions, rewards))
        # a row costs a few d^2, folding an action a few d^3: with one row, or few rows of long contexts, rows are cheaper
        elif len(actions) == 1 or 16 * len(actions) <= self.dim * len(np.unique(actions)):
            for x, action, reward in zip(X, actions.tolist(), rewards.tolist(), strict=True):
                seen = self.leaves.observe_row(action, x, reward, noise_variance, self.known)
                if seen is not None:
                    self.root.observe(*seen)
        else:
            folding.fold(self.root, self.leaves, [(X, actions, rewards)], noise_variance)
        self._learned(actions)

    def fold(self, chunks: Iterable[Rounds]) -> None:
        """Learn checked rows that come in chunks (X, actions, rewards), as `observe` of all of them at once would.

        Sums are taken over all chunks first, and then each action is updated once: a log of any length costs its sums and one
        update of each action in it. Where the likelihood is not exact, the rows are stored and each action is fitted once, at
        the end.
        """
        if self.memory is not None:  # order matters, and rows are learned as they come
            for rows in chunks:
                self.observe(*rows)
            return
        noise_variance = self.likelihood.noise_variance
        chunks = (self.evidence(*rows) for rows in chunks)
        if noise_variance is None:  # all chunks are here before anything changes
            touched = [self._append(*rows) for rows in list(chunks)]
            slots = np.unique(np.concatenate(touched)) if touched else np.empty(0, dtype=np.int64)
            self._refit(slots)
            self._learned(self.leaves.catalogue.played.rows[slots])
        else:
            self.learn_sums(*folding.gather(self.root, self.leaves, chunks, noise_variance))

    def learn_sums(self, light: Sums, heavy: Triangles) -> None:
        """Learn what `folding.gather` made of linear rows, here or elsewhere."""
        assert self.likelihood.noise_variance is not None
        slots = folding.learn(self.root, self.leaves, light, heavy, self.likelihood.noise_variance)
        self._learned(self.leaves.catalogue.played.rows[slots])

    def correction(self, X: Array, actions: Ints, was: Array, now: Array) -> Corrections:
        """Checked rows whose rewards are to be replaced, found to be there, in the form that `correct` takes."""
        X, actions, now = self.evidence(X, actions, now)
        if self.memory is not None:  # what is replaced may have been forgotten
            return X, actions, was, now
        correcting.check_counts(self.leaves, actions, self.per_action)
        if self.likelihood.noise_variance is None:
            correcting.replaced(self._rows, self.leaves.catalogue.slots(actions), X, was, now)
        else:
            correcting.check_digits(self.root, self.leaves, actions, X, self.likelihood.noise_variance)
        return X, actions, was, now

    def correct(self, X: Array, actions: Ints, was: Array, now: Array) -> None:
        """Be as if `now` had been learned in place of `was`, of what `correction` gave."""
        slots, noise_variance = self.leaves.catalogue.slots(actions), self.likelihood.noise_variance
        if noise_variance is None:
            for slot, rewards in correcting.replaced(self._rows, slots, X, was, now).items():
                self._rows[slot][1].rows[:] = rewards
            self._refit(np.unique(slots))
        else:
            correcting.correct_sums(self.root, self.leaves, slots, X, (now - was) / noise_variance)
        self._learned(actions)

    def rebuilt(self) -> None:
        """Called when leaves have changed their places, or all have changed: what follows from them is made anew."""
        self.screen = PlayedScreen(self.leaves, self.root)

    def _learned(self, actions: Ints) -> None:
        """Called when rows of these actions, named once or more often, have been learned: for what follows from their leaves."""
        self.screen.changed(actions)

    def _append(self, X: Array, actions: Ints, rewards: Array) -> Ints:
        """Append rows to those of their actions; the slots touched."""
        touched, inverse = np.unique(actions, return_inverse=True)
        slots = self.leaves.slots(touched, self.known)
        while len(self._rows) < len(self.leaves.counts):
            self._rows.append((GrowableArray((self.dim,)), GrowableArray(())))
            self._modes.append(0.0)
        order = np.argsort(inverse, kind="stable")
        parts = np.split(order, linalg.first_rows(inverse[order])[1:])
        for slot, rows in zip(slots.tolist(), parts, strict=True):
            contexts, seen = self._rows[slot]
            contexts.extend(X[rows])
            seen.extend(rewards[rows])
            self.leaves.counts.rows[slot] += len(rows)
        return slots

    def _refit(self, slots: Ints) -> None:
        """G and B of the Gaussian that stands for the likelihood of all rows of an action, for each of these slots."""
        pack = self.leaves.packing
        G, B = np.empty((len(slots), pack.size)), np.empty((len(slots), self.dim))
        for i, (slot, around) in enumerate(zip(slots.tolist(), self._around(slots), strict=True)):
            contexts, seen = self._rows[slot]
            found = self.likelihood.fit(contexts.rows, seen.rows, self._modes.rows[slot].copy(), around)
            self._modes.rows[slot] = found.point
            G[i], B[i] = pack.pack(found.G), found.B
        self._replace(slots, G, B)

    def _around(self, slots: Ints) -> Iterator[Gaussian | None]:
        """The Gaussian around which the likelihood of each slot is expanded; None where the likelihood brings its own."""
        if self.likelihood.expansion == "mle":
            yield from [None] * len(slots)
            return
        step = max(1, FULL_AT_A_TIME // (self.dim * max(self.dim, self.leaves.root_dim)))
        for start in range(0, len(slots), step):
            means, covariances = self._without_own_rows(slots[start : start + step])
            yield from map(Gaussian, means, linalg.inverse(covariances))

    def _without_own_rows(self, slots: Ints) -> tuple[Array, Array]:
        """Means and covariances of theta_a without its own rows: before any evidence or, for cavities, by what is known now."""
        root = self.root
        if root.known:
            return expansions.prior(self.leaves, slots, root.mean(), root.factor())
        if self.likelihood.expansion == "cavity":
            return expansions.cavity(self.leaves, slots, root.mean(), root.factor())
        if self._root_prior is None:  # the first rows: the root has learned nothing yet
            self._root_prior = root.mean().copy(), root.factor().copy()
        return expansions.prior(self.leaves, slots, *self._root_prior)

    def _remembers_root(self) -> bool:
        """Whether a likelihood that has seen rows is expanded around the root as it was before them."""
        return not self.root.known and self.likelihood.expansion not in ("mle", "cavity")

    def _replace(self, slots: Ints, G: Array, B: Array) -> None:
        root, spread = self.root, limits.spread(self.root, self.leaves)
        change = self.leaves.replace(slots, G, B, self.known, spread, root.parts)
        if change is not None:
            root.learn(*change)

    # ---- what decisions ask -------------------------------------------------------------------------------------------

    def draw_scores(
        self, X: Array, offer: Offer, rng: np.random.Generator, best: int | None = None
    ) -> tuple[Array, Array]:
        """A draw of the posterior for each context: scores (n, P) of the offered played actions, and the roots behind them.

        best: only so many of the highest scores are asked for. The same numbers are drawn, and those that cannot be among them
        may come as -inf.
        """
        M, played = self.root.draw(rng, len(X)), len(offer.ids_of_slots())
        if not played:
            return np.empty((len(X), 0)), M
        if best is not None and self.screen.serves(played, best):
            return self.screen.best(X, M, rng.standard_normal((len(X), played)), offer, best), M
        return noisy(*self.played_scores(X, M, offer), rng), M

    def best_unplayed(
        self, x: Array, root: Array, offer: Offer, floor: float, k: int, rng: np.random.Generator
    ) -> tuple[Array, Ints]:
        """The same draw for the unplayed actions: the scores above the floor among the best k, and their units' places."""
        return self.unplayed.best(x, root, offer, floor, k, rng)

    @property
    def propensity_draws(self) -> int:
        """How many draws of `log_chances` usually do."""
        return 6

    def log_chances(
        self, x: Array, offer: Offer, place: Place, k: int, n: int, rng: np.random.Generator
    ) -> chances.Chances:
        """How likely the action at a place of the offer has the best score, or one of the best k, given n draws of the root."""
        contests = chances.TwoLevel(self, x, offer, place)
        roots = contests.roots(k, n, rng)
        found = chances.of_contests(contests.contests(roots.draws), k, n, rng)
        return chances.Chances(found.first + roots.log_weights, found.inside + roots.log_weights, roots.strata)

    def played_scores(self, X: Array, M: Array, offer: Offer) -> tuple[Array, Array]:
        """Mean and variance (n, P) of the offered played actions' scores, given the roots M."""
        return leaf_scores.scores(self.leaves, X, None if self.root.known else M, offer.slots)

    def played_moments(self, X: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        """Marginal mean and, if `spread`, variance (n, P) of the offered played actions' scores."""
        M = np.broadcast_to(self.root.mean(), (len(X), self.root.dim))
        mean, variance = self.played_scores(X, M, offer)
        if spread and not self.root.known:
            slots = np.arange(len(self.leaves.counts)) if offer.slots is None else offer.slots
            factor = self.root.factor()
            for i, x in enumerate(X):
                pulled = self.leaves.pulled(x, slots) @ factor
                variance[i] += np.einsum("ap,ap->a", pulled, pulled)
        return mean, variance

    def unplayed_moments(self, x: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        """Marginal mean and, if `spread`, variance of the scores of the units offered."""
        factor = self.root.factor() if spread and not self.root.known else None
        return self.unplayed.moments(x, self.root.mean(), factor, offer)

    def draw_listed(self, Z: Array, ids: Ints, rng: np.random.Generator) -> Array:
        """A draw of the posterior for each of Z (n, m, d): scores z_a^T theta_a (n, m) of the listed actions, played or not."""
        return noisy(*self.listed_given_draws(Z, ids, rng), rng)

    def listed_given_draws(self, Z: Array, ids: Ints, rng: np.random.Generator) -> tuple[Array, Array]:
        """Mean and variance (n, m) of the same scores, independent of each other, given a draw of the root for each of Z."""
        M = self.root.draw(rng, len(Z))
        return leaf_scores.listed_scores(
            self.leaves, Z, ids, self.known, lambda i, some: self.leaves.mixing.apply(some, M[i])
        )

    def listed_log_chances(
        self, Z: Array, ids: Ints, place: int, k: int, n: int, rng: np.random.Generator
    ) -> chances.Chances:
        """`log_chances` of the listed action at a place, with contexts Z (m, d)."""
        mean, variance = self.listed_given_draws(np.broadcast_to(Z, (n, *Z.shape)), ids, rng)
        return chances.of_listed(mean, variance, cast(Bools, Z.any(axis=1)), place, k, rng)

    def listed_moments(self, Z: Array, ids: Ints, *, spread: bool) -> tuple[Array, Array]:
        """Marginal mean and, if `spread`, variance (n, m) of z_a^T theta_a for the listed actions, played or not."""
        mean, factor = self.root.mean(), self.root.factor() if spread and not self.root.known else None
        mixing = self.leaves.mixing
        return leaf_scores.listed_scores(
            self.leaves, Z, ids, self.known, lambda _, some: mixing.apply(some, mean), factor
        )

    def predictive(self, X: Array, actions: Ints) -> tuple[Array, Array]:
        """Marginal mean and variance (n,) of x_i^T theta_{a_i} for rows of contexts (n, d) and actions, played or not."""
        mean, variance = self.listed_moments(X[None], actions, spread=True)
        return mean[0], np.maximum(variance[0], 0.0)

    def action_posterior(self, ids: Ints) -> tuple[Array, Array]:
        """Marginal posteriors of single actions: means (n, d) and covariances (n, d, d), root integrated out.

        With P = S_a Sigma_a^-1 W_a:  mean c_a + P m,  covariance S_a + P Cov(m) P^T.
        """
        leaves = self.leaves
        slots = leaves.catalogue.slots(ids)
        played = slots >= 0
        S = leaves.prior_covariance(ids).copy()
        packed, own = leaves.posterior(slots[played])
        S[played] = leaves.packing.unpack(packed)
        if self.root.known:
            mean = leaves.mixing.apply(ids, self.root.mean()).copy()
            mean[played] = own
            return mean, S
        mean = np.zeros((len(ids), self.dim))
        mean[played] = own
        towards = np.broadcast_to(np.eye(self.dim), S.shape).copy()
        towards[played] = leaves.pulls(slots[played])
        mean += np.einsum("nij,nj->ni", towards, leaves.mixing.apply(ids, self.root.mean()))
        factor = self.root.factor()
        pulled = np.stack(
            [leaves.mixing.lift_all(ids, towards[:, i, :]) @ factor for i in range(self.dim)], axis=1
        )  # (n, d, p): rows of P times the root's factor
        return mean, S + pulled @ np.swapaxes(pulled, 1, 2)

    def explain(self, x: npt.ArrayLike, action: object) -> Explanation:
        """What each feature of a context, the root and the action's own leaf add to its score, and to the score's variance."""
        return explaining.explain(self, x, action)

    def _explained(self, x: Array, action: int) -> Explanation:
        """The same, of a checked context, and of an action by its row."""
        return explaining.of_two_levels(self.root, self.leaves, x, action, self._score_is)

    @property
    def _score_is(self) -> str:
        """What x^T theta_a is of the reward."""
        return "expected reward" if self.likelihood.exact else "linear predictor"

    # ---- the catalogue ------------------------------------------------------------------------------------------------

    def add_actions(self, weights: object, number: int | None, covariance: Array | None) -> Ints:
        """New actions at their prior; nothing else is touched."""
        rows, number, packed = self.new_actions(weights, number, covariance)
        return self.add(rows, number, packed, self.catalogue.check_new_ids(None, number))

    def new_actions(
        self, weights: object, number: int | None, covariance: Array | None
    ) -> tuple[Array | None, int, Array | None]:
        """What describes new actions, checked, in the form that `add` takes: their features, how many, their covariances."""
        leaves = self.leaves
        rows, number = leaves.mixing.check_rows(weights, number)
        leaves.catalogue.check_new(number, 0 if leaves.shared else 8 * (leaves.packing.size + leaves.dim**2))
        packed = leaves.check_new_covariance(covariance, number)
        limits.check_new_actions(self.root, leaves, rows, packed, self.likelihood.noise_variance, self.most_signal)
        return rows, number, packed

    def add(self, rows: Array | None, number: int, covariances: Array | None, names: Actions | None = None) -> Ints:
        """Add what `new_actions` has checked, `names` being the ids of all actions where they have any; the new rows."""
        leaves = self.leaves
        leaves.mixing.add(rows, number)
        if covariances is not None:
            leaves.covariances.extend(covariances)
        return leaves.catalogue.add(number, leaves.mixing.features, names)

    def new_weights(self, actions: object, weights: object) -> tuple[Ints, Array]:
        """Actions that are to have other weights, checked, in the form that `change_weights` takes: those that differ."""
        return updating.check(self, actions, weights)

    def change_weights(self, ids: Ints, rows: Array) -> None:
        """Be as if these actions had always had the features that `new_weights` has checked."""
        if not len(ids):
            return
        slots = updating.update(self.root, self.leaves, ids, rows, exact=self.likelihood.exact)
        self._limit, self.unplayed = limits.ContextLimit(self.most_signal), UnplayedScores(self.leaves)
        self.screen = PlayedScreen(self.leaves, self.root)
        if not self.likelihood.exact and self.likelihood.expansion != "mle" and len(slots):
            self._refit(slots)
        self._learned(self.leaves.catalogue.played.rows[slots])

    # ---- state --------------------------------------------------------------------------------------------------------

    def spec(self) -> Spec:
        """What, besides arrays, is needed to build it again."""
        return {"kind": self.kind, "root": {"kind": self.root.kind, **self.root.options()}, **self._parts_spec()}

    def _parts_spec(self) -> dict[str, Any]:
        """The leaves and the likelihood."""
        likelihood = {"kind": self.likelihood.kind, **self.likelihood.options()}
        parts = {"mixing": self.leaves.mixing.kind, "dim": self.dim, "likelihood": likelihood}
        return parts if self.memory is None else parts | {"memory": self.memory.settings}

    def arrays(self) -> dict[str, AnyArray]:
        """Its whole state."""
        out = prefixed("root.", self.root.arrays()) | prefixed("leaves.", self.leaves.arrays())
        if self._root_prior is not None:
            out["glm.root_mean"], out["glm.root_factor"] = self._root_prior
        if self.memory is not None:
            return out | prefixed("memory.", self.memory.arrays())
        if not self.likelihood.exact:
            out["glm.modes"] = self._modes.rows
            out["glm.lengths"] = np.array([len(r) for _, r in self._rows], dtype=np.int64)
            out["glm.X"] = np.concatenate([np.empty((0, self.dim)), *(x.rows for x, _ in self._rows)])
            out["glm.r"] = np.concatenate([np.empty(0), *(r.rows for _, r in self._rows)])
        return out

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> Belief:
        """The belief that `spec` and `arrays` describe."""
        told = loose(spec)
        belief = cls(restore_root(told["root"], under("root.", arrays)), *restored_parts(told, arrays))
        belief._restore_rows(arrays)
        return belief._restore_memory(told, arrays)

    def _restore_memory(self, spec: dict[str, Any], arrays: dict[str, AnyArray]) -> Self:
        """Itself, with the memory that was saved with it, if any was."""
        self.forgets(saved_memory(spec))
        if self.memory is not None:
            self.memory.restore(under("memory.", arrays), self.dim)
            if isinstance(self.leaves, DriftingLeaves):
                self.leaves.now = self.memory.clock.now
        return self

    def _restore_rows(self, arrays: dict[str, AnyArray]) -> None:
        """Take over the rows that a likelihood which is not exact keeps."""
        if self.likelihood.exact or self.leaves.drifts:
            return
        check_rows(arrays, len(self.leaves.counts), self.dim)
        if not len(arrays["glm.lengths"]):
            return
        self.likelihood.check(arrays["glm.r"])
        self._modes.extend(arrays["glm.modes"])
        if self._remembers_root():
            check_root_prior(arrays, self.root.dim)
            self._root_prior = arrays["glm.root_mean"], arrays["glm.root_factor"]
        cuts = np.cumsum(arrays["glm.lengths"])[:-1]
        pieces = zip(np.split(arrays["glm.X"], cuts), np.split(arrays["glm.r"], cuts), strict=True)
        self._rows = [(GrowableArray.of(x), GrowableArray.of(r)) for x, r in pieces]

    @property
    def nbytes(self) -> int:
        """Bytes of everything it holds, derived tables included."""
        rows = sum(x.nbytes + r.nbytes for x, r in self._rows)
        root = sum(array.nbytes for array in self.root.arrays().values()) + sum(
            a.nbytes for a in self._root_prior or ()
        )
        memory = 0 if self.memory is None else self.memory.nbytes
        return self.leaves.nbytes + self.unplayed.nbytes + self.screen.nbytes + root + rows + memory


def restored_parts(spec: dict[str, Any], arrays: dict[str, AnyArray]) -> tuple[Leaves, Likelihood]:
    """The leaves and the likelihood of a saved belief."""
    how = saved_memory(spec)
    kind = Leaves if how is None else how.leaves_type
    check_leaves(under("leaves.", arrays), spec["dim"], sums=not kind.drifts)
    leaves = kind.restored(spec["mixing"], under("leaves.", arrays), spec["dim"])
    return leaves, restore_likelihood(spec["likelihood"])


def saved_memory(spec: dict[str, Any]) -> Forgetting | None:
    """How a saved belief forgets."""
    options = spec.get("memory")
    if options is None:
        return None
    options = dict(options)
    return MEMORIES[options.pop("kind")](**options)


def restore_belief(spec: Spec, arrays: dict[str, AnyArray]) -> Belief:
    """The belief, of whatever kind, that `spec()` and `arrays()` describe."""
    told = loose(spec)
    return BELIEFS[told["kind"]].restored(told, arrays)


def noisy(mean: Array, variance: Array, rng: np.random.Generator) -> Array:
    """Independent draws of N(mean, variance), elementwise; `variance` is used up."""
    scores = rng.standard_normal(mean.shape)
    np.maximum(variance, 0.0, out=variance)
    scores *= np.sqrt(variance, out=variance)
    scores += mean
    return scores


def check_contexts(x: npt.ArrayLike, shape: tuple[int, ...]) -> tuple[Array, bool]:
    """Contexts of the given shape, one or a batch of them."""
    X = validate.as_floats("x", x)
    if X.shape == shape:
        return X[None], True
    if X.ndim != len(shape) + 1 or X.shape[1:] != shape or not len(X):
        batch = "(n, " + ", ".join(map(str, shape)) + ")"
        raise InvalidInput("x", f"shape {X.shape}", f"one context of shape {shape}, or a batch of shape {batch}")
    return X, False


__all__ = ["BELIEFS", "Belief", "Rounds", "check_contexts", "noisy", "restore_belief", "restored_parts"]
