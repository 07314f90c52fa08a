"""Diffusion priors: a chain of latents above the actions (thesis, Chapter 4).

    psi_L ~ N(0, Sigma_(L+1)),    psi_(l-1) | psi_l ~ N(f_l(psi_l), Sigma_l),    theta_a | psi_1 ~ N(f_1(psi_1), Sigma_1)

Two readings of "above the actions":

- shared (the thesis's model): one chain for all actions. All theta_a lie within Sigma_1 of the one point f_1(psi_1), and playing
  any action teaches about that point.
- one chain per action: theta_a are independent draws of the diffusion. This is what a chain pre-trained on single actions'
  parameters means; nothing is shared beyond the prior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.nested import prefixed, under
from manyarms._base.tables import Shown, Table, text_of
from manyarms._base.text import counted
from manyarms._base.typing import AnyArray, Array
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior
from manyarms.priors.links import LINKS, LinearLink, Link, LinkLike, as_link


@dataclass(frozen=True, eq=False, init=False, repr=False)
class DiffusionPrior(Shown):
    """A diffusion prior over the parameters of K actions.

    links: f_1, ..., f_L, from the actions upwards: matrices, functions of points (n, d), or links (manyarms.priors.links).
    covariances: Sigma_1, ..., Sigma_(L+1), each a number (times the identity), a diagonal (d,), or a matrix (d, d).
    shared: one chain for all actions, or one per action.
    """

    actions: int
    dim: int
    links: tuple[Link, ...]
    covariances: Array  # (L + 1, d, d)
    shared: bool

    def __init__(
        self,
        actions: int,
        dim: int,
        links: Sequence[LinkLike],
        covariances: Sequence[npt.ArrayLike] | Array,
        shared: bool = True,
    ) -> None:
        put = object.__setattr__
        put(self, "actions", validate.count("actions", actions))
        put(self, "dim", validate.count("dim", dim))
        if not isinstance(links, Sequence | np.ndarray) or isinstance(links, str | bytes) or not len(links):
            raise InvalidInput("links", validate.describe(links), "a list with at least one link, f_1")
        if not isinstance(covariances, Sequence | np.ndarray) or isinstance(covariances, str | bytes):
            raise InvalidInput("covariances", validate.describe(covariances), f"a list of {len(links) + 1} covariances")
        if len(covariances) != len(links) + 1:
            raise InvalidInput(
                "covariances", f"{len(covariances)} of them", f"{len(links) + 1}, one more than there are links"
            )
        # the covariances twice, and what finds out whether a function is linear
        validate.square_room("dim", self.dim, 2 * len(covariances) + 4)
        put(self, "links", tuple(as_link(f"links[{i}]", link, self.dim) for i, link in enumerate(links)))
        full = [_full(f"covariances[{i}]", value, self.dim) for i, value in enumerate(covariances)]
        put(self, "covariances", validate.owned(np.stack(full)))
        put(self, "shared", validate.flag("shared", shared))
        if self.matrices is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                largest = float(np.abs(self._spread(0, self.depth)).max())
            if not largest < validate.LARGEST:
                expected = f"links that make variances below {validate.LARGEST:g}"
                raise InvalidInput("links", f"links that make variances of {largest:.3g}", expected)

    @property
    def depth(self) -> int:
        """L, the number of latents."""
        return len(self.links)

    @property
    def matrices(self) -> tuple[Array, ...] | None:
        """W_1, ..., W_L where every link is linear; the posterior is exact then."""
        found = tuple(link.matrix for link in self.links if isinstance(link, LinearLink))
        return found if len(found) == self.depth else None

    def draw_centres(self, rng: np.random.Generator, n: int) -> Array:
        """(n, d) draws of f_1(psi_1) from the prior."""
        rng = validate.instance("rng", rng, np.random.Generator, "a numpy Generator")
        n = validate.room("n", validate.count("n", n, least=0), 24 * self.dim, "draws")
        factors = np.linalg.cholesky(self.covariances)
        psi = rng.standard_normal((n, self.dim)) @ factors[self.depth].T
        for level in range(self.depth - 1, 0, -1):
            psi = self.links[level](psi) + rng.standard_normal((n, self.dim)) @ factors[level].T
        return self.links[0](psi)

    def draw(self, rng: np.random.Generator) -> Array:
        """(K, d): the parameters of a catalogue drawn from the prior."""
        validate.room("actions", self.actions, 24 * self.dim, "actions whose parameters are drawn")
        centres = self.draw_centres(rng, 1 if self.shared else self.actions)
        noise = rng.standard_normal((self.actions, self.dim)) @ np.linalg.cholesky(self.covariances[0]).T
        return centres + noise

    def with_actions(self, actions: int, shared: bool | None = None) -> DiffusionPrior:
        """The same chain over another number of actions, or read the other way."""
        return DiffusionPrior(
            actions, self.dim, self.links, list(self.covariances), self.shared if shared is None else shared
        )

    # ---- keeping

    @property
    def link_kinds(self) -> list[str]:
        """The kinds of the links, by which they are restored."""
        return [link.kind for link in self.links]

    def arrays(self) -> dict[str, AnyArray]:
        """Covariances and links as arrays."""
        out: dict[str, AnyArray] = {"covariances": self.covariances}
        for i, link in enumerate(self.links):
            out |= prefixed(f"link{i}.", link.arrays())
        return out

    @classmethod
    def restored(cls, link_kinds: list[str], arrays: dict[str, AnyArray], actions: int, shared: bool) -> DiffusionPrior:
        """The prior that the kinds of its links and `arrays` describe."""
        links = [LINKS[kind].restored(under(f"link{i}.", arrays)) for i, kind in enumerate(link_kinds)]
        covariances = arrays["covariances"]
        return cls(actions, int(covariances.shape[1]), links, list(covariances), shared)

    # ---- two-level and flat versions of it ----------------------------------------------------------------------------

    def marginal(self, draws: int = 100_000, seed: int = 0) -> ActionPrior:
        """Every action on its own: the LinTS and GLM-TS that go with this prior.

        Linear links: N(0, Sigma_1 + sum_l B_l Sigma_(l+1) B_l^T), B_l = W_1 ... W_l (thesis, Section 4.3.1). Otherwise mean and
        covariance are Monte-Carlo moments over `draws`.
        """
        mean, spread = self.centre_moments(draws, seed)
        return ActionPrior(self.actions, mean, spread + self.covariances[0])

    def centre_moments(self, draws: int = 100_000, seed: int = 0) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of the centre f_1(psi_1), around which theta_a varies by Sigma_1.

        Linear links: 0 and sum_l B_l Sigma_(l+1) B_l^T, B_l = W_1 ... W_l, exactly. Otherwise moments of `draws` draws with a
        seed of their own, so that equal priors have equal moments: a variance is off by about sqrt(2 / draws) of itself, half a
        percent by default. The covariance may be singular: a link can map everything to a line.
        """
        if self.matrices is not None:
            return np.zeros(self.dim), self._spread(0, self.depth) - self.covariances[0]
        draws = validate.count("draws", draws, least=2)
        centres = self.draw_centres(validate.seeded(seed), draws)
        return centres.mean(axis=0), np.atleast_2d(np.cov(centres.T))

    def _spread(self, low: int, high: int) -> Array:
        """Sigma_(low+1) + sum over low < l <= high of B_l Sigma_(l+1) B_l^T, B_l = W_(low+1) ... W_l."""
        assert self.matrices is not None
        above, B = np.zeros((self.dim, self.dim)), np.eye(self.dim)
        for level in range(low + 1, high + 1):
            B = B @ self.matrices[level - 1]
            above += B @ self.covariances[level] @ B.T
        return np.asarray(self.covariances[low] + above)

    def two_level(self, keep: int) -> TwoLevelPrior:
        """A linear chain with all latents but psi_keep integrated out (thesis, Appendix B.3).

        keep = L is the thesis's HierTS-1: theta_a | psi_L ~ N(B_L psi_L, Omega_1), actions independent given psi_L, which in
        truth they are not. keep = 1 is HierTS-2, which is exact: psi_1 with its marginal covariance, and
        theta_a | psi_1 ~ N(W_1 psi_1, Sigma_1).
        """
        if self.matrices is None:
            raise InvalidInput("links", "links that are not linear", "linear links: others cannot be integrated out")
        keep = validate.count("keep", keep, most=self.depth)
        down = np.linalg.multi_dot([np.eye(self.dim), *self.matrices[:keep]])
        return TwoLevelPrior(self.actions, down, self._spread(keep, self.depth), self._spread(0, keep - 1))

    def _table(self) -> Table:
        chain = "one chain for all actions" if self.shared else "a chain for each action"
        title = f"{counted(self.actions, 'action')}, contexts of length {self.dim:,}, {counted(len(self.links), 'step')}, {chain}"
        kinds = Counter(type(link).__name__ for link in self.links)
        rows = [
            ("links", ", ".join(f"{n} {kind}" for kind, n in kinds.items())),
            ("covariances", text_of(self.covariances)),
        ]
        return Table(title, rows=rows)


