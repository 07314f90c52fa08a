"""How many times an agent's regret a baseline's is, with its standard error over paired runs."""

from __future__ import annotations

from manyarms_thesis.harness.claims import Measured, measured
from manyarms_thesis.harness.results import Results


def ratio(results: Results, panel: str, agent: str, baseline: str = "LinTS") -> Measured:
    """The baseline's mean final regret over the agent's (thesis, line 4009), its error by the delta method."""
    ours, theirs = results.final(panel, agent), results.final(panel, baseline)
    value = float(theirs.mean() / ours.mean())
    return Measured(value, value * measured(theirs / theirs.mean() - ours / ours.mean()).standard_error)


__all__ = ["ratio"]
