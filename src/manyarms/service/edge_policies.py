"""From an arm of a live store to a policy for the edge: which rule it becomes, and its tables.

    Greedy, EpsilonGreedy, EpsilonMixed(Greedy)   epsilon-greedy, of posterior means
    Thompson, Ensemble                            an ensemble of joint draws of the posterior
    a SoftmaxPolicy                               a softmax

Parameters are rounded to float32. What a bundle decides by is what it holds, and its propensities are exact for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import JSON, AnyArray, Ints
from manyarms.agents.decisions import Decision, Ensemble, EpsilonGreedy, EpsilonMixed, Greedy, Thompson
from manyarms.beliefs import Belief
from manyarms.beliefs.parameters import draw_parameters, posterior_means
from manyarms.edge import EdgePolicy, Header
from manyarms.edge.header import SALT, size_of
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms.live import naming
from manyarms.live.agent_arm import AgentView
from manyarms.live.policy_arm import PolicyView
from manyarms.live.state import View
from manyarms.logs.actions import ActionId
from manyarms.policies import Policy, SoftmaxPolicy
from manyarms.policies.encoders import Projection

NO_ENCODER = "no encoder inside the policy but a Projection, which is multiplied out"


@dataclass(frozen=True)
class EdgeForm:
    """How bundles are made. draws: of a Thompson agent's posterior; epsilon: the part of uniform play that it gets.

    most_bytes: of the tables. lifetime: seconds until a bundle expires.
    """

    draws: int = 16
    epsilon: float = 0.05
    most_bytes: int = 1 << 26
    lifetime: float = 86_400.0


def edge_policy(
    view: View, arm: str, form: EdgeForm, now: float, actions: Iterable[ActionId] | None = None
) -> EdgePolicy:
    """The policy of an arm as it is in this view, without retired actions. actions: these alone."""
    found = view.arms.get(arm)
    if found is None:
        raise InvalidInput("arm", arm, f"an arm of this store: {', '.join(sorted(view.arms))}")
    wanted = None if actions is None else np.unique(naming.rows_of(view, "actions", list(actions)))
    if isinstance(found, AgentView):
        rule, epsilon, draws = _rule(found.snapshot.decision, form)
        belief = found.snapshot.belief
        rows, dim, temperature = _rows(belief.catalogue.size, belief.catalogue.retired, wanted), belief.dim, 1.0
        _check_size(draws, len(rows), dim, form)
        tables = _of_belief(belief, rows, rule, draws)
    elif isinstance(found, PolicyView):
        rule, epsilon = "softmax", 0.0
        policy = _softmax(found.policy)
        rows = _rows(policy.action_count, found.retired, wanted)
        dim, temperature = int(policy.dim or 0), policy.temperature
        _check_size(1, len(rows), dim, form)
        weights = policy.actions[rows]
        tables = (weights if policy.encoder is None else weights @ policy.encoder.W.T)[None]  # type: ignore[attr-defined]
    else:
        raise InvalidInput("arm", arm, "an agent or a policy")
    features, encoder = _encoder(view, dim)
    header = Header(
        arm,
        view.version,
        rule,
        dim,
        now,
        now + form.lifetime,
        os.urandom(SALT),
        epsilon,
        temperature,
        features,
        encoder,
    )
    return EdgePolicy(header, tables, naming.named(view, rows.tolist()))


def _rule(decision: Decision, form: EdgeForm) -> tuple[str, float, int]:
    """Rule, epsilon and draws of a bundle."""
    if isinstance(decision, Greedy):
        return "epsilon-greedy", 0.0, 1
    if isinstance(decision, EpsilonGreedy) or (
        isinstance(decision, EpsilonMixed) and isinstance(decision.rule, Greedy)
    ):
        return "epsilon-greedy", decision.epsilon, 1
    if isinstance(decision, Thompson):
        return "ensemble", form.epsilon, form.draws
    if isinstance(decision, Ensemble):
        return "ensemble", decision.epsilon, decision.draws
    raise InvalidInput(
        "arm", f"an agent that decides by {decision.kind}", "one that decides greedily, epsilon-greedily, by Thompson "
        "sampling or by an ensemble: other rules cannot be sent to the edge",
    )  # fmt: skip


def _softmax(policy: Policy) -> SoftmaxPolicy:
    if not isinstance(policy, SoftmaxPolicy):
        raise InvalidInput("arm", repr(policy), "a SoftmaxPolicy: other policies cannot be sent to the edge")
    if policy.encoder is not None and not isinstance(policy.encoder, Projection):
        raise InvalidInput("arm", f"a policy with {policy.encoder!r}", NO_ENCODER)
    return policy


def _rows(number: int, retired: Iterable[int], wanted: Ints | None) -> Ints:
    """The rows of the actions that go into the bundle."""
    there = np.setdiff1d(np.arange(number), np.fromiter(retired, np.int64))
    rows: Ints = there if wanted is None else np.intersect1d(there, wanted)
    if not len(rows):
        raise InvalidInput("actions", "none that this arm may choose", "at least one action that is not retired")
    return rows


def _check_size(draws: int, actions: int, dim: int, form: EdgeForm) -> None:
    size = size_of(draws, actions, dim)
    if size > form.most_bytes:
        fewer = "fewer draws, " if draws > 1 else ""
        raise InvalidInput(
            "bundle",
            f"{size:,} bytes: {draws} x {actions:,} actions x {dim} numbers of 4 bytes",
            f"at most {form.most_bytes:,}: {fewer}fewer actions (actions=), or a larger limit",
        )


def _of_belief(belief: Belief, rows: Ints, rule: str, draws: int) -> AnyArray:
    """(draws, n, d), float32."""
    if not belief.per_action:
        raise InvalidInput("arm", "an agent with one parameter for all actions", "one with a parameter for each action")
    tables: AnyArray = np.empty((draws, len(rows), belief.dim), dtype="<f4")
    if rule == "ensemble":
        rng = np.random.default_rng()
        for part, drawn in draw_parameters(belief, rows, draws, rng):
            tables[:, part] = drawn
    else:
        tables[0] = posterior_means(belief, rows)
    return tables


def _encoder(view: View, dim: int) -> tuple[tuple[str, ...] | None, dict[str, JSON] | None]:
    """The names of features, and the encoder in JSON, where there is one that can say so."""
    encoder = view.schema.encoder
    if encoder is None or encoder.dim != dim:
        return None, None
    try:
        told: dict[str, JSON] | None = encoder.as_json()
    except (AttributeError, ManyArmsError):
        told = None
    return tuple(encoder.names), told


def checked_form(form: EdgeForm) -> EdgeForm:
    """The same, or an error that names what is wrong."""
    validate.count("draws", form.draws, most=1000)
    validate.probability("epsilon", form.epsilon)
    validate.count("most_bytes", form.most_bytes)
    validate.positive("lifetime", form.lifetime)
    return form


__all__ = ["EdgeForm", "checked_form", "edge_policy"]
