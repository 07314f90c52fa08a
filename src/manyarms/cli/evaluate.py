"""`manyarms evaluate POLICY LOG`: what a policy would have earned on a log."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from manyarms import evaluation
from manyarms._base.files import require_apart, require_folder
from manyarms._base.storage import load
from manyarms.agents.agent import Agent
from manyarms.cli import _blocks, options
from manyarms.cli._policies import POLICY, Decisions, Judged, Probabilities, divided
from manyarms.cli._working import working_on
from manyarms.cli.commands import COMMANDS
from manyarms.evaluation.tables import as_data
from manyarms.rewards.bayesian import BeliefModel

FILES = ("report.html", "evaluation.json")


@COMMANDS.register("evaluate")
def evaluate(
    words: Annotated[list[Path], typer.Argument(metavar="POLICY LOG", help=f"{POLICY} Then a log file.")],
    probabilities: Probabilities = None,
    decisions: Decisions = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for report.html and evaluation.json.")] = Path(
        "out/evaluate"
    ),
    estimators: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help=f"Names, each with an optional parameter (cips:0.01): {', '.join(options.estimator_names())}; "
            f"with --model also {', '.join(options.model_estimator_names())}.",
            show_default="the IPS family; with --model also dm, dr, switch-dr",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A saved agent, whose belief is the reward model of dm, dr, sndr, switch and the like.",
        ),
    ] = None,
    level: options.Level = 0.95,
    interval: options.Intervals = "normal",
    block: options.Block = None,
    low: options.Low = None,
    high: options.High = None,
    floor: options.Floor = None,
    seed: options.Seed = 0,
    on: options.On = "local",
    action: options.Action = None,
    reward: options.Reward = None,
    propensity: options.Propensity = None,
    context: options.Context = None,
    group: options.Group = None,
    event_id: options.EventId = None,
    timestamp: options.Timestamp = None,
    drop_missing: options.DropMissing = False,
    estimate_missing: options.EstimateMissing = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Estimate the value of a policy from a log, with confidence intervals and diagnostics.

    Prints a table and writes OUT/report.html (the estimates, the tail of the importance weights, the overlap of the two policies)
    and OUT/evaluation.json. The log needs propensities, and must not be the one the policy was learned from.

    Examples:

      manyarms evaluate uniform log.csv
      manyarms evaluate log.csv --probabilities p_new     my own policy: how likely it is to play what was logged
      manyarms evaluate log.csv --decisions chosen        my own policy: the id of what it takes
      manyarms evaluate policy/ clicks.csv.gz --action item --reward click --context user_
      manyarms evaluate policy/ log.parquet --estimators snips,cips:0.01,ls --interval ls
      manyarms evaluate policy/ log.parquet --interval block --block 1d
      manyarms evaluate policy/ log.parquet --model agent/ --estimators snips,dm,dr
      manyarms evaluate policy/ logs/ --on ray            a folder of Parquet files, on a cluster

    How to save a policy in Python: policy.save("policy"), with the encoding and the ids of what it was learned from.

    How to read the table: an interval without * is for the policy's value. ips is unbiased; snips has a lower variance; the
    others trade bias for variance. Trust no estimate where eff. n is small or there are many warnings. See docs/evaluation.md.
    """
    (named,), log = divided(words, 1, 1, probabilities, decisions)
    require_apart("--out", out, {"POLICY": named.folder, "LOG": log, "--model": model}, *FILES)
    require_folder("--out", out, *FILES)
    options.require_logs({"LOG": log})
    limits, length = options.reward_range(low, high), _blocks.read(block)
    how = options.reading(
        context, action=action, reward=reward, propensity=propensity, group=group, event_id=event_id, timestamp=timestamp,
        drop_missing=drop_missing, estimate_missing=estimate_missing, catalogue=catalogue,
    )  # fmt: skip
    read = Judged.read([named], log, how, on)
    name, policy = read.only()
    with working_on(on, read.log, "evaluate") as (source, engine):
        found = evaluation.evaluate(
            policy, source, options.listed(estimators), level=level, interval=interval, propensity_floor=floor, seed=seed,
            block=length, model=None if model is None else BeliefModel(load(model, Agent).belief), reward_range=limits, name=name,
            on=engine,
        )  # fmt: skip
    options.write_json(out / "evaluation.json", as_data(found))
    options.say(str(found.verdict()), "", str(found), f"report: {found.report(out / 'report.html')}")
    options.say_next(*_next(named.words, named.folder is not None, log, how.words))


def _next(policy: str, saved: bool, log: Path, given: str) -> list[str]:
    """What usually follows, with the log read as it was here."""
    read = shlex.quote(str(log)) + given
    if not saved:
        return [f"manyarms learn {read} --out policy"]
    return [f"manyarms compare {policy} OTHER-POLICY {read}", f"manyarms certify {policy} {read}"]


__all__ = ["evaluate"]
