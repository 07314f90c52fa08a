"""All experiments of the thesis's chapter on learning policies from logs over large action spaces.

The first four look at the objectives alone (how hard they are to climb), the others learn policies from data.
"""

from __future__ import annotations

from manyarms_thesis.harness.spec import Experiment
from manyarms_thesis.pwll.convergence import CONVERGENCE
from manyarms_thesis.pwll.landscape import LANDSCAPE
from manyarms_thesis.pwll.log import LOG
from manyarms_thesis.pwll.maxima import MAXIMA
from manyarms_thesis.pwll.mse import MSE
from manyarms_thesis.pwll.noise import NOISE
from manyarms_thesis.pwll.optimisation import OPTIMISATION
from manyarms_thesis.pwll.pessimism import PESSIMISM
from manyarms_thesis.pwll.plateau import PLATEAU
from manyarms_thesis.pwll.potec import CLUSTERS, POTEC
from manyarms_thesis.pwll.seeds import SEEDS
from manyarms_thesis.pwll.sizes import LOGGING, SMALL
from manyarms_thesis.pwll.support import SUPPORTED

# what the proofs and the toy landscape say of the objectives themselves
THEORY: tuple[Experiment, ...] = (LANDSCAPE, PLATEAU, MAXIMA, CONVERGENCE)
# policies learned from logs
DATA: tuple[Experiment, ...] = (
    OPTIMISATION, SUPPORTED, POTEC, MSE, SEEDS, NOISE, LOG, SMALL, CLUSTERS, LOGGING, PESSIMISM,
)  # fmt: skip

EXPERIMENTS: tuple[Experiment, ...] = (*THEORY, *DATA)

__all__ = ["EXPERIMENTS"]
