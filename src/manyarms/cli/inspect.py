"""`manyarms inspect LOG`: what is in a log, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from manyarms._base.files import require_apart
from manyarms._base.html import require_page
from manyarms.cli import options
from manyarms.cli._text import plain
from manyarms.cli.commands import COMMANDS
from manyarms.logs import inspection
from manyarms.logs.inspection import Inspection
from manyarms.logs.inspection.page import numbers, overlap, overview

STYLES = {"problem": "bold red", "warning": "yellow", "note": "dim"}
FOUND_PROBLEMS = 1


@COMMANDS.register("inspect")
def inspect(
    log: options.Log,
    action: options.Action = None,
    reward: options.Reward = None,
    propensity: options.Propensity = None,
    context: options.Context = None,
    event_id: Annotated[
        str | None, typer.Option(help="Column with the event id.", show_default="guessed by name")
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option(help="Column with the timestamp.", show_default="guessed by name")
    ] = None,
    group: options.Group = None,
    actions: Annotated[
        int | None, typer.Option(min=1, help="Number of actions.", show_default="inferred from the log")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Path of the HTML report.", show_default="out/inspect-LOG.html")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if problems are found.")] = False,
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
    columns = options.columns_of(
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
    found = inspection.inspect(log, columns, action_count=actions)
    inspection.write_page(found, target)
    _show(found, Console())
    options.say(f"report: {target}")
    if strict and found.problems:
        raise typer.Exit(FOUND_PROBLEMS)


def _show(found: Inspection, console: Console) -> None:
    """The inspection as tables in the terminal."""
    sections = {found.source: overview(found), "rewards": numbers(found.rewards)}
    if found.propensities is not None:
        sections["propensities"] = numbers(found.propensities)
    if found.overlap is not None:
        sections["overlap"] = overlap(found)
    if found.missing:
        sections["missing entries"] = {m.column: f"{m.count:,} ({m.share:.2%})" for m in found.missing}
    for title, facts in sections.items():
        options.say(options.facts(title, facts), "")
    if not found.findings:
        console.print("no findings")
        return
    many = "1 finding" if len(found.findings) == 1 else f"{len(found.findings)} findings"
    problems = "none a problem" if not found.problems else f"problems among them: {len(found.problems)}"
    table = Table(title=f"{many}, {problems}", title_justify="left")
    table.add_column("")
    table.add_column("what", overflow="fold")
    table.add_column("what to do", overflow="fold")
    for finding in found.findings:
        style = STYLES[finding.level]
        table.add_row(Text(finding.level, style), plain(finding.what), plain(finding.advice))
    console.print(table)


__all__ = ["inspect"]
