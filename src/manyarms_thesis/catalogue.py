"""The experiments by name, and how to run one.

    from manyarms_thesis import catalogue

    catalogue.run(catalogue.find("mets-synthetic"), "quick", "out/mets-synthetic")

Worker processes import the module that starts them: in a script, call `run` under `if __name__ == "__main__":`.
"""

from __future__ import annotations

from manyarms_thesis.harness.experiments import EXPERIMENTS, SCALES, Experiment
from manyarms_thesis.harness.part import part_of
from manyarms_thesis.harness.runner import Interrupted, Outcome, run


def catalogue() -> dict[str, Experiment]:
    """All experiments by name, chapter by chapter."""
    return dict(sorted(EXPERIMENTS.items(), key=lambda entry: (entry[1].place, entry[0])))


def find(name: str) -> Experiment:
    """An experiment by name; an unknown name is refused with the nearest known ones."""
    return EXPERIMENTS[name]


__all__ = ["SCALES", "Experiment", "Interrupted", "Outcome", "catalogue", "find", "part_of", "run"]
