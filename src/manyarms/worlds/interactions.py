"""Interaction data as a logged bandit: recommend new items to users of whom half a history is known.

Users with few items are left out, every other user's items are shuffled and halved: one half is seen, the other half H_i
is hidden and rewarded (thesis, Appendix D.4).

    beta_0    right singular vectors of the matrix of users and seen items, times `scale`
    x_i       the mean of beta_0 over the items that user i was seen with
    pi_0      softmax of x^T beta_0,a / temperature over the k0 items with the largest scores
    R_i       1[A_i in H_i], with noise 1[A_i in H_i] (1 - B) + B shift, B ~ Bernoulli(noise)  (thesis, Appendix D.4.4)

Unless asked for otherwise, the matrix has the seen halves of the training users alone: nothing that is rewarded, and nobody
who is tested, has a part in the embeddings. With history="whole" it has the hidden halves of the training users too, as in the
public code of Sakhi et al. (Fast Offline Policy Optimization for Large Scale Recommendation, AAAI 2023), whose procedure the
thesis follows: the embeddings then know what the training users will be rewarded for, and still nothing of those tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, cast, get_args

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.policies.softmax import TopSoftmaxPolicy
from manyarms.worlds.interaction_files import Interactions
from manyarms.worlds.rounds import Value, draw_from, policy_over, support_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # imported late: nobody else here needs it

UserPart = Literal["train", "validation", "test"]
FloatPrecision = Literal["float32", "float64"]
History = Literal["seen", "whole"]
SHARES = (0.8, 0.1)  # of the users, for training and validation; the rest is for testing
ROWS, PAIRS = 256, 1 << 22  # users, and hidden items with their padding, in a block of a value


@dataclass(frozen=True, eq=False)
class Halves:
    """What is made once of a data set: who is in which part, what was seen and what is hidden, and the embeddings.

    seen, hidden: (users, items) of 0 and 1. part_of (users,): 0, 1 or 2. vectors (items, dim): right singular vectors by
    falling singular value, each with its largest entry positive; item_ids: what the data set calls the items.
    """

    seen: csr_array
    hidden: csr_array
    part_of: Ints
    vectors: Array
    singular_values: Array
    item_ids: AnyArray


class InteractionWorld:
    """A logged bandit made of interactions, with the true value of every policy.

    k0, temperature: of the logging policy. scale: factor of the singular vectors. These have orthonormal columns, so that
    at scale 1 all scores are tiny and the logging policy is all but uniform over its k0; unless given, the scale makes the
    embeddings' mean squared length 1, which is sqrt(K / dim). min_items: users with fewer items are left out. items: keep
    only this many, those with most users; users: keep this many, drawn at random among those that are left. Of an odd number
    of items the seen half has one more. history: what the singular vectors are made of, the seen halves of the training users
    or both halves of these. test_users, validation_users: how many; a tenth of all each unless given.
    """

    def __init__(
        self,
        interactions: Interactions,
        dim: int = 64,
        *,
        k0: int = 100,
        temperature: float = 1.0,
        scale: float | None = None,
        min_items: int = 20,
        users: int | None = None,
        items: int | None = None,
        noise: float = 0.0,
        shift: float = 0.0,
        history: History = "seen",
        test_users: int | None = None,
        validation_users: int | None = None,
        precision: FloatPrecision = "float32",
        seed: int = 0,
    ) -> None:
        validate.instance("interactions", interactions, Interactions, "Interactions, as read_interactions gives them")
        dim, k0 = validate.count("dim", dim), validate.count("k0", k0)
        if not isinstance(precision, str) or precision not in get_args(FloatPrecision):
            raise InvalidInput("precision", validate.describe(precision), "float32 or float64")
        validate.one_of("history", history, get_args(History))
        self.noise, self.shift = validate.probability("noise", noise), validate.probability("shift", shift)
        self.halves = halves(
            interactions,
            dim,
            validate.count("min_items", min_items, least=2),
            None if users is None else validate.count("users", users, least=3),
            None if items is None else validate.count("items", items, least=2),
            validate.seed(seed),
            history,
            None if validation_users is None else validate.count("validation_users", validation_users),
            None if test_users is None else validate.count("test_users", test_users),
        )
        self.actions, self.dim = self.halves.vectors.shape  # K, the number of items, and the length of a context
        self.scale = float(np.sqrt(self.actions / dim)) if scale is None else validate.positive("scale", scale)
        self.embeddings: AnyArray = (self.halves.vectors * self.scale).astype(precision)
        self.item_ids = self.halves.item_ids
        self.logging = TopSoftmaxPolicy(self.embeddings, min(k0, self.actions), temperature)
        self.provenance = interactions.provenance
        self._parts: dict[str, Array] = {}
        self._supports: dict[str, tuple[Ints, Array]] = {}

    def __repr__(self) -> str:
        return f"InteractionWorld(actions={self.actions:,}, dim={self.dim}, users={self.users()}; {self.provenance})"

    def users(self, part: UserPart | None = None) -> int:
        """How many users there are, in all or in a part."""
        return len(self.halves.part_of) if part is None else len(self._rows(part))

    def contexts(self, part: UserPart = "test") -> Array:
        """(n, dim): for each user of a part the mean embedding of the seen items."""
        if part not in self._parts:
            seen = self.halves.seen[self._rows(part)]
            total = np.asarray(seen @ self.embeddings.astype(np.float64))
            self._parts[part] = total / np.diff(seen.indptr)[:, None]
            self._parts[part].flags.writeable = False
        return self._parts[part]

    def hidden(self, part: UserPart = "test") -> Ints:
        """(n, m): ids of the hidden items of each user of a part, rising, padded with -1."""
        return _padded(self.halves.hidden[self._rows(part)])

    def log(
        self, part: UserPart = "train", rounds: int | None = None, seed: int = 0, *, support: bool = True
    ) -> LoggedData:
        """Rounds of the logging policy with users of a part, with exact propensities; `groups` are the users.

        rounds: one for each user in turn unless given; else this many with users drawn at random. support: whether the log
        keeps the k0 actions of every round with their probabilities (16 k0 bytes a round).
        """
        rng = np.random.default_rng(validate.seed(seed))
        contexts, rows = self.contexts(part), self._rows(part)
        users = (
            np.arange(len(rows)) if rounds is None else rng.integers(len(rows), size=validate.count("rounds", rounds))
        )
        ids, probabilities = self._support(part)
        column = draw_from(probabilities, users, rng)
        actions = ids[users, column]
        rewards = self._hits(rows[users], actions)
        if self.noise:
            disturbed = rng.random(len(rewards)) < self.noise
            rewards = np.where(disturbed, self.shift, rewards)
        return LoggedData(
            contexts[users],
            actions,
            rewards,
            self.actions,
            propensities=probabilities[users, column],
            support=ids[users] if support else None,
            support_probabilities=probabilities[users] if support else None,
            logging=self.logging,
            groups=rows[users],
            notes=(f"made from {self.provenance}",),
        )

    def value(self, policy: Policy, part: UserPart = "test") -> Value:
        """The expected reward of a policy with the users of a part, exactly: the mean of `values`."""
        return Value.of(self.values(policy, part))

    def values(self, policy: Policy, part: UserPart = "test") -> Array:
        """The expected reward of a policy with each user of a part, (n,), exactly.

        The policy's probability of the user's hidden items, v; (1 - noise) v + noise shift with noise.
        """
        policy_over(policy, self.actions)
        contexts, hidden = self.contexts(part), self.halves.hidden[self._rows(part)]
        counts = np.diff(hidden.indptr)
        each = np.empty(len(contexts))
        # users with about equally many hidden items go together, so that little of a block is padding
        order = np.argsort(counts, kind="stable")[::-1]
        start = 0
        while start < len(order):
            size = min(ROWS, max(1, PAIRS // int(counts[order[start]])))
            index = order[start : start + size]
            ids = _padded(hidden[index])
            found = policy.probabilities_of_many(contexts[index], np.maximum(ids, 0))
            each[index] = np.where(ids >= 0, found, 0.0).sum(axis=1)
            start += size
        return (1 - self.noise) * each + self.noise * self.shift

    def best_value(self, part: UserPart = "test") -> Value:
        """The value of always recommending a hidden item: 1 without noise."""
        return Value.of(np.full(self.users(part), 1 - self.noise + self.noise * self.shift))

    def _rows(self, part: UserPart) -> Ints:
        validate.one_of("part", part, get_args(UserPart))
        return np.flatnonzero(self.halves.part_of == get_args(UserPart).index(part))

    def _support(self, part: UserPart) -> tuple[Ints, Array]:
        if part not in self._supports:
            self._supports[part] = support_of(self.logging, self.contexts(part))
        return self._supports[part]

    def _hits(self, rows: Ints, actions: Ints) -> Array:
        """1 where an item is hidden for its user, (n,)."""
        hidden = self.halves.hidden
        keys = np.repeat(np.arange(hidden.shape[0]), np.diff(hidden.indptr)) * self.actions + hidden.indices
        asked = rows * self.actions + actions
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.asarray(keys[place] == asked, dtype=np.float64)


@lru_cache(maxsize=4)
def halves(
    interactions: Interactions,
    dim: int,
    min_items: int,
    users: int | None,
    items: int | None,
    seed: int,
    history: History = "seen",
    validation_users: int | None = None,
    test_users: int | None = None,
) -> Halves:
    """Choose items and users, shuffle and halve, split by user, and factorise; one process does each setting once."""
    choice, shuffle, split, start = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(4))
    who, what, item_ids = interactions.users, interactions.items, interactions.item_ids
    if items is not None and items < interactions.item_count:
        audience = np.bincount(what, minlength=interactions.item_count)
        popular = np.sort(np.argsort(-audience, kind="stable")[:items])
        number = np.full(interactions.item_count, -1)
        number[popular] = np.arange(items)
        inside = number[what] >= 0
        who, what, item_ids = who[inside], number[what[inside]], item_ids[popular]
    lengths = np.bincount(who, minlength=interactions.user_count)
    members = np.flatnonzero(lengths >= min_items)
    if users is not None and users < len(members):
        members = np.sort(choice.permutation(members)[:users])
    if len(members) < 10:
        came = f"{len(members)} users with at least {min_items} of the items"
        raise InvalidInput("interactions", came, "at least 10, so that each part has one")
    place = np.full(interactions.user_count, -1)
    place[members] = np.arange(len(members))
    inside = place[who] >= 0
    who, what = place[who[inside]], what[inside]
    seen, hidden = _halved(who, what, (len(members), len(item_ids)), shuffle)
    part_of = _split(len(members), split, validation_users, test_users)
    matrix = seen if history == "seen" else seen + hidden
    vectors, values = _right_singular(matrix[np.flatnonzero(part_of == 0)], dim, start)
    return Halves(seen, hidden, part_of, vectors, values, item_ids)


def _halved(who: Ints, what: Ints, shape: tuple[int, int], rng: np.random.Generator) -> tuple[csr_array, csr_array]:
    """Each user's items in a random order, the first half seen and the second hidden."""
    from scipy.sparse import csr_array

    order = np.lexsort((rng.random(len(who)), who))
    counts = np.bincount(who, minlength=shape[0])
    position = np.arange(len(who)) - np.repeat(np.cumsum(counts) - counts, counts)
    first = position < (np.repeat(counts, counts) + 1) // 2
    parts = []
    for chosen in (order[first], order[~first]):
        matrix = csr_array((np.ones(len(chosen)), (who[chosen], what[chosen])), shape=shape)
        matrix.sort_indices()
        parts.append(matrix)
    return parts[0], parts[1]


