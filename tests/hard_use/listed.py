"""Violations that are known: known.txt, one site a line. The list may only shrink.

known_new.txt holds what checks have found that are younger than that list; it goes with its last line.
"""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

KNOWN = Path(__file__).with_name("known.txt")
NEW = KNOWN.with_name("known_new.txt")


def lines_of(path: Path) -> list[str]:
    """Its sites, without what is said about them."""
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def known() -> list[str]:
    """The sites that are known; a star stands for anything."""
    return lines_of(KNOWN) + (lines_of(NEW) if NEW.exists() else [])


def is_known(key: str, listed: list[str]) -> bool:
    """Is a site on the list? A call with two wrong arguments is, where the call with one of them is."""
    keys = [key]
    if two := re.fullmatch(r"(\S+ [^ (]*(?:\(\w*\)\.\w+)?\()([^()]+), ([^()]+)(\).*)", key):
        keys += [two[1] + one + two[4] for one in (two[2], two[3])]
    return any(fnmatch.fnmatchcase(one, line.replace("[", "[[]")) for line in listed for one in keys)


def rewritten(listed: list[str], found: list[str]) -> list[str]:
    """The list after a run: what was found again stays, what was not is gone, what is new comes; one line a parameter."""
    kept = {line for line in listed if any(is_known(key, [line]) for key in found)}
    for key in sorted(found, key=lambda key: (key.count(", "), key)):  # calls with one wrong argument first
        if not is_known(key, sorted(kept)):
            kept.add(re.sub(r"^(accepted \S+\)) .*", r"\1 *", key))
    return sorted(kept)


def write(listed: list[str], found: list[str]) -> None:
    """Make the file anew from a run."""
    NEW.unlink(missing_ok=True)
    head = [line for line in KNOWN.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    KNOWN.write_text("\n".join([*head, *rewritten(listed, found)]) + "\n", encoding="utf-8")
