"""All experiments of the thesis's chapter on diffusion Thompson sampling."""

from __future__ import annotations

from manyarms_thesis.dts.actions import ACTIONS
from manyarms_thesis.dts.bound import BOUND
from manyarms_thesis.dts.chains import CHAINS
from manyarms_thesis.dts.images import IMAGES
from manyarms_thesis.dts.misspecified import MISSPECIFIED
from manyarms_thesis.dts.movielens import MOVIELENS
from manyarms_thesis.dts.posterior import POSTERIOR
from manyarms_thesis.dts.scaling import SCALING
from manyarms_thesis.dts.swissroll import SWISSROLL
from manyarms_thesis.dts.synthetic import SYNTHETIC

EXPERIMENTS = (
    SYNTHETIC, ACTIONS, SCALING, MISSPECIFIED, SWISSROLL, MOVIELENS, POSTERIOR, IMAGES, BOUND, CHAINS,
)  # fmt: skip

__all__ = ["EXPERIMENTS"]