@dataclass(frozen=True, eq=False, repr=False)
class TwoLevelPrior(Shown):
    """psi ~ N(0, covariance), theta_a | psi ~ N(matrix psi, action_covariance): a linear chain with one latent left."""

    actions: int
    matrix: Array
    covariance: Array
    action_covariance: Array

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "actions", validate.count("actions", self.actions))
        matrix = validate.as_array("matrix", self.matrix, (None, None))
        put(self, "matrix", validate.owned(matrix))
        put(self, "covariance", validate.owned(validate.one_covariance("covariance", self.covariance, matrix.shape[1])))
        own = validate.action_covariance("action_covariance", self.action_covariance, len(matrix), self.actions)
        put(self, "action_covariance", validate.owned(own))

    @property
    def dim(self) -> int:
        """d."""
        return len(self.matrix)

    def marginal(self) -> ActionPrior:
        """psi integrated out, action by action: N(0, W Sigma W^T + Sigma_a)."""
        spread = self.matrix @ self.covariance @ self.matrix.T
        return ActionPrior(self.actions, np.zeros(self.dim), spread + self.action_covariance)

    def hierarchical(self) -> HierarchicalPrior:
        """The same with matrix psi as the shared mean, where the matrix is invertible."""
        spread = self.matrix @ self.covariance @ self.matrix.T
        return HierarchicalPrior(self.actions, np.zeros(self.dim), spread, self.action_covariance)


def _full(name: str, value: npt.ArrayLike, dim: int) -> Array:
    array = validate.as_floats(name, value)
    if array.ndim == 0:
        return np.eye(dim) * validate.positive(name, float(array))
    if array.ndim == 1:
        if array.shape != (dim,) or not (array >= validate.SMALLEST).all():
            came = f"shape {array.shape}" if array.shape != (dim,) else f"{array.min():g} among them"
            raise InvalidInput(name, came, f"{dim} positive numbers for a diagonal covariance")
        return validate.one_covariance(name, np.diag(array), dim)
    return validate.one_covariance(name, array, dim)


__all__ = ["DiffusionPrior", "TwoLevelPrior"]
