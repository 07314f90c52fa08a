"""The arrays of a part inside the arrays of a whole, told apart by a prefix of their names."""

from __future__ import annotations

from collections.abc import Mapping

from manyarms._base.typing import AnyArray


def prefixed(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The arrays of a part, their names with a prefix."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def under(prefix: str, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """The arrays whose names have the prefix, without it: the inverse of `prefixed`."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


__all__ = ["prefixed", "under"]
