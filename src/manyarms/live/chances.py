"""How likely each of the candidates was, not only the one that was taken."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array
from manyarms.agents.deciding import Snapshot
from manyarms.agents.decisions.mixtures import WithUniform
from manyarms.errors import InvalidInput
from manyarms.live.agent_arm import AgentView
from manyarms.live.arms import ArmView, without
from manyarms.live.deployment import BASELINE
from manyarms.live.policy_arm import PolicyView
from manyarms.live.records import DecisionRecord, Question, draw_number
from manyarms.live.state import View

MOST = 1000  # candidates of a question whose chances are all kept


def chances_of(view: View, record: DecisionRecord) -> list[float]:
    """The chance of every candidate to be taken first, in the order of the candidates, over all arms with their shares.

    Exact where the arms know their propensities; otherwise each is an estimate, and together they are made to sum to 1.
    """
    asked = record.question
    if asked is None or asked.candidates is None or len(asked.candidates) > MOST:
        raise InvalidInput("chances", "a question without candidates", f"a list of at most {MOST} candidates")
    total = np.zeros(len(asked.candidates))
    baseline = record.details.get("baseline")
    for share, name in view.deployment.laws:
        if name == BASELINE:
            total += share * np.array([float(row == baseline) for row in asked.candidates])
        else:
            arm = view.arms[name]
            draw = draw_number(record.id, record.unit, record.version, name)
            total += share * _law(arm, without(asked, view.capped, arm), draw)
    found: list[float] = (total / total.sum()).tolist()
    return found


def _law(arm: ArmView, asked: Question, draw: int) -> Array:
    """The same for one arm."""
    assert asked.candidates is not None
    if isinstance(arm, PolicyView):
        return arm.chances(asked)
    if isinstance(arm, AgentView):
        rule = arm.snapshot.decision
        if isinstance(rule, WithUniform) and not asked.k:  # one look at what the rule would take says it of all
            certain = Snapshot(arm.snapshot._belief, rule.certain, arm.snapshot._draws, "certain")
            barred = {*(asked.exclude or ()), *arm.snapshot.belief.catalogue.retired}
            offered = np.array([row not in barred for row in asked.candidates], dtype=float)
            law: Array = rule.epsilon * offered / offered.sum()
            law[asked.candidates.index(int(certain.decide(**arm.options(asked), draw=0)))] += 1.0 - rule.epsilon
            return law
    return np.array([arm.propensity(asked, row, draw).value for row in asked.candidates])


def kept_chances(record: DecisionRecord) -> tuple[float, ...] | None:
    """What the record has of them."""
    kept = record.details.get("chances")
    return None if kept is None else tuple(kept)


__all__ = ["chances_of", "kept_chances"]
