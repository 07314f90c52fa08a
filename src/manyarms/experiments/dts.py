"""All experiments of the thesis's chapter on diffusion Thompson sampling."""

from __future__ import annotations

from manyarms.experiments.dts_actions import ACTIONS
from manyarms.experiments.dts_bound import BOUND
from manyarms.experiments.dts_chains import CHAINS
from manyarms.experiments.dts_images import IMAGES
from manyarms.experiments.dts_misspecified import MISSPECIFIED
from manyarms.experiments.dts_movielens import MOVIELENS
from manyarms.experiments.dts_posterior import POSTERIOR
from manyarms.experiments.dts_scaling import SCALING
from manyarms.experiments.dts_swissroll import SWISSROLL
from manyarms.experiments.dts_synthetic import SYNTHETIC

EXPERIMENTS = (
    SYNTHETIC, ACTIONS, SCALING, MISSPECIFIED, SWISSROLL, MOVIELENS, POSTERIOR, IMAGES, BOUND, CHAINS,
)  # fmt: skip

__all__ = ["EXPERIMENTS"]
