"""The command line: `manyarms demo`, `reproduce`, `inspect`, `evaluate`, `learn`, `certify`, `version`.

One function a command; what a command does lives in the module that it calls. An error that the package raises on
purpose is shown as one line and ends the program with code 2.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from manyarms import __version__
from manyarms.cli import certify as commands_certify
from manyarms.cli import learn as commands_learning
from manyarms.cli import offline as commands_offline
from manyarms.cli.experiments import find_experiments
from manyarms.errors import InvalidInput, ManyArmsError

# what each optional part of the package needs
EXTRAS = {
    "experiments": ("pyarrow", "matplotlib", "scikit-learn"),
    "frames": ("pandas", "polars"),
    "torch": ("torch",),
    "faiss": ("faiss-cpu",),
}
ERROR = 2

app = typer.Typer(
    name="manyarms",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Contextual bandits for catalogues of thousands to millions of actions.\n\n"
        "[bold]Start here[/bold]\n\n"
        "  manyarms demo                          the main jobs in a few minutes, with a report to open\n\n"
        "  manyarms reproduce --list              the experiments of the thesis behind the package\n\n"
        "  manyarms reproduce mets-synthetic --scale quick\n\n"
        "  manyarms inspect LOG                   what is in a log of decisions, and what is wrong with it\n\n"
        "  manyarms evaluate POLICY LOG           what a policy would have earned on it\n\n"
        "  manyarms learn LOG --out POLICY/       a policy learned from it, and a report\n\n"
        "  manyarms certify POLICY LOG            is it safe to ship? bounds on its value that hold\n\n"
        "Every command explains itself with --help."
    ),
)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for report.html and pictures; made if absent.")] = Path("out/demo"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed draws another catalogue.")] = 0,
) -> None:
    """Show the main jobs, each within a minute on two cores.

    A catalogue of 100,000 items: meTS against LinTS, LinUCB and HierTS. A prior learned from embeddings: dTS. A log of 100,000
    items: policies learned from it by IPS and cLPI, and what they are truly worth.

    Prints tables and writes [bold]OUT/report.html[/bold], one file with curves, the lines of Python behind them, and what to try
    next; pictures go to OUT/figures.

    [bold]Examples[/bold]

      manyarms demo

      manyarms demo --seed 7 --out out/demo-7

    [bold]Next[/bold]: manyarms reproduce --list
    """
    from manyarms.cli.demo import demo as demonstration

    demonstration.run(out, seed=seed, console=Console())


@app.command()
def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment; --list shows them.", show_default=False)] = None,
    scale: Annotated[
        str,
        typer.Option(help="smoke: seconds, does it run. quick: minutes, what to expect. paper: the thesis's sizes."),
    ] = "quick",
    out: Annotated[Path | None, typer.Option(help="Folder for what comes out.", show_default="out/NAME-SCALE")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Worker processes.", show_default="one a core")] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="The same seed gives the same results on any number of workers.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Do finished work again instead of reusing it.")] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the experiments and end.")] = False,
) -> None:
    """Run an experiment of the thesis and check what the thesis states about it.

    [bold]Examples[/bold]

      manyarms reproduce --list

      manyarms reproduce mets-synthetic --scale smoke

      manyarms reproduce mets-actions --scale paper --out out/actions

    [bold]What comes out[/bold], in the folder --out

      report.html       everything on one page: claims, figures, numbers, settings

      claims.json       each statement, the measured figure, its standard error, and whether it holds

      results.parquet   one row for each checkpoint of each run

      figures/          SVG and PNG

      parts/            finished work: after Ctrl-C the same command goes on where it stopped

    The MovieLens experiment reads the folder that MANYARMS_DATA names, and says so where it had to make ratings up.
    """
    console = Console()
    if show_list:
        console.print(_listing())
        return
    if name is None:
        raise InvalidInput("NAME", "nothing", "the name of an experiment; manyarms reproduce --list shows them")
    experiments = find_experiments()
    experiment = experiments.find(name)
    folder = out if out is not None else Path("out") / f"{name}-{scale}"
    outcome = experiments.run(
        experiment, scale, folder, workers_wanted=workers, seed=seed, force=force, console=Console(stderr=True)
    )
    console.print(_verdicts(outcome))
    console.print(f"report: {outcome.folder / 'report.html'}", highlight=False, soft_wrap=True)


@app.command()
def version() -> None:
    """Show the versions of the package and of what it stands on, and which optional parts are installed."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row("manyarms", __version__)
    table.add_row("python", platform.python_version())
    table.add_row("numpy", _version("numpy"))
    table.add_row("scipy", _version("scipy"))
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if _version(package) == "not installed"]
        present = ", ".join(f"{package} {_version(package)}" for package in packages if package not in missing)
        hint = f"missing {', '.join(missing)}: pip install 'manyarms[{extra}]'" if missing else ""
        table.add_row(f"[{extra}]".replace("[", r"\["), escape("; ".join(filter(None, (present, hint)))))
    data = os.environ.get("MANYARMS_DATA")
    table.add_row("MANYARMS_DATA", escape(data) if data else "not set (MovieLens experiments use made-up ratings)")
    Console().print(table)


def main(arguments: list[str] | None = None) -> None:
    """The entry point."""
    try:
        app(args=arguments, standalone_mode=True)
    except ManyArmsError as error:
        Console(stderr=True).print(f"manyarms: {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(getattr(error, "exit_code", ERROR))


def _listing() -> Table:
    table = Table(title="manyarms reproduce NAME --scale smoke|quick|paper --out DIR", title_justify="left")
    for column in ("name", "what it shows", "thesis, lines"):
        table.add_column(column, no_wrap=column == "name", overflow="fold")
    for experiment in find_experiments().catalogue().values():
        table.add_row(experiment.name, experiment.title, experiment.thesis_lines)
    return table


def _verdicts(outcome: Any) -> Table:
    held = sum(claim.holds for claim in outcome.claims)
    table = Table(title=f"{held} of {len(outcome.claims)} statements hold", title_justify="left")
    table.add_column("statement")
    table.add_column("panel")
    table.add_column("lines")
    table.add_column("figure ± se", justify="right", no_wrap=True)
    table.add_column("holds")
    for claim in outcome.claims:
        verdict = "[green]yes[/green]" if claim.holds else "[red]no[/red]"
        table.add_row(
            escape(claim.statement), claim.panel, claim.thesis_lines,
            f"{claim.figure:.4g} ± {claim.standard_error:.2g}", verdict,
        )  # fmt: skip
    return table


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


commands_offline.register(app)
commands_learning.register(app)
commands_certify.register(app)

if __name__ == "__main__":
    main()

__all__ = ["app", "main"]
