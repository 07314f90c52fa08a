"""`manyarms evaluate POLICY LOG`: a saved policy, a file of rounds, a table, and a page.

POLICY is a folder: a policy that was saved, or an agent whose decision does not draw. A folder may hold, beside the policy,
`encoder/` (how contexts are made from columns) and `actions/` (the ids of the actions); `save_policy` writes them. The word
`uniform` in place of a folder is the policy that plays every action of the log alike.
LOG is a file that `manyarms.logs.open_log` reads: Parquet, CSV or TSV (plain or gzipped), or Vowpal Wabbit's dsjson.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from manyarms._base import storage
from manyarms.agents.agent import load as load_agent
from manyarms.evaluation.estimate import evaluate
from manyarms.evaluation.results import Evaluation
from manyarms.evaluation.saved import Saved, open_policy
from manyarms.evaluation.tables import as_data
from manyarms.logs import Columns, LogSource, open_log
from manyarms.policies import Policy, UniformPolicy
from manyarms.rewards.bayesian import BeliefModel

UNIFORM = "uniform"


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


__all__ = ["open_for", "run"]
