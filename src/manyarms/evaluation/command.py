"""`manyarms evaluate POLICY LOG`: a saved policy, a file of rounds, a table, and a page.

POLICY is a folder: a policy that was saved, or an agent whose decision does not draw. A folder may hold, beside the policy,
`encoder/` (how contexts are made from columns) and `actions/` (the ids of the actions); `save_policy` writes them. The word
`uniform` in place of a folder is the policy that plays every action of the log alike.
LOG is a file that `manyarms.logs.open_log` reads: Parquet, CSV or TSV (plain or gzipped), or Vowpal Wabbit's dsjson.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyarms import policies, storage
from manyarms.agent import Agent
from manyarms.agent import load as load_agent
from manyarms.errors import InvalidInput, StorageError
from manyarms.evaluation.estimate import evaluate
from manyarms.evaluation.results import Evaluation
from manyarms.evaluation.tables import as_data
from manyarms.logs import Actions, Columns, Encoder, LogSource, open_log
from manyarms.policies import DeterministicPolicy, EpsilonMixture, Policy, StreamedPolicy, UniformPolicy
from manyarms.reward_models import BeliefModel

ENCODER, ACTIONS = "encoder", "actions"
UNIFORM = "uniform"


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
    if kind in ("greedy", "ucb", "pessimistic"):
        return DeterministicPolicy(lambda X: agent.decide(X), catalogue.size)
    if kind == "uniform" and whole:
        return UniformPolicy(catalogue.size)
    if kind == "epsilon-greedy" and whole:
        from manyarms.decisions import Greedy

        greedy = Agent(agent.belief, Greedy(), 0, agent.name)
        chosen = DeterministicPolicy(lambda X: greedy.decide(X), catalogue.size)
        return EpsilonMixture(chosen, float(str(options["epsilon"])))
    came = f"an agent that decides by {kind}" + ("" if whole else " and has retired actions")
    raise InvalidInput(
        "POLICY", came, "a policy, or an agent that decides greedily, pessimistically, by an index or epsilon-greedily: only "
        "then are its probabilities known",
    )  # fmt: skip


def open_for(
    path: Path | str, saved: Saved | None = None, columns: Columns | None = None, *, drop_missing: bool = False
) -> LogSource:
    """The rounds in a file, with the encoder and the ids that were saved beside a policy."""
    if saved is None:
        return open_log(path, columns, drop_missing=drop_missing)
    count = saved.policy.action_count if saved.catalogue is None else None
    return open_log(
        path, columns, action_count=count, catalogue=saved.catalogue, encoder=saved.encoder, drop_missing=drop_missing
    )


def run(
    policy: Path | str,
    log: Path | str,
    *,
    out: Path | str | None = None,
    columns: Columns | None = None,
    drop_missing: bool = False,
    model: Path | str | None = None,
    estimators: Sequence[str] | None = None,
    level: float = 0.95,
    interval: str = "normal",
    reward_range: tuple[float, float] | None = None,
    propensity_floor: float | None = None,
    seed: int = 0,
) -> tuple[Evaluation, Path | None]:
    """Evaluate the policy in a folder on the rounds in a file.

    model: a folder with a saved agent, whose belief serves dm, dr and switch-dr as their reward model. With `out`, a folder,
    report.html and evaluation.json are written there. Gives the evaluation (its `str` is the table) and the page's path.
    """
    if str(policy) == UNIFORM and not Path(policy).exists():
        source = open_for(log, None, columns, drop_missing=drop_missing)
        judged: Policy = UniformPolicy(source.action_count)
    else:
        saved = open_policy(policy)
        judged = saved.policy
        source = open_for(log, saved, columns, drop_missing=drop_missing)
    evaluation = evaluate(
        judged, source, estimators, model=None if model is None else BeliefModel(load_agent(model).belief), level=level,
        interval=interval, reward_range=reward_range, propensity_floor=propensity_floor, seed=seed,
        name=Path(policy).name or str(policy),
    )  # fmt: skip
    if out is None:
        return evaluation, None
    storage.write_text_atomically(Path(out) / "evaluation.json", json.dumps(as_data(evaluation), indent=1) + "\n")
    return evaluation, evaluation.report(Path(out) / "report.html")


__all__ = ["Saved", "open_for", "open_policy", "policy_of", "run", "save_policy"]
