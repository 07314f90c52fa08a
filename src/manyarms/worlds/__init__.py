"""Simulators and data sets whose best action is known, so that regret is exact.

MixedEffect     draws effects and actions from the model that meTS assumes (thesis, lines 1229-1240)
MovieLens       movies as actions and users as contexts, learned from ratings (thesis, lines 1256-1262)
Diffusion       draws actions from the model that dTS assumes (thesis, lines 1613-1622)
SwissRoll       actions on a Swiss roll, which is no such model (thesis, lines 1676-1680)
Images          pictures as actions, one parameter for all of them (thesis, lines 4036-4058)
"""

from __future__ import annotations

from manyarms.worlds import datasets, image_files
from manyarms.worlds.base import Cube, Pool, RewardKind, RewardModel, World
from manyarms.worlds.diffusion import Diffusion, synthetic_chain
from manyarms.worlds.images import Images
from manyarms.worlds.mixed_effect import MixedEffect
from manyarms.worlds.movielens import MovieLens
from manyarms.worlds.swiss_roll import SwissRoll

__all__ = [
    "Cube",
    "Diffusion",
    "Images",
    "MixedEffect",
    "MovieLens",
    "Pool",
    "RewardKind",
    "RewardModel",
    "SwissRoll",
    "World",
    "datasets",
    "image_files",
    "synthetic_chain",
]
