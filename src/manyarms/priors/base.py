"""What every prior of the actions' parameters can tell."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from manyarms.priors.gaussian import ActionPrior


@runtime_checkable
class ParameterPrior(Protocol):
    """A prior of the parameters theta_1, ..., theta_K: what agents and reward models start from."""

    @property
    def actions(self) -> int:
        """K, the number of actions."""

    @property
    def dim(self) -> int:
        """d, the length of a context and of an action's parameter."""

    def marginal(self) -> ActionPrior:
        """What the actions share integrated out, action by action; correlations between actions are lost."""


__all__ = ["ParameterPrior"]
