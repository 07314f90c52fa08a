"""Text on its way to the terminal: shown as it is, whatever a file, a column or an error message is called."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text


def plain(value: object) -> Text:
    """A text in which nothing is markup, and nothing can steer the terminal or fail to be printed.

    File names may hold any of it: [red], escape sequences, bytes that are no characters.
    """
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return Text("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text))


def say(console: Console, *lines: object, style: str = "") -> None:
    """Print lines as they are, nothing of them cut to the terminal's width."""
    for line in lines:
        console.print(plain(line), style=style, highlight=False, soft_wrap=True)


__all__ = ["plain", "say"]
