"""Leaves with other sums, and the root from what they tell: for memories that change the evidence of many actions at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manyarms._base.typing import Array, Ints
from manyarms.beliefs import limits, updating
from manyarms.beliefs.drift.memory import MOST_SIGNAL
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief


def check(belief: Belief, name: str) -> None:
    """Refuse a belief whose evidence is not made of sums, or whose root cannot be made anew."""
    if not belief.likelihood.exact:
        likelihood = type(belief.likelihood).__name__
        came = f"{name} with {likelihood} rewards"
        raise InvalidInput("drift", came, "Linear() rewards, or drift=Drift(...), which takes others")
    if not (belief.root.known or belief.root.can_forget):
        raise InvalidInput(
            "drift", f"{name} with a {type(belief.root).__name__}", "a root that can go back to its prior"
        )
    limits.check_noise(belief.root, belief.leaves, belief.likelihood.noise_variance, MOST_SIGNAL)


def noise_variance(belief: Belief) -> float:
    """That of linear rewards."""
    found = belief.likelihood.noise_variance
    assert found is not None
    return found


def renew(belief: Belief, slots: Ints, G: Array, B: Array) -> None:
    """Give these slots other sums, G packed; the root is told nothing."""
    leaves, root = belief.leaves, belief.root
    leaves.replace(slots, G, B, belief.known, limits.spread(root, leaves), root.parts)
    for slot in slots.tolist() if leaves.sharp else ():
        leaves.sharp.pop(slot, None)


def renew_root(belief: Belief) -> None:
    """The root from its prior and from what all leaves tell; whatever is derived from leaves is made anew."""
    if not belief.root.known:
        updating.make_anew(belief.root, belief.leaves, exact=True)
    belief.rebuilt()


__all__ = ["check", "noise_variance", "renew", "renew_root"]
