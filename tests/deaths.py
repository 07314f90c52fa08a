"""Work in the middle of which a process dies, once: here and not in a test, so that workers can import it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import engine_contract as contract
from manyarms._base.typing import Array
from manyarms.beliefs.likelihoods import Linear
from manyarms_thesis.mets.common import mixed_effect_world


@dataclass(frozen=True)
class DeadlyRewards(Linear):
    """Linear rewards; whoever first meets the reward `at` dies of it, and leaves `marker`."""

    at: float = np.nan
    marker: str = ""

    def check(self, rewards: Array) -> None:
        if np.any(rewards == self.at):
            contract.die_once(self.marker)


def deadly_world(*, marker: str, **parameters: Any) -> Any:
    """The first process that makes it dies."""
    contract.die_once(marker)
    return mixed_effect_world(**parameters)
