"""What all checks share: a failed law raises `CheckFailed`, which says what must hold and what was seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manyarms._base.typing import Array
from manyarms.errors import InvalidInput


class CheckFailed(AssertionError):
    """A law that must hold does not."""


def require(holds: bool, law: str, seen: object = None) -> None:
    """Raise CheckFailed unless the law holds."""
    if not holds:
        raise CheckFailed(law if seen is None else f"{law}; saw {seen}")


def refused(call: Callable[[], object], law: str) -> InvalidInput:
    """The error with which a call is refused; CheckFailed unless it is InvalidInput, as the law says."""
    try:
        call()
    except InvalidInput as error:
        return error
    except Exception as error:
        raise CheckFailed(f"{law}; saw {error!r}") from error
    raise CheckFailed(f"{law}; it was accepted")


def require_close(
    ours: Array, theirs: Array, what: str, tolerance: float = 1e-8, reference: str = "brute force"
) -> None:
    """Raise CheckFailed unless two arrays agree, relative to the larger of the second and 1e-3."""
    error = float(np.abs(ours - theirs).max() / max(1e-300, float(np.abs(theirs).max()), 1e-3))
    require(error < tolerance, f"{what} agrees with {reference} to {tolerance:g}", error)


__all__ = ["CheckFailed", "refused", "require", "require_close"]
