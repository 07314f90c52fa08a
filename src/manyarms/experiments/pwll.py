"""All experiments of the thesis's chapter on learning policies from logs over large action spaces.

The first four look at the objectives alone (how hard they are to climb), the others learn policies from data.
"""

from __future__ import annotations

from manyarms.experiments.spec import Experiment

# what the proofs and the toy landscape say of the objectives themselves
THEORY: tuple[Experiment, ...] = ()
# policies learned from logs
DATA: tuple[Experiment, ...] = ()

EXPERIMENTS: tuple[Experiment, ...] = (*THEORY, *DATA)

__all__ = ["EXPERIMENTS"]
