"""Simulators and data sets whose best action is known, so that regret is exact.

MixedEffect     draws effects and actions from the model that meTS assumes (thesis, lines 1229-1240)
MovieLens       movies as actions and users as contexts, learned from ratings (thesis, lines 1256-1262)
Diffusion       draws actions from the model that dTS assumes (thesis, lines 1613-1622)
SwissRoll       actions on a Swiss roll, which is no such model (thesis, lines 1676-1680)
Images          pictures as actions, one parameter for all of them (thesis, lines 4036-4058)
InteractionWorld  interaction data as a logged bandit: half of a history is seen, half rewarded (thesis, lines 5397-5440)
CatalogueWorld  a made-up catalogue of up to a million actions whose click rates are known
SupervisedWorld  labelled rows as a logged bandit: an action is a label (thesis, lines 6064-6124)
log_from        what a logging policy would have written in a world; skewed_policy is one that plays few actions often
simulate        an agent in a world, round by round, with its exact regret
"""

from __future__ import annotations

from manyarms.worlds import datasets, image_files, interaction_files
from manyarms.worlds.base import Cube, Pool, RewardDistribution, RewardKind, World
from manyarms.worlds.catalogue import CatalogueWorld
from manyarms.worlds.diffusion import Diffusion, synthetic_chain
from manyarms.worlds.images import Images
from manyarms.worlds.interaction_files import Interactions, read_interactions
from manyarms.worlds.interactions import InteractionWorld
from manyarms.worlds.logged import log_from, skewed_policy
from manyarms.worlds.mixed_effect import MixedEffect
from manyarms.worlds.movielens import MovieLens
from manyarms.worlds.rounds import Value
from manyarms.worlds.simulation import OnlineRun, simulate
from manyarms.worlds.supervised import SupervisedWorld
from manyarms.worlds.swiss_roll import SwissRoll

__all__ = [
    "CatalogueWorld",
    "Cube",
    "Diffusion",
    "Images",
    "InteractionWorld",
    "Interactions",
    "MixedEffect",
    "MovieLens",
    "OnlineRun",
    "Pool",
    "RewardDistribution",
    "RewardKind",
    "SupervisedWorld",
    "SwissRoll",
    "Value",
    "World",
    "datasets",
    "image_files",
    "interaction_files",
    "log_from",
    "read_interactions",
    "simulate",
    "skewed_policy",
    "synthetic_chain",
]
