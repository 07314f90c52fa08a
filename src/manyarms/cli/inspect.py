"""`manyarms inspect LOG`: what is in a log, and what is wrong with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from manyarms._base.files import require_apart
from manyarms._base.html import require_page
from manyarms._base.text import counted
from manyarms.cli import options
from manyarms.cli._flags import StandsFor
from manyarms.cli.commands import COMMANDS
from manyarms.logs import inspection
from manyarms.logs.inspection import Inspection
from manyarms.logs.inspection.page import numbers, overlap, overview

FOUND_PROBLEMS = 1


@COMMANDS.register("inspect")
def inspect(
    log: options.Log,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The HTML report.", show_default="out/inspect-LOG.html")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if problems are found.")] = False,
    actions: Annotated[
        int | None,
        typer.Option(min=1, help="Number of actions.", show_default="what the log shows"),
        StandsFor("action_count"),
    ] = None,
    action: options.Action = None,
    reward: options.Reward = None,
    propensity: options.Propensity = None,
    context: options.Context = None,
    event_id: options.EventId = None,
    timestamp: options.Timestamp = None,
    group: options.Group = None,
) -> None:
    """Summarise a log and report problems, with advice, before anything is learned from it.

    A log has one row per decision: the context (numeric or text columns), the action that was played, its reward, and the
    propensity, the probability with which the action was played.

    The summary covers rows, actions played and never played, rewards, propensities, overlap, effective sample sizes,
    duplicates, missing entries and the order of timestamps. It takes one pass in bounded memory. A file that other commands
    would refuse is summarised as well.

    Examples:

      manyarms inspect rounds.parquet
      manyarms inspect clicks.csv.gz --action item --reward click --context user_ --actions 5000
      manyarms inspect events.dsjson --strict --out inspection.html

    Next: manyarms evaluate uniform LOG
    """
    how = options.reading(
        context,
        action=action,
        reward=reward,
        propensity=propensity,
        event_id=event_id,
        timestamp=timestamp,
        group=group,
    )
    target = out if out is not None else Path("out") / f"inspect-{log.name.split('.')[0]}.html"
    require_apart("--out", target, {"LOG": log})
    require_page("--out", target)
    options.require_logs({"LOG": log})
    found = inspection.inspect(log, how.columns, action_count=actions)
    inspection.write_page(found, target)
    options.say(*_shown(found), f"report: {target}")
    options.say_next(_next(found, log, how.words))
    if strict and found.problems:
        raise typer.Exit(FOUND_PROBLEMS)


def _shown(found: Inspection) -> Iterator[str]:
    """The inspection as tables in the terminal."""
    sections = {found.source: overview(found), "rewards": numbers(found.rewards)}
    if found.propensities is not None:
        sections["propensities"] = numbers(found.propensities)
    if found.overlap is not None:
        sections["overlap"] = overlap(found)
    if found.missing:
        sections["missing entries"] = {m.column: f"{m.count:,} ({m.share:.2%})" for m in found.missing}
    for title, facts in sections.items():
        yield options.facts(title, facts)
        yield ""
    if not found.findings:
        yield "no findings"
        return
    problems = f"problems among them: {len(found.problems)}" if found.problems else "none a problem"
    yield f"{counted(len(found.findings), 'finding')}, {problems}"
    for finding in found.findings:
        yield f"  {finding.level}: {finding.what}"
        yield f"    -> {finding.advice}"


def _next(found: Inspection, log: Path, given: str) -> str:
    """What usually follows, with the columns as they were named here, and what this log needs to be read."""
    if found.propensities is None:
        return f"manyarms learn {shlex.quote(str(log))}{given}"
    missing = found.parts.get("propensity") in {one.column for one in found.missing}
    return f"manyarms evaluate uniform {shlex.quote(str(log))}{given}{' --estimate-missing' * missing}"


__all__ = ["inspect"]
