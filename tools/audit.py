"""Licences and known advisories of what manyarms is installed with: `make audit`.

python tools/audit.py [--environment .venv-audit] [--out out/audit.md]

Licences are read from the metadata of the installed packages and held to the lists below; a package under any other licence, or
under none that can be read, is an error. Advisories come from pip-audit, which is installed into an environment of its own; where
it cannot be installed, or no advisory service can be reached, that part is skipped with a message, and is no error. A known
advisory is one. The exit code is 1 where there is an error.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# may stand beside a package under Apache-2.0, and ask for no more than their text; by their SPDX names
ACCEPTED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "HPND", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Unlicense", "Zlib",
}  # fmt: skip
# files under it keep it: accepted for what only tests, checks or benchmarks need, and nobody gets with the package
ACCEPTED_FOR_TOOLS = {*ACCEPTED, "MPL-2.0"}
# of an extra that nobody gets unasked, imported as it is from a package of its own: all that the LGPL and the MPL want of users
APART = {
    "psycopg": "LGPL-3.0-only", "psycopg-binary": "LGPL-3.0-only",  # postgresql
    "certifi": "MPL-2.0",  # client, by httpx
    "orjson": "MPL-2.0",  # service
}  # fmt: skip
TOOLS = ("test", "lint", "docs", "bench")  # extras that nobody needs to use the library
# what packages write in place of an SPDX name: a pattern of their text, or of their trove classifier
SPELLINGS = {
    r"^MIT( License)?$": "MIT", r"^ISC License": "ISC", r"^(BSD 3-Clause|3-Clause BSD|New BSD)": "BSD-3-Clause",
    r"^BSD 2-Clause": "BSD-2-Clause", r"^BSD( License)?$": "BSD",
    r"^Apache( Software License| License)?,?( Version)? ?2\.0": "Apache-2.0",
    r"^Apache Software License$": "Apache-2.0", r"^Mozilla Public License 2\.0": "MPL-2.0", r"^MPL 2\.0": "MPL-2.0",
    r"^Python Software Foundation License$": "PSF-2.0", r"^The Unlicense": "Unlicense", r"^zlib": "Zlib",
    r"^GNU Lesser General Public License v3": "LGPL-3.0-only",
}  # fmt: skip
SERVICES = ("pypi", "osv")


@dataclass(frozen=True)
class Package:
    """An installed package, what brought it here, and its licence as far as its metadata tells."""

    name: str
    version: str
    licence: str
    tool: bool  # nothing that a user installs needs it

    @property
    def accepted(self) -> bool:
        accepted = ACCEPTED_FOR_TOOLS if self.tool else ACCEPTED
        return is_accepted(self.licence, accepted | {APART.get(self.name, "")})


# ---- licences


def spelled(text: str) -> str | None:
    """The SPDX name of what a package calls its licence."""
    text = text.strip()
    if text in ACCEPTED_FOR_TOOLS:
        return text
    return next((name for pattern, name in SPELLINGS.items() if re.search(pattern, text, re.IGNORECASE)), None)


def licence_of(about: Any) -> str:
    """An SPDX expression: as stated, or from a licence field that is short, or from the classifiers; "" where nothing tells."""
    if stated := about.get("License-Expression"):
        return str(stated)
    lines = (about.get("License") or "").strip().splitlines()
    if lines and len(lines[0]) < 60 and (name := spelled(lines[0])):
        return name
    listed = [line.split("::")[-1] for line in about.get_all("Classifier") or [] if line.startswith("License ::")]
    names = [spelled(re.sub(r"\s*\(.*\)", "", line)) for line in listed if "OSI Approved" not in line.strip()]
    return " AND ".join(sorted({name for name in names if name})) if all(names) else ""


def is_accepted(expression: str, accepted: set[str]) -> bool:
    """Can an SPDX expression be met with accepted licences alone? One of an OR, all of an AND."""
    expression = expression.strip()
    while expression.startswith("(") and _closing(expression) == len(expression) - 1:
        expression = expression[1:-1].strip()
    for word, meets in (("OR", any), ("AND", all)):
        parts = _split(expression, word)
        if len(parts) > 1:
            return meets(is_accepted(part, accepted) for part in parts)
    return expression in accepted


def _closing(text: str) -> int:
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return position
    return -1


def _split(expression: str, word: str) -> list[str]:
    """At a word, outside of parentheses."""
    parts, depth = [""], 0
    for token in re.split(r"(\(|\)|\s+)", expression):
        depth += (token == "(") - (token == ")")
        if token.upper() == word and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return parts


# ---- what is installed, and for whom


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements(name: str, extras: Iterable[str]) -> set[tuple[str, tuple[str, ...]]]:
    """What an installed package asks for, with some extras: names, each with its own extras. Other markers are not looked at:
    what they exclude is not installed, or is here for another reason."""
    found = set()
    for line in metadata.requires(name) or []:
        wanted, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
        if extra and extra[1] not in extras:
            continue
        parts = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?", wanted)
        if parts:
            found.add((normal(parts[1]), tuple(sorted(e.strip() for e in (parts[2] or "").split(",") if e.strip()))))
    return found


def reached(root: str, extras: Iterable[str]) -> set[str]:
    """All packages that a package with some extras brings along, as far as they are installed."""
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(normal(root), tuple(extras))]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        try:
            waiting += requirements(*one)
        except metadata.PackageNotFoundError:
            continue
        seen.add(one)
    return {name for name, _ in seen}


def packages() -> list[Package]:
    """Everything that is installed here for manyarms, without itself."""
    extras = set(metadata.metadata("manyarms").get_all("Provides-Extra") or [])
    for_users = reached("manyarms", sorted(extras - {*TOOLS, "all"}))
    found = []
    for name in sorted(reached("manyarms", sorted(extras)) - {"manyarms"}):
        about = metadata.metadata(name)
        found.append(Package(about["Name"], about["Version"], licence_of(about), name not in for_users))
    return found


def table(found: list[Package]) -> str:
    """The licences as Markdown."""
    rows = [
        f"| {p.name} | {p.version} | {'tests and tools' if p.tool else 'use'} | {p.licence or 'not stated'} |"
        for p in found
    ]
    return "\n".join(["| package | version | for | licence |", "| --- | --- | --- | --- |", *rows])


# ---- advisories


def install_pip_audit(environment: Path) -> str | None:
    """pip-audit in an environment of its own; returns why not."""
    python = environment / "bin" / "python"
    if python.exists() and not subprocess.run([python, "-m", "pip_audit", "--version"], capture_output=True).returncode:
        return None
    venv.create(environment, with_pip=True, clear=True)
    command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "pip-audit>=2.7"]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else last_line(done.stderr) or "pip failed"


def last_line(text: str) -> str:
    """What a program said last."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def advisories(environment: Path, found: list[Package]) -> tuple[list[str] | None, str]:
    """Known advisories, one a line, and a word about where they come from; None where nobody could be asked."""
    if why := install_pip_audit(environment):
        return None, f"pip-audit cannot be installed: {why}"
    with tempfile.TemporaryDirectory() as folder:
        pinned = Path(folder) / "installed.txt"
        # a build's own mark ("+cpu") is no part of what advisories speak of
        pinned.write_text("".join(f"{p.name}=={p.version.partition('+')[0]}\n" for p in found), encoding="utf-8")
        reasons = []
        for service in SERVICES:
            command = [
                environment / "bin" / "python",
                "-m",
                "pip_audit",
                "-r",
                pinned,
                "--no-deps",
                "--disable-pip",
                "-s",
                service,
            ]
            done = subprocess.run([*command, "-f", "json", "--progress-spinner", "off"], capture_output=True, text=True)
            try:
                told = json.loads(done.stdout)["dependencies"]
            except (ValueError, KeyError, TypeError):
                reasons.append(f"{service}: {last_line(done.stderr)[:160]}")
                continue
            known = [one for one in told if "vulns" in one]
            if not known:  # a mirror of the index answers, and has no advisories
                reasons.append(f"{service} knows none of {len(told)} packages")
                continue
            lines = [
                f"{one['name']} {one['version']}: {v['id']}, mended in {', '.join(v['fix_versions']) or 'no release'}"
                for one in known
                for v in one["vulns"]
            ]
            return lines, f"{len(known)} of {len(told)} packages known to {service}"
    return None, f"no advisory service can be asked: {'; '.join(reasons)}"


def main() -> int:
    """Both parts."""
    parser = argparse.ArgumentParser(description="Licences and known advisories of what is installed.")
    parser.add_argument("--environment", type=Path, default=ROOT / ".venv-audit", help="where pip-audit goes")
    parser.add_argument("--out", type=Path, help="write the table of licences there, too")
    options = parser.parse_args()
    found = packages()
    print(table(found))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(table(found) + "\n", encoding="utf-8")
    refused = [package for package in found if not package.accepted]
    for package in refused:
        print(
            f"licence: {package.name} {package.version}: {package.licence or 'not stated'} is not on the list of tools/audit.py"
        )
    print(f"licences: {len(found)} packages, {len(refused)} not accepted")
    known, where = advisories(options.environment, found)
    if known is None:
        print(f"advisories: skipped: {where}")
    else:
        print("\n".join([*(f"advisory: {line}" for line in known), f"advisories: {len(known)} known; {where}"]))
    return int(bool(refused or known))


if __name__ == "__main__":
    sys.exit(main())
