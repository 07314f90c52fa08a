"""The program `manyarms`: the commands there are, its help and its version, and how it ends.

    0     done                             1    something unexpected, or what a command says (inspect --strict)
    2     refused: an argument, a file     130  interrupted

An error is one line on stderr. Where it came from is shown on request: --traceback, anywhere among the arguments, or
MANYARMS_TRACEBACK=1.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from manyarms import __version__
from manyarms.cli import _flags
from manyarms.cli._help import WIDEST, Command, Group
from manyarms.cli._text import say
from manyarms.cli.commands import COMMANDS
from manyarms.errors import ManyArmsError

UNEXPECTED, ERROR, INTERRUPTED = 1, 2, 130
TRACEBACK, ASKED = "--traceback", "MANYARMS_TRACEBACK"
SECTIONS = {
    "Start": ("demo", "inspect"),
    "From a log": ("evaluate", "compare", "choose", "tune", "drift", "learn", "certify", "decide"),
    "Service": ("serve", "keys"),
    "Live stores": ("export", "replay", "compact", "backup", "restore"),
    "More": ("reproduce", "version"),
}
HELP = """Contextual bandits for catalogues of thousands to millions of actions.

With a log of decisions (context, action, reward, propensity) in a CSV or Parquet file:

  manyarms inspect log.csv                    what is in it, and what is wrong with it
  manyarms evaluate uniform log.csv           what another policy would have earned
  manyarms learn log.csv --out policy         a better policy
  manyarms certify policy later.csv           is it safe to ship?
  manyarms decide policy age=31 device=phone  what it would do

Live: manyarms serve --agent agent/. Without anything: manyarms demo, manyarms serve --demo.

Run a command with --help for its options and examples."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"manyarms {__version__}")
        raise typer.Exit


def _program(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option(TRACEBACK, help=f"On an error show where it came from, as {ASKED}=1 does.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def build() -> typer.Typer:
    """The program with every command there is."""
    made = typer.Typer(
        name="manyarms",
        cls=Group,
        invoke_without_command=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # in help nothing is markup: [torch] stays
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
    )
    made.callback(help=HELP)(_program)
    place = {name: title for title, names in SECTIONS.items() for name in names}
    known = [name for name in place if name in COMMANDS]
    for name in [*known, *(other for other in COMMANDS if other not in place)]:
        command, section = COMMANDS[name], place.get(name, "More")
        made.command(name, cls=Command, help=inspect.getdoc(command) or "", rich_help_panel=section)(command)
    return made


app = build()


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    shown = TRACEBACK in given or os.environ.get(ASKED, "") not in ("", "0")
    _flags.speak_for(None)
    try:
        code = _run([word for word in given if word != TRACEBACK], shown)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = UNEXPECTED
    sys.exit(code)


def _run(arguments: list[str], shown: bool) -> int:
    """Run one command; the code to end with."""
    usage_error, error_of_click = typer.BadParameter.__mro__[1:3]
    try:
        return int(app(args=arguments, prog_name="manyarms", standalone_mode=False) or 0)
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, typer.Abort):
        return _end("interrupted", INTERRUPTED, shown=False)
    except ManyArmsError as error:
        return _end(_flags.spoken().error(error), getattr(error, "exit_code", ERROR), shown)
    except Exception as error:
        if isinstance(error, error_of_click):
            return _end(_usage(error, isinstance(error, usage_error)), ERROR, shown)
        what = str(error).strip().splitlines()
        came = f"{type(error).__name__}: {what[0]}" if what else type(error).__name__
        return _end(f"unexpected {came} (run it again with {TRACEBACK} to see where)", UNEXPECTED, shown)


def _usage(error: Exception, of_usage: bool) -> str:
    """What cannot be understood among the arguments, and where to look."""
    text = " ".join(getattr(error, "format_message", lambda: str(error))().split()).rstrip(".")
    context = getattr(error, "ctx", None) if of_usage else None
    return text if context is None else f"{text}; see {context.command_path} --help"


def _end(text: str, code: int, shown: bool) -> int:
    if shown:
        traceback.print_exc()
    say(Console(stderr=True), f"manyarms: {text}", whole=True)
    return code


__all__ = ["app", "build", "main"]
