"""What a belief in double precision can hold: the limits, each checked where the numbers are first known together.

A row of noise s tells a direction of standard deviation p apart to s. Factors hold both beside each other with an error of about
p / s x 1e-16 of s (docs/accuracy.md has measurements), so that a ratio of `MOST_SIGNAL` leaves four digits. Beyond it the last
digits of a posterior would be invented.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root
from manyarms.errors import InvalidInput

MOST_SIGNAL = 1e12  # how many times the noise a standard deviation of the prior may be


def spread(root: Root, leaves: Leaves) -> float:
    """A bound on the prior variances of what the actions take from the root."""
    return 0.0 if root.known else root.size() * leaves.mixing.largest_size(leaves.dim)


def check_noise(root: Root, leaves: Leaves, noise_variance: float | None, most: float = MOST_SIGNAL) -> None:
    """The noise, which is taken to be 1 for a GLM, must not vanish beside the prior."""
    largest = float(np.sqrt(leaves.largest_prior_size() + spread(root, leaves)))
    told = f"doubles do not hold what differs by more than {most:g}"
    if noise_variance is None:
        if largest > most:
            raise InvalidInput(
                "prior",
                f"standard deviations, roots of summed variances, up to {largest:.3g}",
                f"at most {most:g}, beside rewards of order 1: {told}",
            )
    elif largest > most * np.sqrt(noise_variance):
        raise InvalidInput(
            "noise",
            f"{np.sqrt(noise_variance):.3g} with prior standard deviations, roots of summed variances, up to {largest:.3g}",
            f"at least {largest / most:.3g}: {told}",
        )


def check_new_actions(
    root: Root,
    leaves: Leaves,
    rows: Array | None,
    packed: Array | None,
    noise_variance: float | None,
    signal: float = MOST_SIGNAL,
) -> None:
    """The same for actions that are to be added, with these features and packed covariances."""
    if rows is None and packed is None:
        return
    most = _most(noise_variance, signal)
    # what the actions have in common was found good when the belief was made
    own = np.array([min(leaves.largest_prior_size(), most)]) if packed is None else leaves.packing.trace(packed)
    taken = np.array([spread(root, leaves)])
    if rows is not None and not root.known:
        taken = root.size() * leaves.mixing.row_sizes(rows, leaves.dim)
    own, taken = np.broadcast_arrays(own, taken)
    worst = int((own + taken).argmax())
    mine, roots = float(own[worst]), float(taken[worst])
    if mine + roots <= most:
        return
    if rows is None or (packed is not None and mine >= min(roots, most)):
        came = f"variances that sum to {mine:.3g}" + (f", and {roots:.3g} from the root" if roots else "")
        raise InvalidInput("covariance", came, f"variances that sum to at most {most:.3g}: more dwarfs the noise")
    squares = float(rows[worst] @ rows[worst])  # the root's share is proportional to it
    raise InvalidInput(
        "weights",
        f"weights whose squares sum to {squares:.3g}",
        f"weights whose squares sum to at most {(most - mine) * (squares / roots):.3g}: more dwarfs the noise",
    )


class ContextLimit:
    """No context may be so long that the prior standard deviation of its score dwarfs the noise, 1 for a GLM.

    The length that every action may see is computed when it is first asked for, and again after actions came; only what is longer
    is compared with the prior of the action that saw it.
    """

    def __init__(self, most: float = MOST_SIGNAL) -> None:
        self.most = most
        self._safe = 0, 0.0  # for how many actions, and the largest square of a length that does for all of them

    def check(self, root: Root, leaves: Leaves, X: Array, actions: Ints, noise_variance: float | None) -> None:
        """Refuse contexts X (n, d), seen by these actions, that are too long."""
        seen, safe = self._safe
        if seen != leaves.catalogue.size:
            safe = _most(noise_variance, self.most) / (leaves.largest_prior_size() + spread(root, leaves))
            self._safe = leaves.catalogue.size, safe
        if len(X) == 1 and float(X[0] @ X[0]) <= safe:  # almost always, by the short way
            return
        squares = np.einsum("nd,nd->n", X, X)
        if squares.max(initial=0.0) <= safe:
            return
        long = np.flatnonzero(squares > safe)
        sizes = leaves.prior_sizes(actions[long])
        if not root.known:
            sizes = sizes + root.size() * leaves.mixing.sizes(actions[long], leaves.dim)
        most = np.broadcast_to(_most(noise_variance, self.most) / sizes, len(long))
        excess = squares[long] / most
        worst = int(excess.argmax())
        if excess[worst] > 1:
            raise InvalidInput(
                "x",
                f"a context of length {np.sqrt(squares[long[worst]]):.3g}",
                f"contexts of length up to {np.sqrt(most[worst]):.3g}",
            )


def _most(noise_variance: float | None, most: float = MOST_SIGNAL) -> float:
    """The largest prior variance that a score may have."""
    return most**2 * (1.0 if noise_variance is None else noise_variance)


__all__ = ["MOST_SIGNAL", "ContextLimit", "check_new_actions", "check_noise", "spread"]
