"""An agent that draws from its belief, as a policy: estimates without bias of its propensities of the logged actions.

Each row has random numbers of its own, so that the estimates of two rows are independent given the log: E[p_hat / pi0 r] is what
E[pi / pi0 r] is, and the spread over rows that standard errors are made of contains that of the estimates. What is linear in pi
(ips, es, cips, ix) stays without bias from it, snips consistent; min(w, M) and ls, which are concave in pi, lie lower by it.
"""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Array
from manyarms.agents.deciding import Decider
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.evaluation.given import Given
from manyarms.evaluation.translation import translation_for
from manyarms.logs.actions import Actions
from manyarms.logs.data import LoggedData, LogSource
from manyarms.policies.base import Policy
from manyarms.policies.row_policy import LoggedProbabilities

SEED = 401_713  # of the estimates, so that an evaluation says the same again
MOST_SECONDS = 3600.0  # that all rows may take, by the costs below
A_ROW, AN_ACTION = 2.5e-3, 2e-6  # seconds for six draws: of a row, and of a played action in it
USUAL_DRAWS = 6


class EstimatedAgent(Given):
    """An agent as it is now, by estimates of its propensities."""

    estimated, logged_only = True, True

    def __init__(self, agent: Decider, log: LogSource, argument: str) -> None:
        super().__init__(argument, repr(agent), log.action_count)
        self._agent = agent.snapshot()
        belief = self._agent.belief
        self._words = translation_for(agent, log, argument)
        if belief.catalogue.size != self.action_count:
            came = f"an agent over {belief.catalogue.size} actions"
            raise InvalidInput(argument, came, f"one over the log's {self.action_count}")
        self.columns_for = "" if self._words.encoder is None else "the agent's own encoder"
        if self._words.encoder is None and belief.dim != log.dim:
            came = f"an agent over contexts of length {belief.dim}"
            raise InvalidInput(argument, came, f"one over contexts of length {log.dim}, as the log's are")
        names = getattr(getattr(agent, "schema", None), "catalogue", None)
        self._names = names if isinstance(names, Actions) else None
        self._draws = agent.decision.propensity_draws(belief)
        self._played = self._agent.played
        self.training_rows = getattr(belief, "training_rows", None)
        self.notes = (
            f"the agent draws its decisions: its probabilities are estimates without bias, of {self._draws} draws a row, whose "
            "errors are part of the standard errors",
        )
        if isinstance(log, LoggedData):
            self.require_rows(len(log))

    def require_rows(self, rows: int) -> None:
        """Refuse what would take hours."""
        seconds = rows * self._draws / USUAL_DRAWS * (A_ROW + AN_ACTION * self._played)
        if seconds > MOST_SECONDS:
            raise InvalidInput(
                self.argument, f"an agent that draws, on {rows:,} rows: about {seconds / 3600:.1f} hours for its propensities",
                "fewer rows (log.rows(slice(0, 10_000))), or Agent(agent.belief, Greedy()), whose probabilities are known",
            )  # fmt: skip

    def on(self, part: LoggedData, start: int) -> Policy:
        contexts = self._words.contexts(part)
        rows = part.actions if self._words.places is None else self._words.places[part.actions]
        asked = (rows if self._names is None else self._names.named(rows)).tolist()
        p: Array = np.empty(len(part))
        for i, (x, action) in enumerate(zip(contexts, asked, strict=True)):
            rng = np.random.default_rng([SEED, start + i])
            try:
                p[i] = self._agent.propensity(x, action, rng=rng).value
            except UnknownAction:  # retired: the agent does not play it any more
                p[i] = 0.0
        return LoggedProbabilities(p, part.actions, self.action_count)


__all__ = ["EstimatedAgent"]
