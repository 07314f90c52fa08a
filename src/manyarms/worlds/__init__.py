"""Simulators and data sets whose best action is known, so that regret is exact.

MixedEffect     draws effects and actions from the model that meTS assumes (thesis, lines 1229-1240)
MovieLens       movies as actions and users as contexts, learned from ratings (thesis, lines 1256-1262)
"""

from __future__ import annotations

from manyarms.worlds import datasets
from manyarms.worlds.base import Cube, Pool, RewardKind, RewardModel, World
from manyarms.worlds.mixed_effect import MixedEffect
from manyarms.worlds.movielens import MovieLens

__all__ = ["Cube", "MixedEffect", "MovieLens", "Pool", "RewardKind", "RewardModel", "World", "datasets"]
