"""Simulators and data sets whose best action is known, so that regret is exact.

MixedEffect     draws effects and actions from the model that meTS assumes (thesis, Section 3.4.1)
MovieLens       movies as actions and users as contexts, learned from ratings (thesis, Section 3.4.2)
Diffusion       draws actions from the model that dTS assumes (thesis, Section 4.4.1)
SwissRoll       actions on a Swiss roll, which is no such model (thesis, Section 4.4.2)
Images          pictures as actions, one parameter for all of them (thesis, Appendix B.6.4)
InteractionWorld  interaction data as a logged bandit: half of a history is seen, half rewarded (thesis, Appendix D.4)
CatalogueWorld  a made-up catalogue of up to a million actions whose click rates are known
SupervisedWorld  labelled rows as a logged bandit: an action is a label (thesis, Appendix E.3)
log_from        what a logging policy would have written in a world; skewed_policy is one that plays few actions often
simulate        an agent in a world, round by round, with its exact regret
Drifting        actions that change from round to round: `Wandering`, `Sudden`, `Seasons`, `Turnover`, or several of them
simulate_drifting  an agent in such a world, with the regret against the best action of every round
"""

from __future__ import annotations

from manyarms.worlds import datasets, image_files, interaction_files
from manyarms.worlds.base import Cube, Pool, RewardDistribution, RewardKind, World
from manyarms.worlds.catalogue import CatalogueWorld
from manyarms.worlds.changes import Change, Seasons, Sudden, Turnover, Wandering
from manyarms.worlds.diffusion import Diffusion, synthetic_chain
from manyarms.worlds.drifting import CatalogueChange, Drifting
from manyarms.worlds.drifting_rounds import DriftingRun, simulate_drifting
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
    "CatalogueChange",
    "CatalogueWorld",
    "Change",
    "Cube",
    "Diffusion",
    "Drifting",
    "DriftingRun",
    "Images",
    "InteractionWorld",
    "Interactions",
    "MixedEffect",
    "MovieLens",
    "OnlineRun",
    "Pool",
    "RewardDistribution",
    "RewardKind",
    "Seasons",
    "Sudden",
    "SupervisedWorld",
    "SwissRoll",
    "Turnover",
    "Value",
    "Wandering",
    "World",
    "datasets",
    "image_files",
    "interaction_files",
    "log_from",
    "read_interactions",
    "simulate",
    "simulate_drifting",
    "skewed_policy",
    "synthetic_chain",
]
