"""`manyarms reproduce NAME`: an experiment of the thesis, and whether what the thesis states about it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from manyarms._base.tables import Table
from manyarms.cli import options
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
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="So many runs, where the scale has more: the same worlds, wider errors.",
            show_default="the scale's",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUES",
            help="Only the panels with these values of a column of the results, such as K=20,100 or data=gowalla, "
            "variant=printed for worlds as the thesis prints them, or only some methods, such as method=cLPI,cIPS "
            "(repeatable); an unknown one is answered with those that there are.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="out/NAME-SCALE")] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of worker processes; a cluster has as many as it has.", show_default="one per core"
        ),
    ] = None,
    on: options.On = "local",
    seed: Annotated[
        int,
        typer.Option(
            min=0, help="Random seed; results do not depend on where the work is done, nor on how many do it."
        ),
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Repeat finished work instead of reusing it.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            help="Also keep a record and a summary in this folder: what the book of results is made of. Those of --only "
            "stand beside the whole's.",
            show_default=False,
        ),
    ] = None,
    show_list: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
) -> None:
    """Run an experiment of the thesis and check what the thesis states about it.

    Examples:

      manyarms reproduce --list
      manyarms reproduce mets-synthetic --scale smoke
      manyarms reproduce mets-actions --scale paper --out out/actions
      manyarms reproduce mets-actions --scale paper --runs 10 --only K=100,1000
      manyarms reproduce mets-actions --scale paper --on ray://head:10001

    Results, in the folder --out:

      report.html       everything on one page: question and answer, figures, statements, numbers, settings
      claims.json       each statement, the measured figure, its standard error, and the verdict: held, held in part,
                        refuted or undecided
      results.parquet   one row for each checkpoint of each run
      figures/          SVG, PDF and PNG; variants/ has those of worlds that the thesis does not print
      parts/            finished work: after Ctrl-C the same command resumes

    The MovieLens experiment reads the folder that MANYARMS_DATA names, and uses made-up ratings, with a note, without it.
    """
    if show_list:
        options.say(_listing())
        return
    if name is None:
        raise InvalidInput("NAME", "nothing", "the name of an experiment; see manyarms reproduce --list")
    experiments = find_experiments()
    experiment = experiments.find(name)
    if runs is not None or only:
        experiment = experiments.part_of(experiment, scale, runs=runs, only=_columns(only or []))
    folder = out if out is not None else Path("out") / f"{name}-{scale}"
    outcome = experiments.run(
        experiment,
        scale,
        folder,
        workers_wanted=workers,
        seed=seed,
        force=force,
        kept=keep,
        on=on,
        console=Console(stderr=True),
    )
    options.say(_verdicts(outcome), f"report: {outcome.folder / 'report.html'}")


def _columns(texts: list[str]) -> dict[str, list[str]]:
    """Columns and the values that are wanted of them, as --only has them."""
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise InvalidInput("--only", repr(text), "a column and its values, such as K=20,100")
        found.setdefault(name.strip(), []).extend(value.strip() for value in values.split(","))
    return found


def _listing() -> str:
    rows = [(one.name, one.title, one.sections or "–") for one in find_experiments().catalogue().values()]
    return Table(
        "manyarms reproduce NAME --scale smoke|quick|paper --out DIR", ("name", "what it shows", "section"), rows
    ).text()


def _verdicts(outcome: Any) -> str:
    rows = [
        (
            claim.statement, claim.panel, claim.sections or "–", f"{claim.figure:.4g} ± {claim.standard_error:.2g}",
            claim.verdict.upper() if claim.verdict == "refuted" else claim.verdict,
        )
        for claim in outcome.claims
    ]  # fmt: skip
    held = sum(claim.holds for claim in outcome.claims)
    title = f"{held} of {len(outcome.claims)} measurements bear their statement out"
    return Table(title, ("statement", "panel", "section", "difference ± se", "verdict"), rows).text()


__all__ = ["reproduce"]
