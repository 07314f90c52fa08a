"""The commands that work on logs: `manyarms inspect` and `manyarms evaluate`. `register` adds them to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from manyarms.inspection import Inspection

STYLES = {"problem": "bold red", "warning": "yellow", "note": "dim"}
FOUND_PROBLEMS = 1


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(inspect)
    app.command()(evaluate)


def inspect(
    log: Annotated[
        Path, typer.Argument(help="A .parquet, .csv, .tsv, .dsjson, .json or .jsonl file; text may be .gz.")
    ],
    action: Annotated[str | None, typer.Option(help="Column of the action.", show_default="by name")] = None,
    reward: Annotated[str | None, typer.Option(help="Column of the reward.", show_default="by name")] = None,
    propensity: Annotated[str | None, typer.Option(help="Column of the propensity.", show_default="by name")] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(help="A context column, or what several begin with; repeat for more.", show_default="by name"),
    ] = None,
    event_id: Annotated[str | None, typer.Option(help="Column of the event id.", show_default="by name")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Column of the time.", show_default="by name")] = None,
    group: Annotated[str | None, typer.Option(help="Column of the group (a user).", show_default="by name")] = None,
    actions: Annotated[
        int | None, typer.Option(min=1, help="How many actions there are.", show_default="as the log says or shows")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The HTML page.", show_default="out/inspect-LOG.html")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 1 if there are problems.")] = False,
) -> None:
    """Look through a log before anything is learned from it: what is in it, what is wrong, what to do.

    Rows, actions played and never played, rewards, propensities, overlap and effective sample sizes, repeats, missing
    entries, the order of times. One pass in bounded memory, however long the log. What should be a log but is not is
    shown all the same.

    [bold]Examples[/bold]

      manyarms inspect rounds.parquet

      manyarms inspect clicks.csv.gz --action item --reward click --context user_ --actions 5000

      manyarms inspect events.dsjson --strict --out inspection.html
    """
    from manyarms import inspection
    from manyarms.logs.columns import GUESS, Columns

    columns = Columns(
        context=GUESS if not context else (context[0] if len(context) == 1 else context),
        action=action or GUESS, reward=reward or GUESS, propensity=propensity or GUESS, event_id=event_id or GUESS,
        timestamp=timestamp or GUESS, group=group or GUESS,
    )  # fmt: skip
    found = inspection.inspect(log, columns, action_count=actions)
    target = out if out is not None else Path("out") / f"inspect-{log.name.split('.')[0]}.html"
    inspection.write_page(found, target)
    show(found, Console())
    Console().print(f"page: {target}", highlight=False, soft_wrap=True)
    if strict and found.problems:
        raise typer.Exit(FOUND_PROBLEMS)


def show(found: Inspection, console: Console) -> None:
    """The inspection as tables in the terminal."""
    from manyarms.inspection.page import numbers, overview, reach

    sections = {found.source: overview(found), "rewards": numbers(found.rewards)}
    if found.propensities is not None:
        sections["propensities"] = numbers(found.propensities)
    if found.overlap is not None:
        sections["overlap"] = reach(found)
    if found.missing:
        sections["missing entries"] = {m.column: f"{m.count:,} ({m.share:.2%})" for m in found.missing}
    for title, facts in sections.items():
        table = Table(title=escape(title), title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in facts.items():
            table.add_row(escape(name), escape(value))
        console.print(table)
        console.print()
    if not found.findings:
        console.print("nothing to complain of")
        return
    title = f"{len(found.findings)} findings, {len(found.problems)} of them problems"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("what", overflow="fold")
    table.add_column("what to do", overflow="fold")
    for finding in found.findings:
        style = STYLES[finding.level]
        table.add_row(f"[{style}]{finding.level}[/{style}]", escape(finding.what), escape(finding.advice))
    console.print(table)


__all__ = ["inspect", "register", "show"]


def evaluate(
    policy: Annotated[
        Path, typer.Argument(help="A folder with a saved policy, or with a saved agent that does not draw.")
    ],
    log: Annotated[Path, typer.Argument(help="The log: a .parquet or .csv file, with propensities.")],
    out: Annotated[Path, typer.Option(help="Where report.html and evaluation.json go.")] = Path("out/evaluate"),
    estimators: Annotated[
        str | None, typer.Option(help="Names with commas between, such as ips,snips,cips,es,ls.", show_default="all")
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="normal, bootstrap, bernstein or ls.")] = "normal",
    low: Annotated[float | None, typer.Option(help="Smallest possible reward.", show_default="as seen")] = None,
    high: Annotated[float | None, typer.Option(help="Largest possible reward.", show_default="as seen")] = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
) -> None:
    """What a policy would have earned on a log: estimates, intervals, and how far to trust them.

    Prints the table and writes a page with the weights' tail, the overlap and the estimates.

    manyarms evaluate policy/ log.parquet --out out/evaluate
    """
    from manyarms.evaluation import command

    names = None if estimators is None else [name.strip() for name in estimators.split(",") if name.strip()]
    span = None if low is None or high is None else (low, high)
    found, page = command.run(
        policy, log, out=out, estimators=names, level=level, interval=interval, reward_range=span, seed=seed
    )
    console = Console()
    console.print(str(found), markup=False, highlight=False)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
