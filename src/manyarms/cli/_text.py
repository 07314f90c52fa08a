"""Text on its way to the terminal: shown as it is, whatever a file, a column or an error message is called."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text


def plain(value: object) -> Text:
    """A text in which nothing is markup, and nothing can steer the terminal or fail to be printed.

    File names may hold any of it: [red], escape sequences, bytes that are no characters.
    """
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return Text("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text))


def say(console: Console, *lines: object, style: str = "", whole: bool = False) -> None:
    """Print lines as they are; those too long for a terminal go on below, broken between words, and a file has them whole."""
    for line in lines:
        text = plain(line)
        if console.is_terminal and not whole:
            text = Text("\n".join(_broken(one, console.width) for one in text.plain.split("\n")))
        console.print(text, style=style, highlight=False, soft_wrap=True)


def _broken(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    wrapper = textwrap.TextWrapper(
        width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapper.wrap(line.lstrip()))


__all__ = ["plain", "say"]
