"""What messages call arguments: the library names its own (`propensity_floor`), the command line names flags (`--floor`).

Each option stands for the argument of its own name, and for others where it says so:

    floor: Annotated[float | None, typer.Option(...), StandsFor("propensity_floor")]

From a command's options follows how its messages are to be read (`Flags`). In an error the name of the argument is exchanged; in
any text only what cannot be an English word: names with an underscore, `names` in back quotes, name=True, and name="value", which
becomes --name value. Numbers are left alone, since es (alpha=0.5) is what an estimator is called, and so is all in quotes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from manyarms.errors import InvalidInput

# what has another name on the command line, whatever the command
PHRASES = {
    "log.split before learning": "manyarms learn holds rows out by itself; or two files",
    "log.split keeps them apart": "split the file by group before learning",
    "leave the column out and use manyarms.logs.estimate_propensities": "use --propensity none --estimate-missing",
    "use manyarms.logs.estimate_propensities": "use --estimate-missing",
}

# what an inspection advises for the commands that follow it
OF_READING = {"estimate_missing": "--estimate-missing", "drop_missing": "--drop-missing", "catalogue": "--catalogue"}


class StandsFor:
    """Beside an option: the arguments of the library that it stands for."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments


@dataclass(frozen=True)
class Flags:
    """The flags of a command by the names of the arguments that they stand for."""

    by_argument: Mapping[str, str] = field(default_factory=dict)
    switches: frozenset[str] = frozenset()  # flags that take no value

    @classmethod
    def of(cls, command: Any) -> Flags:
        """Those of a command of the program."""
        hints = get_type_hints(inspect.unwrap(command.callback), include_extras=True)
        found: dict[str, list[str]] = {}
        switches = set()
        for one in command.params:
            hint = hints.get(one.name)
            marks = get_args(hint) if get_origin(hint) is Annotated else ()
            others = [name for mark in marks if isinstance(mark, StandsFor) for name in mark.arguments]
            if one.param_type_name == "argument":  # POLICY LOG are two
                called = str(one.metavar or one.name.upper()).replace("...", "").split()
                names = [(word.lower(), word) for word in called] + [(other, called[-1]) for other in others]
            else:
                flag = max(one.opts, key=len)
                switches |= {flag} if one.is_flag else set()
                names = [(name, flag) for name in (one.name, *others)]
            for name, flag in names:
                if flag not in found.setdefault(name, []):
                    found[name].append(flag)
        if "log" in found:
            found = {name: [flag] for name, flag in OF_READING.items()} | found
            switches |= {"--estimate-missing", "--drop-missing"}
        return cls({name: ", ".join(flags) for name, flags in found.items()}, frozenset(switches))

    def called(self, argument: str) -> str:
        """An argument as the command line calls it."""
        plain = argument.removeprefix("columns.")
        return self.by_argument.get(plain, self.text(argument))

    def text(self, message: str) -> str:
        """A sentence that may name arguments."""
        for said, instead in PHRASES.items():
            message = message.replace(said, instead)
        if not self.by_argument:
            return message
        names = "|".join(sorted(map(re.escape, self.by_argument), key=len, reverse=True))
        value = r'(?P<value>=(?:\([^()]*\)|"[^"]*"|True|False)?)?'
        pattern = rf"""(?<![\w.'"/-])`?\b(?:columns\.)?(?P<name>{names})\b{value}`?(?!['"\w/=.-])"""
        return re.sub(pattern, self._exchanged, message)

    def _exchanged(self, found: re.Match[str]) -> str:
        name, value, whole = found["name"], found["value"], found[0]
        if value is None and "_" not in name and not whole.startswith(("`", "columns.")):
            return whole  # a word like any other
        flag = self.by_argument[name]
        given = (value or "").removeprefix("=").strip('"')
        if not given or flag in self.switches or "," in flag or given.startswith("("):
            return flag
        return f"{flag} {given}"

    def error(self, error: Exception) -> str:
        """What an error says, in one line."""
        if isinstance(error, InvalidInput):
            said = str(error).removeprefix(f"{error.argument}: expected {error.expected}, got ")
            text = f"{self.called(error.argument)}: expected {self.text(error.expected)}, got {said}"
        else:
            text = self.text(str(error))
        return " ".join(text.split("\n"))


_NONE = Flags()
_SPOKEN: ContextVar[Flags] = ContextVar("flags", default=_NONE)


def speak_for(command: Any) -> None:
    """From now on messages are read as this command's; as nobody's for None."""
    _SPOKEN.set(_NONE if command is None else Flags.of(command))


def spoken() -> Flags:
    """How messages are to be read now."""
    return _SPOKEN.get()


__all__ = ["Flags", "StandsFor", "speak_for", "spoken"]
