"""Likelihoods: the law of a reward given x^T theta_a. One file each; a new one registers itself by name."""

from manyarms.beliefs.likelihoods.base import (
    LIKELIHOODS,
    Expansion,
    Gaussian,
    GeneralisedLinear,
    Likelihood,
    restore_likelihood,
)
from manyarms.beliefs.likelihoods.linear import Linear
from manyarms.beliefs.likelihoods.logistic import Logistic
from manyarms.beliefs.likelihoods.poisson import Poisson

__all__ = [
    "LIKELIHOODS",
    "Expansion",
    "Gaussian",
    "GeneralisedLinear",
    "Likelihood",
    "Linear",
    "Logistic",
    "Poisson",
    "restore_likelihood",
]
