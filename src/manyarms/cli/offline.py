"""The commands that work on logs: `manyarms inspect` and `manyarms evaluate`. `register` adds them to the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from manyarms.cli.options import Action, Context, DropMissing, Group, Log, Propensity, Reward, columns_of
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.logs.inspection import Inspection

STYLES = {"problem": "bold red", "warning": "yellow", "note": "dim"}
FOUND_PROBLEMS = 1


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(inspect)
    app.command()(evaluate)


def inspect(
    log: Log,
    action: Action = None,
    reward: Reward = None,
    propensity: Propensity = None,
    context: Context = None,
    event_id: Annotated[str | None, typer.Option(help="Column of the event id.", show_default="by name")] = None,
    timestamp: Annotated[str | None, typer.Option(help="Column of the time.", show_default="by name")] = None,
    group: Group = None,
    actions: Annotated[
        int | None, typer.Option(min=1, help="How many actions there are.", show_default="as the log says or shows")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The HTML page.", show_default="out/inspect-LOG.html")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 1 if there are problems.")] = False,
) -> None:
    """Look through a log before anything is learned from it: what is in it, what is wrong, what to do.

    A log has one row a decision: the context (columns of numbers or texts), the action that was played, the reward that came,
    and the propensity, the probability with which the action was played.

    Shown are rows, actions played and never played, rewards, propensities, overlap and effective sample sizes, repeats, missing
    entries, the order of times. One pass in bounded memory, however long the log. What should be a log but is not is
    shown all the same.

    [bold]Examples[/bold]

      manyarms inspect rounds.parquet

      manyarms inspect clicks.csv.gz --action item --reward click --context user_ --actions 5000

      manyarms inspect events.dsjson --strict --out inspection.html

    [bold]Next[/bold]: manyarms evaluate uniform LOG
    """
    from manyarms.logs import inspection

    columns = columns_of(action, reward, propensity, context, group, event_id, timestamp)
    found = inspection.inspect(log, columns, action_count=actions)
    target = out if out is not None else Path("out") / f"inspect-{log.name.split('.')[0]}.html"
    inspection.write_page(found, target)
    show(found, Console())
    Console().print(f"page: {target}", highlight=False, soft_wrap=True)
    if strict and found.problems:
        raise typer.Exit(FOUND_PROBLEMS)


def show(found: Inspection, console: Console) -> None:
    """The inspection as tables in the terminal."""
    from manyarms.logs.inspection.page import numbers, overview, reach

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
    many = "1 finding" if len(found.findings) == 1 else f"{len(found.findings)} findings"
    problems = "none a problem" if not found.problems else f"problems among them: {len(found.problems)}"
    table = Table(title=f"{many}, {problems}", title_justify="left")
    table.add_column("")
    table.add_column("what", overflow="fold")
    table.add_column("what to do", overflow="fold")
    for finding in found.findings:
        style = STYLES[finding.level]
        table.add_row(f"[{style}]{finding.level}[/{style}]", escape(finding.what), escape(finding.advice))
    console.print(table)


def evaluate(
    policy: Annotated[
        Path,
        typer.Argument(help="A folder with a saved policy, or with a saved agent that does not draw; or: uniform."),
    ],
    log: Log,
    action: Action = None,
    reward: Reward = None,
    propensity: Propensity = None,
    context: Context = None,
    group: Group = None,
    drop_missing: DropMissing = False,
    out: Annotated[Path, typer.Option(help="Where report.html and evaluation.json go.")] = Path("out/evaluate"),
    estimators: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between, each with or without a number: ips, snips, cips:0.01, ips-min, es, es-beta, ix, "
            "harmonic, shrinkage, ls; with --model also dm, dr, switch, switch-dr.",
            show_default="most of them",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="A folder with a saved agent; what it believes is the reward model of dm, dr, switch-dr."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="normal, bootstrap, bernstein or ls.")] = "normal",
    low: Annotated[float | None, typer.Option(help="Smallest possible reward; with --high.", show_default="0")] = None,
    high: Annotated[float | None, typer.Option(help="Largest possible reward; with --low.", show_default="1")] = None,
    floor: Annotated[
        float | None,
        typer.Option(help="No propensity of the logging policy is below this; for bernstein.", show_default="unknown"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
) -> None:
    """What a policy would have earned on a log: estimates, intervals, and how far to trust them.

    Prints a table and writes OUT/report.html, a page with the weights' tail, the overlap of the two policies and the estimates,
    and OUT/evaluation.json. The log needs propensities, and must not be what the policy was learned from.

    [bold]Examples[/bold]

      manyarms evaluate uniform rounds.parquet

      manyarms evaluate policy/ clicks.csv.gz --action item --reward click --context user_

      manyarms evaluate policy/ rounds.parquet --estimators snips,cips:0.01,ls --interval ls

      manyarms evaluate policy/ rounds.parquet --model agent/ --estimators snips,dm,dr

    [bold]Where a policy's folder comes from[/bold], in Python

      from manyarms.evaluation import save_policy

      save_policy(policy, "policy", log)    the log's encoder and ids are kept beside it

    [bold]Which row to believe[/bold]: an interval without * is for the policy's value. ips is unbiased; snips is steadier; the
    others trade bias for variance. Where eff. n is small or warnings are many, believe none. docs/evaluation.md has the rest.
    """
    from manyarms.cli import evaluation as command

    names = None if estimators is None else [name.strip() for name in estimators.split(",") if name.strip()]
    if (low is None) != (high is None):
        raise InvalidInput("--low, --high", "one of them", "both, or neither")
    found, page = command.run(
        policy, log, out=out, columns=columns_of(action, reward, propensity, context, group), drop_missing=drop_missing,
        model=model, estimators=names, level=level, interval=interval, propensity_floor=floor, seed=seed,
        reward_range=None if low is None or high is None else (low, high),
    )  # fmt: skip
    console = Console()
    console.print(str(found), markup=False, highlight=False, soft_wrap=True)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)


__all__ = ["evaluate", "inspect", "register", "show"]
