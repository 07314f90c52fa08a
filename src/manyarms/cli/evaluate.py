"""`manyarms evaluate POLICY LOG`: what a policy would have earned on a log.

POLICY is a folder: a policy that was saved, or an agent whose decision does not draw, with the schema of its log beside it (see
`manyarms.logs.Schema`). The word `uniform` in place of a folder is the policy that plays every action of the log alike.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from manyarms import evaluation
from manyarms._base.files import require_apart, require_folder
from manyarms._base.storage import load
from manyarms.agents.agent import Agent
from manyarms.cli import options
from manyarms.cli.commands import COMMANDS
from manyarms.errors import InvalidInput
from manyarms.evaluation.intervals import KINDS
from manyarms.evaluation.tables import as_data
from manyarms.evaluation.time_blocks import Block
from manyarms.logs import open_log
from manyarms.policies import Policy, UniformPolicy
from manyarms.rewards.bayesian import BeliefModel

UNIFORM = "uniform"
FILES = ("report.html", "evaluation.json")
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}  # seconds


@COMMANDS.register("evaluate")
def evaluate(
    policy: Annotated[
        Path,
        typer.Argument(
            metavar="POLICY",
            help="A folder with a saved policy or a saved deterministic agent; or the word uniform.",
        ),
    ],
    log: options.Log,
    action: options.Action = None,
    reward: options.Reward = None,
    propensity: options.Propensity = None,
    context: options.Context = None,
    group: options.Group = None,
    event_id: options.EventId = None,
    timestamp: Annotated[
        str | None,
        typer.Option(help="Column with the timestamp, for --interval block.", show_default="guessed by name"),
    ] = None,
    drop_missing: options.DropMissing = False,
    out: Annotated[Path, typer.Option(help="Folder for report.html and evaluation.json.")] = Path("out/evaluate"),
    estimators: Annotated[
        str | None,
        typer.Option(
            help=f"Comma-separated names, each with an optional parameter (cips:0.01): {', '.join(options.estimator_names())}; "
            f"with --model also {', '.join(options.model_estimator_names())}.",
            show_default="the IPS family; with --model also dm, dr, switch-dr",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A folder with a saved agent, whose belief is the reward model of dm, dr, sndr, switch and the like."
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help=f"Interval to report: {', '.join(KINDS)}.")] = "normal",
    block: Annotated[
        str | None,
        typer.Option(
            help="For --interval block: how long blocks of time are, as a number of rows or a time (90min, 6h, 1d).",
            show_default="as the autocorrelation asks",
        ),
    ] = None,
    low: Annotated[float | None, typer.Option(help="Smallest possible reward; with --high.", show_default="0")] = None,
    high: Annotated[float | None, typer.Option(help="Largest possible reward; with --low.", show_default="1")] = None,
    floor: Annotated[
        float | None,
        typer.Option(
            help="A lower bound on the logging policy's positive propensities; for bernstein.", show_default="unknown"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")] = 0,
) -> None:
    """Estimate the value of a policy from a log, with confidence intervals and diagnostics.

    Prints a table and writes OUT/report.html (the estimates, the tail of the importance weights, the overlap of the two
    policies) and OUT/evaluation.json. The log needs propensities, and must not be the one the policy was learned from.

    Examples

      manyarms evaluate uniform rounds.parquet

      manyarms evaluate policy/ clicks.csv.gz --action item --reward click --context user_

      manyarms evaluate policy/ rounds.parquet --estimators snips,cips:0.01,ls --interval ls

      manyarms evaluate policy/ rounds.parquet --interval block --block 1d    rows depend on rows near in time

      manyarms evaluate policy/ rounds.parquet --model agent/ --estimators snips,dm,dr

    How to save a policy in Python

      policy.save("policy")    includes the encoder and the action ids of the log that it was learned from

    How to read the table: an interval without * is for the policy's value. ips is unbiased; snips has a lower
    variance; the others trade bias for variance. Trust no estimate where eff. n is small or there are many warnings. See
    docs/evaluation.md.
    """
    if (low is None) != (high is None):
        raise InvalidInput("--low, --high", "one of them", "both, or neither")
    require_apart("--out", out, {"POLICY": policy, "LOG": log, "--model": model}, *FILES)
    require_folder("--out", out, *FILES)
    options.require_logs({"LOG": log})
    columns = options.columns_of(
        context,
        action=action,
        reward=reward,
        propensity=propensity,
        group=group,
        event_id=event_id,
        timestamp=timestamp,
    )
    judged: Policy
    if str(policy) == UNIFORM and not policy.exists():
        source = open_log(log, columns, drop_missing=drop_missing, spool=True)
        judged = UniformPolicy(source.action_count)
    else:
        saved = options.SavedPolicy.load(policy)
        source, judged = saved.open_log(log, columns, drop_missing=drop_missing), saved.policy
    found = evaluation.evaluate(
        judged, source, options.listed(estimators), level=level, interval=interval, propensity_floor=floor, seed=seed,
        block=None if block is None else _block(block),
        model=None if model is None else BeliefModel(load(model, Agent).belief),
        reward_range=None if low is None or high is None else (low, high), name=policy.name or str(policy),
    )  # fmt: skip
    options.write_json(out / "evaluation.json", as_data(found))
    options.say(str(found.verdict()), "", str(found), f"report: {found.report(out / 'report.html')}")


def _block(text: str) -> Block:
    """A number of rows, or a time."""
    if text.strip().isdigit():
        return int(text)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|min|h|d|w)\s*", text)
    if found is None:
        raise InvalidInput("--block", repr(text), "a number of rows, or a time such as 90min, 6h or 1d")
    return timedelta(seconds=float(found[1]) * UNITS[found[2]])


__all__ = ["evaluate"]
