"""Help pages: plain text that fits any width, in which nothing is markup.

A command's docstring is its help. Paragraphs are filled; indented lines are kept line by line, so that commands can be copied:
one that is too long goes on below it, behind a backslash, and a name with two spaces or more before its text keeps the text in
its column. Options stand in the sections that `rich_help_panel` names.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from typer.core import TyperCommand, TyperGroup

from manyarms.cli import _flags

WIDEST = 100
OPTIONS = "Options"
METAVARS: dict[type, str] = {int: "N", float: "X", str: "TEXT", Path: "PATH"}


class Command(TyperCommand):
    """A command with such a page; while it runs, messages call its arguments as the command line does."""

    def invoke(self, ctx: Any) -> Any:
        _flags.speak_for(self)
        return super().invoke(ctx)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        words = [_argument(one) for one in self.params if one.param_type_name == "argument"]
        formatter.write_usage(ctx.command_path, " ".join([*words, "[OPTIONS]"]))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        formatter.write("\n" + laid_out(self.help or "", formatter.width) + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], OPTIONS: []}
        kinds = _kinds(self.callback)
        for one in self.get_params(ctx):
            if getattr(one, "hidden", False):
                continue
            if one.param_type_name == "argument":
                section, shown = "Arguments", str(one.metavar or (one.name or "").upper())
            else:
                section, shown = getattr(one, "rich_help_panel", None) or OPTIONS, _option(one, kinds)
            sections.setdefault(section, []).append((shown, _about(one)))
        # the columns of a log, and the like, after what the command is about
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=max(18, min(30, formatter.width // 3)))


class Group(TyperGroup):
    """The program: its commands in sections, each with the first line of its help."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "COMMAND ...")

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        formatter.write("\n" + laid_out(self.help or "", formatter.width) + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            title = getattr(command, "rich_help_panel", None)
            first = next(iter(_paragraphs(command.help or "")), "")
            sections.setdefault(title if isinstance(title, str) else "Commands", []).append(
                (name, " ".join(first.split()))
            )
        options = [(_option(one, {}), _about(one)) for one in self.get_params(ctx) if not getattr(one, "hidden", False)]
        for title, rows in [*sections.items(), (OPTIONS, options)]:
            with formatter.section(title):
                formatter.write_dl(rows)


def laid_out(text: str, width: int) -> str:
    """A docstring for a page so wide."""
    return "\n\n".join("\n".join(_lines(part, width)) for part in _paragraphs(text))


def _paragraphs(text: str) -> list[str]:
    return [part.strip("\n") for part in re.split(r"\n\s*\n", text) if part.strip()]


def _lines(paragraph: str, width: int) -> Iterator[str]:
    if not paragraph.startswith(" "):
        yield from textwrap.wrap(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
        return
    for line in paragraph.splitlines():
        yield from _kept(line.rstrip(), width)


def _kept(line: str, width: int) -> Iterator[str]:
    """A line that is kept as it is where it fits."""
    indent = len(line) - len(line.lstrip())
    gap = re.search(r"\S {2,}(?=\S)", line)
    command = gap is None and line.lstrip().startswith(("manyarms ", "python "))
    hang = gap.end() if gap is not None else indent + (4 if command else 0)
    if width - hang < 24 and len(line) > width:  # no room beside the name: below it
        yield line[: gap.start() + 1] if gap is not None else line
        if gap is None:
            return
        line, hang = " " * (indent + 4) + line[gap.end() :], indent + 4
    room = width - 2 if command and len(line) > width else width
    text = line[hang:] if gap is not None else line.strip()
    if command:  # an option and its value stay together
        text = re.sub(r"(?<= )(--[\w-]+) (?=[^-\s])", r"\1\0", text)
    wrapped = textwrap.wrap(
        text, room - (hang if gap is not None else indent), break_long_words=False, break_on_hyphens=False,
        subsequent_indent=" " * (hang - indent) if command else "",
    )  # fmt: skip
    for at, part in enumerate(one.replace("\0", " ") for one in wrapped):
        if gap is not None:
            yield (line[:hang] if at == 0 else " " * hang) + part
        else:
            yield " " * indent + part + (" \\" if command and at + 1 < len(wrapped) else "")


def _argument(one: Any) -> str:
    name = str(one.metavar or (one.name or "").upper())
    name += "..." if one.nargs != 1 and one.metavar is None else ""
    return name if one.required else f"[{name}]"


def _option(one: Any, kinds: dict[str, str]) -> str:
    """An option as it is typed: --action COLUMN, or -h, --help."""
    flags = ", ".join(sorted(one.opts, key=len))
    if one.is_flag:
        return flags
    return f"{flags} {one.metavar or kinds.get(one.name or '', 'TEXT')}"


def _about(one: Any) -> str:
    """What it is, and what it is unless given."""
    shown = one.show_default
    told = shown if isinstance(shown, str) else ""
    default = one.default
    if not told and shown and default is not None and not isinstance(default, bool) and default not in ((), [], ""):
        told = str(default)
    notes = [f"default: {told}"] if told else []
    notes += ["required"] if one.required and one.param_type_name == "option" else []
    notes += ["repeatable"] if getattr(one, "multiple", False) else []
    text = getattr(one, "help", None) or ""
    return f"{text}  [{'; '.join(notes)}]" if notes else text


def _kinds(callback: Any) -> dict[str, str]:
    """What a value looks like, by the type of its parameter."""
    hints = get_type_hints(inspect.unwrap(callback)) if callback is not None else {}
    return {
        name: next((METAVARS[kind] for kind in _members(hint) if kind in METAVARS), "TEXT")
        for name, hint in hints.items()
    }


def _members(hint: Any) -> list[Any]:
    inner = get_args(hint)
    return [hint] if not inner else [kind for one in inner for kind in _members(one)]


__all__ = ["WIDEST", "Command", "Group", "laid_out"]
