"""Saved policies and agents, with the encoder and the ids that turn a table into their contexts and actions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from manyarms import policies
from manyarms._base import storage
from manyarms.agents.agent import Agent
from manyarms.agents.agent import load as load_agent
from manyarms.errors import InvalidInput, StorageError
from manyarms.logs import Actions, Encoder, LogSource
from manyarms.policies import DeterministicPolicy, EpsilonMixture, Policy, StreamedPolicy, UniformPolicy

ENCODER, ACTIONS = "encoder", "actions"


@dataclass(frozen=True)
class Saved:
    """A policy as it was saved, with what turns a table into its contexts and actions."""

    policy: Policy
    encoder: Encoder | None
    catalogue: Actions | None


def save_policy(policy: StreamedPolicy | Agent, folder: Path | str, log: LogSource | None = None) -> None:
    """Save a policy or an agent, and beside it the encoder and the catalogue of the log it was learned from.

    With them, new rows become the contexts that it knows and ids the actions, whatever their order: see `open_policy`.
    """
    folder = Path(folder)
    policy.save(folder)
    for name, kind in ((ENCODER, Encoder), (ACTIONS, Actions)):
        found = getattr(log, "encoder" if name == ENCODER else "catalogue", None)
        if isinstance(found, kind):
            found.save(folder / name)


def open_policy(folder: Path | str) -> Saved:
    """The policy in a folder: a saved policy, or an agent that decides without drawing."""
    folder = Path(folder)
    encoder = Encoder.load(folder / ENCODER) if (folder / ENCODER).is_dir() else None
    catalogue = Actions.load(folder / ACTIONS) if (folder / ACTIONS).is_dir() else None
    if not (folder / storage.MANIFEST).is_file():
        raise StorageError(
            f"{folder}: no saved policy or agent in this folder (save_policy(policy, folder, log) writes one)"
        )
    try:
        kind = json.loads((folder / storage.MANIFEST).read_bytes()).get("kind")
    except (OSError, ValueError, AttributeError):
        kind = None  # the loader says what is wrong
    policy: Policy = policy_of(load_agent(folder)) if kind == "agent" else policies.load(folder)
    return Saved(policy, encoder, catalogue)


def policy_of(agent: Agent) -> Policy:
    """An agent as a policy with known probabilities, its belief held fixed; refused where its decision draws from it."""
    catalogue = agent.belief.catalogue
    whole = catalogue.alive == catalogue.size
    kind, options = agent.decision.kind, agent.decision.options()
    if not agent.decision.draws:
        return DeterministicPolicy(lambda X: agent.decide(X), catalogue.size)
    if kind == "uniform" and whole:
        return UniformPolicy(catalogue.size)
    if kind == "epsilon-greedy" and whole:
        from manyarms.agents.decisions import Greedy

        greedy = Agent(agent.belief, Greedy(), 0, agent.name)
        chosen = DeterministicPolicy(lambda X: greedy.decide(X), catalogue.size)
        return EpsilonMixture(chosen, float(str(options["epsilon"])))
    came = f"an agent that decides by {kind}" + ("" if whole else " and has retired actions")
    raise InvalidInput(
        "POLICY", came, "a policy, or an agent that decides greedily, pessimistically, by an index or epsilon-greedily: only "
        "then are its probabilities known",
    )  # fmt: skip


__all__ = ["Saved", "open_policy", "policy_of", "save_policy"]
