"""`manyarms reproduce NAME`: an experiment of the thesis, and whether what the thesis states about it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from manyarms.cli._text import plain, say
from manyarms.cli.commands import COMMANDS
from manyarms.cli.experiments import find_experiments
from manyarms.errors import InvalidInput


@COMMANDS.register("reproduce")
def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the experiment; see --list.", show_default=False)
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="smoke: seconds, only checks that it runs. quick: minutes, small sizes. paper: the sizes of the thesis."
        ),
    ] = "quick",
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="out/NAME-SCALE")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of worker processes.", show_default="one per core")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed; results do not depend on the number of workers.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Repeat finished work instead of reusing it.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
) -> None:
    """Run an experiment of the thesis and check what the thesis states about it.

    Examples:

      manyarms reproduce --list
      manyarms reproduce mets-synthetic --scale smoke
      manyarms reproduce mets-actions --scale paper --out out/actions

    Results, in the folder --out:

      report.html       everything on one page: claims, figures, numbers, settings
      claims.json       each statement, the measured figure, its standard error, and whether it holds
      results.parquet   one row for each checkpoint of each run
      figures/          SVG and PNG
      parts/            finished work: after Ctrl-C the same command resumes

    The MovieLens experiment reads the folder that MANYARMS_DATA names, and uses made-up ratings, with a note, without it.
    """
    console = Console()
    if show_list:
        console.print(_listing())
        return
    if name is None:
        raise InvalidInput("NAME", "nothing", "the name of an experiment; see manyarms reproduce --list")
    experiments = find_experiments()
    experiment = experiments.find(name)
    folder = out if out is not None else Path("out") / f"{name}-{scale}"
    outcome = experiments.run(
        experiment, scale, folder, workers_wanted=workers, seed=seed, force=force, console=Console(stderr=True)
    )
    console.print(_verdicts(outcome))
    say(console, f"report: {outcome.folder / 'report.html'}")


def _listing() -> Table:
    table = Table(title="manyarms reproduce NAME --scale smoke|quick|paper --out DIR", title_justify="left")
    for column in ("name", "what it shows", "section"):
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for experiment in find_experiments().catalogue().values():
        table.add_row(experiment.name, experiment.title, experiment.sections)
    return table


def _verdicts(outcome: Any) -> Table:
    held = sum(claim.holds for claim in outcome.claims)
    table = Table(title=f"{held} of {len(outcome.claims)} statements hold", title_justify="left")
    table.add_column("statement")
    table.add_column("panel")
    table.add_column("section")
    table.add_column("figure ± se", justify="right", no_wrap=True)
    table.add_column("holds")
    for claim in outcome.claims:
        verdict = "[green]yes[/green]" if claim.holds else "[red]no[/red]"
        table.add_row(
            plain(claim.statement), plain(claim.panel), plain(claim.sections),
            f"{claim.figure:.4g} ± {claim.standard_error:.2g}", verdict,
        )  # fmt: skip
    return table


__all__ = ["reproduce"]
