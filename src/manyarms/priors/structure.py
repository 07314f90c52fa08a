"""Structure from what is already there: a mixed-effect prior from offline estimates, estimates from ratings.

    ratings (user, item, value)  --factorise-->  theta_a, one vector an item  --mixture-->  MixedEffectPrior

(thesis, Section 3.1.3; the MovieLens rule of Section 3.4.2 is the other way of choosing the covariances)
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.linalg import packing
from manyarms._base.tables import Shown
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.priors.estimates import of_moderate_size
from manyarms.priors.gaussian import MixedEffectPrior

# variances below this part of the average variance are raised to it: a covariance must be positive definite
RELATIVE_FLOOR = 1e-6
# entries in a block of normal equations
BLOCK_ENTRIES = 1 << 22
# a ridge below this part of the normal equations' entries is lost in their rounding
SMALLEST_RIDGE = 1e-14
# so many indices, and so many for each rating, may have gaps between them; more are a mistake unless `shape` says so
MOST_INDICES, MOST_INDICES_A_RATING = 1_000_000, 100


def mixture(
    parameters: npt.ArrayLike,
    effects: int,
    *,
    seed: int = 0,
    covariance: Literal["diag", "full"] = "diag",
    spread: Literal["components", "marginal"] = "components",
    effect_share: float = 0.75,
    learned_from: npt.ArrayLike | None = None,
) -> MixedEffectPrior:
    """A mixed-effect prior from offline estimates of theta_a, (K, d), by a Gaussian mixture of L components.

    Effect means are the components' centres mu_l and b_al is the probability that action a is in component l.
    For the covariances there are two rules, with s = effect_share in (0, 1):

    "components" (thesis, Section 3.1.3)
        effect l has its component's covariance S_l. The thesis leaves the actions' own covariance open; here
        it is (1 - s) / s sum_l pi_l S_l, with pi_l the mixture's proportions, so that an action's variance
        stands to its effect's as (1 - s) to s, on average over the components.
    "marginal" (thesis, Section 3.4.2, where s = 0.75)
        with V the covariance of all estimates (its diagonal for "diag"): every effect has s V, every action
        (1 - s) V.

    learned_from: the rows that centres and covariances are learned from (None: all); the others only get their
    probabilities. A coordinate without variance, or a component of one member, gets a floor of 1e-6 times the average
    variance (1e-6 where all estimates are equal). Needs scikit-learn.
    """
    estimates = of_moderate_size("parameters", validate.as_array("parameters", parameters, (None, None)))
    effects, seed = validate.count("effects", effects), validate.seed(seed)
    validate.one_of("covariance", covariance, ("diag", "full"))
    validate.one_of("spread", spread, ("components", "marginal"))
    effect_share = validate.number("effect_share", effect_share, above=0, below=1)
    known = estimates if learned_from is None else estimates[_rows("learned_from", learned_from, len(estimates))]
    distinct = len(np.unique(known, axis=0))
    if distinct < effects:
        raise InvalidInput(
            "effects", f"{effects} for {len(known)} actions, {distinct} of them distinct",
            "no more effects than distinct rows of parameters",
        )  # fmt: skip
    validate.square_room("effects", effects, 2 * estimates.shape[1] ** 2)
    average = float(known.var(axis=0).mean())
    floor = RELATIVE_FLOOR * (average if average > 0 else 1.0)
    weights, centres, covariances, proportions = _fit(known, estimates, effects, seed, covariance, floor)
    if spread == "components":
        blocks = covariances
        action = (1 - effect_share) / effect_share * np.einsum("l,lij->ij", proportions, covariances)
    else:
        overall = np.atleast_2d(np.cov(known, rowvar=False, bias=True))
        if covariance == "diag":
            overall = np.diag(np.maximum(np.diag(overall), floor))
        else:
            overall = overall + floor * np.eye(len(overall))
        blocks = np.broadcast_to(effect_share * overall, (effects, *overall.shape))
        action = (1 - effect_share) * overall
    dim = estimates.shape[1]
    effect = np.zeros((effects, dim, effects, dim))
    effect[np.arange(effects), :, np.arange(effects), :] = blocks
    return MixedEffectPrior(weights, centres, effect.reshape(effects * dim, effects * dim), action)


def _fit(
    known: Array, estimates: Array, effects: int, seed: int, covariance: str, floor: float
) -> tuple[Array, Array, Array, Array]:
    """A mixture fitted to `known`: responsibilities (K, L) of all, centres (L, d), covariances (L, d, d), proportions."""
    try:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture
    except ImportError as error:
        raise MissingExtra("scikit-learn", "experiments", "learning a mixture") from error
    model = GaussianMixture(
        effects,
        covariance_type=covariance,
        reg_covar=floor,
        max_iter=500,
        random_state=seed % 2**32,  # scikit-learn takes no longer ones
    )
    with warnings.catch_warnings():
        # a mixture that still creeps after 500 steps is as good a proxy structure as one that has stopped
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(known)
    weights = model.predict_proba(estimates)
    if covariance == "diag":
        matrices = model.covariances_[:, :, None] * np.eye(estimates.shape[1])
    else:
        matrices = model.covariances_
    return weights, model.means_, matrices, model.weights_


@dataclass(frozen=True, eq=False, repr=False)
class Factors(Shown):
    """A low-rank factorisation: rating of item i by user u ~ users[u] . items[i]."""

    users: Array
    items: Array

    def __post_init__(self) -> None:
        users = validate.as_array("users", self.users, (None, None))
        items = validate.as_array("items", self.items, (None, users.shape[1]))
        object.__setattr__(self, "users", validate.owned(users))
        object.__setattr__(self, "items", validate.owned(items))

    def predict(self, users: Ints, items: Ints) -> Array:
        """The ratings it gives to pairs, (n,)."""
        who, what = _rows("users", users, len(self.users)), _rows("items", items, len(self.items))
        if len(who) != len(what):
            raise InvalidInput("items", f"{len(what)} of them", f"{len(who)}, as many as users")
        return cast(Array, np.einsum("nd,nd->n", self.users[who], self.items[what]))

    def objective(self, users: Ints, items: Ints, ratings: Array, ridge: float) -> float:
        """What `factorise` minimises: squared errors on the pairs plus ridge times all squared lengths."""
        errors = ratings - self.predict(users, items)
        return float(errors @ errors + ridge * ((self.users**2).sum() + (self.items**2).sum()))


def factorise(
    users: npt.ArrayLike,
    items: npt.ArrayLike,
    ratings: npt.ArrayLike,
    dim: int,
    *,
    sweeps: int = 20,
    ridge: float = 1.0,
    seed: int = 0,
    shape: tuple[int, int] | None = None,
) -> Factors:
    """Low-rank factorisation of a rating matrix by alternating least squares on its observed entries.

    minimise  sum_n (ratings_n - u_(users_n) . v_(items_n))^2 + ridge (sum_u ||u||^2 + sum_i ||v_i||^2)

    users and items are indices from 0; shape is (users, items), by default the largest indices plus one (an index far beyond
    the number of ratings is refused then).
    Nothing is centred. A pair that comes twice counts twice; who has no rating gets the zero vector. A sweep
    solves for all users and then for all items exactly, so the objective never rises. It takes O(n d^2) time
    and O((users + items) d^2) memory.
    """
    who, what = _indices("users", users), _indices("items", items)
    values = validate.as_array("ratings", ratings, (None,))
    if not len(who) == len(what) == len(values):
        raise InvalidInput("ratings", f"lengths {len(who)}, {len(what)} and {len(values)}", "arrays of one length")
    dim, sweeps = validate.count("dim", dim), validate.count("sweeps", sweeps)
    ridge = validate.positive("ridge", ridge)
    rng = np.random.default_rng(validate.seed(seed))
    size = _size(who, what, shape)
    for name, number in zip(("users", "items"), size, strict=True):
        validate.room(name, number, 16 * dim, f"vectors of {dim:,} numbers")
    who_rated, who = np.unique(who, return_inverse=True)
    what_rated, what = np.unique(what, return_inverse=True)
    validate.room("dim", dim, 8 * (dim + 1) * max(len(who_rated), len(what_rated)), "dimensions")
    from scipy import sparse  # late: only a factorisation needs it, and it takes a while to import

    # both are sums over repeated pairs: how often a pair was rated, and its ratings' total
    rated = (len(who_rated), len(what_rated))
    seen = sparse.csr_array((np.ones(len(values)), (who, what)), shape=rated)
    total = sparse.csr_array((values, (who, what)), shape=rated)
    seen_by_item, total_by_item = seen.T.tocsr(), total.T.tocsr()
    item_vectors = (rng.standard_normal((size[1], dim)) / np.sqrt(dim))[what_rated]
    for _ in range(sweeps):
        user_vectors = _least_squares(seen, total, item_vectors, ridge)
        item_vectors = _least_squares(seen_by_item, total_by_item, user_vectors, ridge)
    return Factors(_spread_out(user_vectors, who_rated, size[0]), _spread_out(item_vectors, what_rated, size[1]))


def _size(who: Ints, what: Ints, shape: tuple[int, int] | None) -> tuple[int, int]:
    """How many users and items there are."""
    needed = (int(who.max()) + 1, int(what.max()) + 1)
    if shape is None:
        most = max(MOST_INDICES, MOST_INDICES_A_RATING * len(who))
        for name, number in zip(("users", "items"), needed, strict=True):
            if number > most:
                wanted = f"indices from 0 with few gaps, below {most:,} for so many ratings; or shape=(users, items)"
                raise InvalidInput(name, f"an index of {number - 1:,}", wanted)
        return needed
    if not isinstance(shape, list | tuple) or len(shape) != 2:
        raise InvalidInput("shape", validate.describe(shape), "two numbers, of users and of items")
    size = (validate.count("shape[0]", shape[0]), validate.count("shape[1]", shape[1]))
    if size[0] < needed[0] or size[1] < needed[1]:
        raise InvalidInput("shape", size, f"at least {needed}, since those indices occur")
    return size


def _spread_out(vectors: Array, rated: Ints, number: int) -> Array:
    """Vectors of all, zero for those without ratings."""
    if len(rated) == number:
        return vectors
    out = np.zeros((number, vectors.shape[1]))
    out[rated] = vectors
    return out


def _least_squares(seen: AnyArray, total: AnyArray, other: Array, ridge: float) -> Array:
    """Every row's own ridge regression on the other side's vectors, all at once.

    Row u solves (sum_i n_ui v_i v_i^T + ridge I) w = sum_i t_ui v_i. The sums over its ratings are sparse
    products, the first with the upper triangles of v_i v_i^T as columns.
    """
    rows, dim = seen.shape[0], other.shape[1]
    pack = packing(dim)
    triangles = other[:, pack.rows] * other[:, pack.columns]
    right = total @ other
    solved = np.empty((rows, dim))
    step = max(1, BLOCK_ENTRIES // dim**2)
    for first in range(0, rows, step):
        block = slice(first, min(first + step, rows))
        gram = pack.unpack(seen[block] @ triangles)
        largest = float(np.abs(gram).max(initial=0.0))
        if not ridge >= SMALLEST_RIDGE * largest:
            wanted = f"at least {SMALLEST_RIDGE * largest:.2g}: beside these ratings less is lost in rounding"
            raise InvalidInput("ridge", ridge, wanted)
        gram[:, np.arange(dim), np.arange(dim)] += ridge
        solved[block] = np.linalg.solve(gram, right[block, :, None])[:, :, 0]
    return solved


def _rows(name: str, value: npt.ArrayLike, count: int) -> Ints:
    rows = _indices(name, value)
    if rows.max() >= count:
        raise InvalidInput(name, int(rows.max()), f"rows below {count}, the number of estimates")
    return rows


def _indices(name: str, value: npt.ArrayLike) -> Ints:
    array = validate.integers(name, value, expected="a list of integers of at least 0")
    if not len(array) or array.min() < 0:
        raise InvalidInput(name, validate.describe(value), "a list of integers of at least 0")
    return array


__all__ = ["Factors", "factorise", "mixture"]
