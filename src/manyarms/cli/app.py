"""The program `manyarms`: the commands there are, its help and its version, and how it ends on an error.

An error that the package raises on purpose is shown as one line and ends the program with code 2.
"""

from __future__ import annotations

import inspect
import sys
from typing import Annotated

import typer
from rich.console import Console

from manyarms import __version__
from manyarms.cli._text import say
from manyarms.cli.commands import COMMANDS
from manyarms.errors import ManyArmsError

ERROR = 2
HELP = """Contextual bandits for catalogues of thousands to millions of actions.

[bold]Start here[/bold]

  manyarms demo                          a tour of the package in a few minutes, with an HTML report

  manyarms reproduce --list              list the experiments of the thesis

  manyarms reproduce mets-synthetic --scale quick

  manyarms inspect LOG                   summarise a log of decisions and report problems

  manyarms evaluate POLICY LOG           estimate the value of a policy from a log

  manyarms learn LOG --out POLICY/       learn a policy from a log

  manyarms certify POLICY LOG            bound the value of a policy with high probability

  manyarms export STORE LOG              a live store as a log; replay verifies one, compact makes it smaller

Run a command with --help for its options and examples."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"manyarms {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None: ...


def build() -> typer.Typer:
    """The program with every command there is."""
    made = typer.Typer(
        name="manyarms",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(help=HELP)(_program)
    for name, command in COMMANDS.items():
        made.command(name, help=_paragraphs(inspect.getdoc(command) or ""))(command)
    return made


def _paragraphs(text: str) -> str:
    """A docstring with a line a paragraph: its line ends are not the terminal's."""
    return "\n\n".join(part.replace("\n", " ") for part in text.split("\n\n"))


app = build()


def main(arguments: list[str] | None = None) -> None:
    """The entry point."""
    try:
        app(args=arguments, prog_name="manyarms", standalone_mode=True)
    except ManyArmsError as error:
        say(Console(stderr=True), f"manyarms: {error}")
        sys.exit(getattr(error, "exit_code", ERROR))


__all__ = ["app", "build", "main"]
