"""How much of α a challenger may spend, when there is no end of challengers."""

from __future__ import annotations

import math

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.sequential import inputs


def spent_alpha(alpha: float, challenger: int) -> float:
    """α_k = 6α/(π²k²) for challenger k = 1, 2, …: they sum to α, so that with probability 1 − α no certificate is ever wrong.

    Each statement is wrong with probability at most its own α_k, and some one is with at most their sum (Σ 1/k² = π²/6), however
    the challengers were chosen and however many come.

    >>> [round(spent_alpha(0.05, k), 4) for k in (1, 2, 3)]
    [0.0304, 0.0076, 0.0034]
    """
    k = validate.count("challenger", challenger)
    share = 6 * inputs.level(alpha) / (math.pi**2 * float(k) ** 2)
    if share < validate.SMALLEST:
        raise InvalidInput("challenger", challenger, f"one that is left {validate.SMALLEST:g} of alpha")
    return share


__all__ = ["spent_alpha"]
