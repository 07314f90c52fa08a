"""The thesis's experiments, run and checked against what it states.

spec        an experiment as data: cells of worlds and agents, in plain parameters
simulate    an agent in a world, with exact regret
runner      all work of an experiment on all cores; resumable; results, figures, claims and a page
claims      when a statement of the thesis holds
mets        the experiments of the chapter on mixed-effect Thompson sampling
dts         the experiments of the chapter on diffusion Thompson sampling
sdm         those of the chapter on the structured direct method, and of off-policy estimates
pwll        those of the chapter on learning policies over large action spaces
es          those of the chapter on exponential smoothing and pessimism

    from manyarms_thesis import catalogue as experiments
    experiments.run(experiments.find("mets-synthetic"), "quick", "out/mets-synthetic")

Worker processes import the module that starts them: in a script, call `run` under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import difflib

from manyarms.errors import InvalidInput
from manyarms_thesis.dts import experiments as dts
from manyarms_thesis.es import experiments as es
from manyarms_thesis.harness.claims import Claim
from manyarms_thesis.harness.results import Results
from manyarms_thesis.harness.runner import Interrupted, Outcome, run
from manyarms_thesis.harness.simulate import OnlineRun, online_regret
from manyarms_thesis.harness.spec import SCALES, Call, Cell, Experiment
from manyarms_thesis.mets import experiments as mets
from manyarms_thesis.pwll import experiments as pwll
from manyarms_thesis.sdm import experiments as sdm

# one tuple a chapter; `manyarms reproduce --list` shows them in this order
CHAPTERS: tuple[tuple[Experiment, ...], ...] = (
    mets.EXPERIMENTS,
    dts.EXPERIMENTS,
    sdm.EXPERIMENTS,
    pwll.EXPERIMENTS,
    es.EXPERIMENTS,
)


def catalogue() -> dict[str, Experiment]:
    """All experiments by name."""
    return {experiment.name: experiment for chapter in CHAPTERS for experiment in chapter}


def find(name: str) -> Experiment:
    """An experiment by name; an unknown name is refused with the nearest known ones."""
    known = catalogue()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "see manyarms reproduce --list"
        raise InvalidInput("experiment", repr(name), f"the name of an experiment ({hint})")
    return known[name]


__all__ = [
    "CHAPTERS", "SCALES", "Call", "Cell", "Claim", "Experiment", "Interrupted", "OnlineRun", "Outcome", "Results",
    "catalogue", "find", "online_regret", "run",
]  # fmt: skip
