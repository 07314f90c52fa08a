"""Where `manyarms reproduce` finds the experiments: in a package beside the library, imported when it is asked for."""

from __future__ import annotations

from types import ModuleType

from manyarms.errors import ManyArmsError


def find_experiments() -> ModuleType:
    """The catalogue of the experiments; a clear refusal where their package is not installed."""
    try:
        from manyarms_thesis import catalogue
    except ModuleNotFoundError as error:
        if error.name != "manyarms_thesis":
            raise
        raise ManyArmsError(
            "the experiments are in the package manyarms_thesis, which is not installed here; "
            "it comes with the wheel and with a checkout of manyarms"
        ) from error
    return catalogue


__all__ = ["find_experiments"]
