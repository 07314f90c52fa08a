"""Priors of the actions' parameters: Gaussian, structured, diffusion; learned from estimates, pre-trained, or given."""

from manyarms.priors.base import ParameterPrior
from manyarms.priors.diffusion import DiffusionPrior, TwoLevelPrior
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms.priors.latent import LatentPrior
from manyarms.priors.links import FunctionLink, LinearLink, Link, NetworkLink
from manyarms.priors.pretraining import Pretrained, pretrain
from manyarms.priors.structure import Factors, factorise, mixture

__all__ = [
    "ActionPrior",
    "DiffusionPrior",
    "Factors",
    "FunctionLink",
    "HierarchicalPrior",
    "LatentPrior",
    "LinearLink",
    "Link",
    "MixedEffectPrior",
    "NetworkLink",
    "ParameterPrior",
    "Pretrained",
    "TwoLevelPrior",
    "factorise",
    "mixture",
    "pretrain",
]
