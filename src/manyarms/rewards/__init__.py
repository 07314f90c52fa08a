"""Reward models learned from logs: linear, Bayesian (DM, sDM), and the priors and the drift that fit a log."""

from manyarms.rewards.base import CatalogueModel, RewardModel
from manyarms.rewards.bayesian import (
    BeliefModel,
    dm_bayes,
    dm_frequentist,
    learned_structure,
    pessimism_width,
    sdm,
    warm_start,
)
from manyarms.rewards.choosing_drift import choose_drift
from manyarms.rewards.drift_choice import DriftChoice
from manyarms.rewards.fit_prior import FittedPrior, PredictiveCalibration, calibration, fit_prior
from manyarms.rewards.linear import Clipped, DirectFrequentist, LinearModel, offline_estimates

__all__ = [
    "BeliefModel",
    "CatalogueModel",
    "Clipped",
    "DirectFrequentist",
    "DriftChoice",
    "FittedPrior",
    "LinearModel",
    "PredictiveCalibration",
    "RewardModel",
    "calibration",
    "choose_drift",
    "dm_bayes",
    "dm_frequentist",
    "fit_prior",
    "learned_structure",
    "offline_estimates",
    "pessimism_width",
    "sdm",
    "warm_start",
]