def _split(users: int, rng: np.random.Generator, validation: int | None, test: int | None) -> Ints:
    """0, 1 or 2 for each user: 80 % train, 10 % validation, 10 % test unless these are given; at least one in each."""
    shares = [max(1, round(share * users)) for share in SHARES]
    for_validation = shares[1] if validation is None else validation
    train = shares[0] if validation is None and test is None else None
    if train is None:
        train = users - for_validation - (max(1, users - sum(shares)) if test is None else test)
    if train < 1:
        asked = f"{for_validation} and {test}" if test is not None else str(for_validation)
        raise InvalidInput("validation_users, test_users", asked, f"less than the {users} users that there are")
    part_of = np.full(users, 2)
    order = rng.permutation(users)
    part_of[order[:train]] = 0
    part_of[order[train : train + for_validation]] = 1
    return part_of


def _right_singular(matrix: csr_array, dim: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The first right singular vectors as columns (K, dim), and the singular values, falling."""
    from scipy.sparse.linalg import svds

    if dim >= min(matrix.shape):
        raise InvalidInput("dim", dim, f"less than {min(matrix.shape)}, the smaller of training users and items")
    _, values, rows = svds(matrix, k=dim, v0=rng.standard_normal(min(matrix.shape)), solver="arpack")
    order = np.argsort(-values, kind="stable")
    vectors = cast(Array, rows[order].T)
    # a singular vector is known up to its sign only
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(dim)]
    return np.ascontiguousarray(vectors * np.where(largest < 0, -1.0, 1.0)), values[order]


def _padded(matrix: csr_array) -> Ints:
    """The columns of the entries of each row, padded with -1."""
    counts = np.diff(matrix.indptr)
    out = np.full((len(counts), int(counts.max(initial=0))), -1, dtype=np.int64)
    row = np.repeat(np.arange(len(counts)), counts)
    out[row, np.arange(len(row)) - np.repeat(matrix.indptr[:-1], counts)] = matrix.indices
    return out


__all__ = ["Halves", "History", "InteractionWorld", "UserPart", "halves"]
