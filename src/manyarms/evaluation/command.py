"""`manyarms evaluate POLICY LOG`: a saved policy, a file of rounds, a table, and a page.

POLICY is a folder: a policy that was saved, or an agent whose decision does not draw. A folder may hold, beside the policy,
`encoder/` (how contexts are made from columns) and `actions/` (the ids of the actions); `save_policy` writes them.
LOG is a file: Parquet, CSV or TSV (plain or gzipped), or Vowpal Wabbit's dsjson.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manyarms import policies, storage
from manyarms.agent import Agent
from manyarms.agent import load as load_agent
from manyarms.errors import DataError, InvalidInput, StorageError
from manyarms.evaluation.estimate import evaluate
from manyarms.evaluation.results import Evaluation
from manyarms.evaluation.tables import as_data
from manyarms.logs import Actions, Columns, CsvLog, Encoder, LoggedData, LogSource, ParquetLog, read_dsjson
from manyarms.policies import DeterministicPolicy, EpsilonMixture, Policy, StreamedPolicy, UniformPolicy

ENCODER, ACTIONS = "encoder", "actions"


@dataclass(frozen=True)
class Saved:
    """A policy as it was saved, with what turns a table into its contexts and actions."""

    policy: Policy
    encoder: Encoder | None
    catalogue: Actions | None


def save_policy(policy: StreamedPolicy, folder: Path | str, log: LoggedData | None = None) -> None:
    """Save a policy, and beside it the encoder and the catalogue of the log it was learned from."""
    folder = Path(folder)
    policy.save(folder)
    if log is not None and log.encoder is not None:
        log.encoder.save(folder / ENCODER)
    if log is not None and log.catalogue is not None:
        log.catalogue.save(folder / ACTIONS)


def open_policy(folder: Path | str) -> Saved:
    """The policy in a folder: a saved policy, or an agent that decides without drawing."""
    folder = Path(folder)
    encoder = Encoder.load(folder / ENCODER) if (folder / ENCODER).is_dir() else None
    catalogue = Actions.load(folder / ACTIONS) if (folder / ACTIONS).is_dir() else None
    if not (folder / storage.MANIFEST).is_file():
        raise StorageError(f"{folder}: no saved policy or agent in this folder")
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


def open_log(path: Path | str, saved: Saved | None = None, columns: Columns | None = None) -> LogSource:
    """The rounds in a file, with the encoder and the ids that were saved beside a policy."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    encoder = saved.encoder if saved is not None else None
    catalogue = saved.catalogue if saved is not None else None
    count = saved.policy.action_count if saved is not None and catalogue is None else None
    names = [suffix.lower() for suffix in path.suffixes]
    kind = names[-2] if names[-1:] == [".gz"] and len(names) > 1 else "".join(names[-1:])
    if kind in (".parquet", ".pq"):
        return ParquetLog(path, columns, action_count=count, catalogue=catalogue, encoder=encoder)
    if kind in (".csv", ".tsv"):
        return CsvLog(path, columns, action_count=count, catalogue=catalogue, encoder=encoder)
    if kind in (".dsjson", ".json", ".jsonl"):
        return read_dsjson(path, catalogue=catalogue, encoder=encoder)
    raise InvalidInput("LOG", str(path), "a file that ends in .parquet, .csv, .tsv or .dsjson")


def run(
    policy: Path | str,
    log: Path | str,
    *,
    out: Path | str | None = None,
    columns: Columns | None = None,
    estimators: Sequence[str] | None = None,
    level: float = 0.95,
    interval: str = "normal",
    reward_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> tuple[Evaluation, Path | None]:
    """Evaluate the policy in a folder on the rounds in a file.

    With `out`, a folder, report.html and evaluation.json are written there. Gives the evaluation (its `str` is the table)
    and the page's path.
    """
    saved = open_policy(policy)
    source = open_log(log, saved, columns)
    evaluation = evaluate(
        saved.policy, source, estimators, level=level, interval=interval, reward_range=reward_range, seed=seed,
        name=Path(policy).name or str(policy),
    )  # fmt: skip
    if out is None:
        return evaluation, None
    storage.write_text_atomically(Path(out) / "evaluation.json", json.dumps(as_data(evaluation), indent=1) + "\n")
    return evaluation, evaluation.report(Path(out) / "report.html")


__all__ = ["Saved", "open_log", "open_policy", "policy_of", "run", "save_policy"]
