"""What a belief in double precision can hold: the limits, each checked where the numbers are first known together.

A row of noise s tells a direction of standard deviation p apart to s. Factors hold both beside each other with an error of about
p / s x 1e-16 of s (docs/accuracy.md has measurements), so that a ratio of `MOST_SIGNAL` leaves four digits. Beyond it the last
digits of a posterior would be invented.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.roots import Root
from manyarms.errors import InvalidInput

MOST_SIGNAL = 1e12  # how many times the noise a standard deviation of the prior may be


def spread(root: Root, leaves: Leaves) -> float:
    """A bound on the prior variances of what the actions take from the root."""
    return 0.0 if root.known else root.size() * leaves.mixing.largest_size(leaves.dim)


def check_noise(root: Root, leaves: Leaves, noise_variance: float | None) -> None:
    """The noise must not vanish beside the prior."""
    if noise_variance is None:
        return
    largest = float(np.sqrt(leaves.largest_prior_size() + spread(root, leaves)))
    if largest > MOST_SIGNAL * np.sqrt(noise_variance):
        raise InvalidInput(
            "noise",
            f"{np.sqrt(noise_variance):.3g} with a prior whose standard deviations go up to {largest:.3g}",
            f"at least {largest / MOST_SIGNAL:.3g}: doubles do not hold what differs by more than {MOST_SIGNAL:g}",
        )


def check_new_actions(
    root: Root, leaves: Leaves, rows: Array | None, packed: Array | None, noise_variance: float | None
) -> None:
    """The same for actions that are to be added, with these features and packed covariances."""
    if noise_variance is None:
        return
    most = noise_variance * MOST_SIGNAL**2
    if packed is not None and leaves.packing.trace(packed).max() > most:
        raise InvalidInput("covariance", "variances too large for the noise", f"variances up to {most:.3g}")
    if rows is not None and not root.known and root.size() * leaves.dim * np.square(rows).sum(axis=1).max() > most:
        raise InvalidInput(
            "weights", f"{np.abs(rows).max():.3g}", f"weights that make variances up to {most:.3g} of the root's"
        )


def check_contexts(root: Root, leaves: Leaves, X: Array, noise_variance: float | None) -> None:
    """No context may be so long that its score's standard deviation dwarfs the noise; a GLM's noise is taken to be 1."""
    squares = float(X[0] @ X[0]) if len(X) == 1 else float(np.einsum("nd,nd->n", X, X).max(initial=0.0))
    noise = 1.0 if noise_variance is None else noise_variance
    if squares * 1e-4 > noise:  # rarely so; the prior's size is asked for only then
        most = MOST_SIGNAL**2 * noise / (leaves.largest_prior_size() + spread(root, leaves))
        if squares > most:
            raise InvalidInput(
                "x", f"a context of length {np.sqrt(squares):.3g}", f"contexts of length up to {np.sqrt(most):.3g}"
            )


__all__ = ["MOST_SIGNAL", "check_contexts", "check_new_actions", "check_noise", "spread"]
