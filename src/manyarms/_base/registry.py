"""Parts by name: a registry per kind of part, filled by decorator, by the modules of a package, or by entry point.

    CORRECTIONS: Registry[type[Correction]] = Registry("correction", package="manyarms.weights", group="manyarms.corrections")

    @CORRECTIONS.register("cips", "clip")        # in a file of its own; no other file is touched
    class Clip(Correction): ...

    CORRECTIONS["cips"]

The modules of `package`, and of the packages in it, are imported at the first look-up, those with a leading underscore aside,
so that a new file there is found by itself. Another distribution declares an entry point in `group`: loading it imports the
module whose decorators register its parts.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from manyarms.errors import InvalidInput

Part = TypeVar("Part")


class Registry(Mapping[str, Part], Generic[Part]):
    """Parts of one kind by name. `kind` is what an error message calls them; named: classes that do not say `name` get it."""

    def __init__(self, kind: str, *, group: str, package: str | None = None, named: bool = False) -> None:
        self.kind, self.group, self.package, self.named = kind, group, package, named
        self._parts: dict[str, Part] = {}
        self._aliases: dict[str, str] = {}
        self._complete = False

    def register(self, name: str, *aliases: str) -> Callable[[Part], Part]:
        """A decorator that enters a part under a name, and under aliases that are understood but not listed."""

        def enter(part: Part) -> Part:
            for each in (name, *aliases):
                known = self._parts.get(each)
                if (known is not None and _path(known) != _path(part)) or self._aliases.get(each, name) != name:
                    raise InvalidInput("name", repr(each), f"a {self.kind} name that is not taken")
            if self.named and "name" not in vars(part):
                part.name = name  # type: ignore[attr-defined]
            self._parts[name] = part
            self._aliases.update(dict.fromkeys(aliases, name))
            return part

        return enter

    def __getitem__(self, name: str) -> Part:
        if name not in self._parts and name not in self._aliases:
            self._load()
        name = self._aliases.get(name, name)
        if name not in self._parts:
            import difflib  # late: only an error needs it

            near = difflib.get_close_matches(str(name), self._parts, n=2, cutoff=0.6)
            hint = f" (did you mean {' or '.join(near)}?)" if near else ""
            raise InvalidInput(self.kind, repr(name), f"one of {', '.join(self._parts)}{hint}")
        return self._parts[name]

    def name_of(self, part: Part) -> str:
        """The name under which a part was entered: what is saved of it, and what restores it."""
        for name, known in self._parts.items():
            if known is part:
                return name
        raise InvalidInput(
            self.kind, ".".join(_path(part)), f"a registered {self.kind}, which has a name to be saved by"
        )

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._parts or name in self._aliases

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._parts)

    def __len__(self) -> int:
        self._load()
        return len(self._parts)

    def _load(self) -> None:
        if self._complete:
            return
        self._complete = True  # before the imports below, which may look parts up themselves
        if self.package is not None:
            package = importlib.import_module(self.package)
            for module in pkgutil.walk_packages(package.__path__, f"{self.package}."):
                if "._" not in module.name:  # private modules hold no parts, and may be heavy
                    importlib.import_module(module.name)
        from importlib import metadata  # late: it takes a while to import, and most sessions look up nothing

        for entry in metadata.entry_points(group=self.group):
            entry.load()


def _path(part: object) -> tuple[str, str]:
    """Where a part was defined: a module that is imported again may register its own parts again."""
    return getattr(part, "__module__", ""), getattr(part, "__qualname__", repr(part))


__all__ = ["Registry"]
