"""A Griffe extension: docstrings as the source has them, in Markdown for the reference pages.

Doctests become blocks of code. In a paragraph that describes arguments ("delta: the risk. prior: what is assumed"), each argument
has a line of its own.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension, Function, Object

DOCTEST = re.compile(r"(?:^>>> .*\n?)(?:^(?!\s*$).*\n?)*", re.MULTILINE)


class ReadableDocstrings(Extension):
    """Rewrites every docstring when its object has been collected."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value, arguments_of(obj))


def arguments_of(obj: Object) -> set[str]:
    """The arguments that a docstring may describe: a function's, or a class's and its attributes."""
    if isinstance(obj, Function):
        return {one.name for one in obj.parameters}
    if isinstance(obj, Class):
        made = obj.members.get("__init__")
        names = {one.name for one in made.parameters} if isinstance(made, Function) else set()
        return names | {name for name, member in obj.members.items() if member.is_attribute}
    return set()


def readable(text: str, arguments: set[str]) -> str:
    """A docstring as Markdown."""
    text = DOCTEST.sub(lambda found: f"\n```pycon\n{found[0].rstrip()}\n```\n", text)
    parts = re.split(r"(^```pycon\n.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else _listed(part, arguments) for part in parts)


def _listed(text: str, arguments: set[str]) -> str:
    """Paragraphs that begin with an argument, as lists of arguments."""
    if not arguments:
        return text
    name = "|".join(sorted(map(re.escape, arguments), key=len, reverse=True))
    begins = re.compile(rf"(?:^|(?<=[.;]\s))((?:{name})(?:, (?:{name}))*): ")
    done = []
    for paragraph in text.split("\n\n"):
        if begins.match(paragraph.lstrip("\n")):
            pieces = begins.split(paragraph.strip())[1:]
            items = [(pieces[i], " ".join(pieces[i + 1].split())) for i in range(0, len(pieces), 2)]
            paragraph = "\n" + "\n".join(f"- **{name}**: {what}" for name, what in items)
        done.append(paragraph)
    return "\n\n".join(done)
