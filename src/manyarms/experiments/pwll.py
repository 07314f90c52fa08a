"""All experiments of the thesis's chapter on learning policies from logs over large action spaces.

The first four look at the objectives alone (how hard they are to climb), the others learn policies from data.
"""

from __future__ import annotations

from manyarms.experiments.pwll_convergence import CONVERGENCE
from manyarms.experiments.pwll_landscape import LANDSCAPE
from manyarms.experiments.pwll_log import LOG
from manyarms.experiments.pwll_maxima import MAXIMA
from manyarms.experiments.pwll_mse import MSE
from manyarms.experiments.pwll_noise import NOISE
from manyarms.experiments.pwll_optimisation import OPTIMISATION
from manyarms.experiments.pwll_pessimism import PESSIMISM
from manyarms.experiments.pwll_plateau import PLATEAU
from manyarms.experiments.pwll_potec import CLUSTERS, POTEC
from manyarms.experiments.pwll_seeds import SEEDS
from manyarms.experiments.pwll_sizes import LOGGING, SMALL
from manyarms.experiments.pwll_support import SUPPORTED
from manyarms.experiments.spec import Experiment

# what the proofs and the toy landscape say of the objectives themselves
THEORY: tuple[Experiment, ...] = (LANDSCAPE, PLATEAU, MAXIMA, CONVERGENCE)
# policies learned from logs
DATA: tuple[Experiment, ...] = (
    OPTIMISATION, SUPPORTED, POTEC, MSE, SEEDS, NOISE, LOG, SMALL, CLUSTERS, LOGGING, PESSIMISM,
)  # fmt: skip

EXPERIMENTS: tuple[Experiment, ...] = (*THEORY, *DATA)

__all__ = ["EXPERIMENTS"]
