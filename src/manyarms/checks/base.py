"""What all checks share: a failed law raises `CheckFailed`, which says what must hold and what was seen."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array


class CheckFailed(AssertionError):
    """A law that must hold does not."""


def require(holds: bool, law: str, seen: object = None) -> None:
    """Raise CheckFailed unless the law holds."""
    if not holds:
        raise CheckFailed(law if seen is None else f"{law}; saw {seen}")


def require_close(
    ours: Array, theirs: Array, what: str, tolerance: float = 1e-8, reference: str = "brute force"
) -> None:
    """Raise CheckFailed unless two arrays agree, relative to the larger of the second and 1e-3."""
    error = float(np.abs(ours - theirs).max() / max(1e-300, float(np.abs(theirs).max()), 1e-3))
    require(error < tolerance, f"{what} agrees with {reference} to {tolerance:g}", error)


__all__ = ["CheckFailed", "require", "require_close"]
