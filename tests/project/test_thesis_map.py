"""docs/thesis.md maps the code to the thesis: every entry names something that is there, and docstrings name no lines."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `([\w.]+)` \| .+ \| .+ \|$", re.MULTILINE)


def _names(module: Path) -> set[str]:
    """The qualified names of classes, functions and constants in a file."""
    found: set[str] = set()

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                found.add(prefix + child.name)
                walk(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.Assign | ast.AnnAssign):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                found.update(prefix + target.id for target in targets if isinstance(target, ast.Name))

    walk(ast.parse(module.read_text()), "")
    return found


def _file_of(path: str) -> tuple[Path, str]:
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT / "src" / Path(*parts[:length])
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                return file, ".".join(parts[length:])
    raise LookupError(path)


def test_every_entry_names_code_that_is_there() -> None:
    entries = ROW.findall((ROOT / "docs" / "thesis.md").read_text())
    assert len(entries) > 200
    wrong = []
    for entry in entries:
        file, rest = _file_of(entry)
        if rest and rest not in _names(file):
            wrong.append(entry)
    assert not wrong


def test_docstrings_cite_sections_and_not_lines() -> None:
    cited = re.compile(r"[Tt]hesis(,|'s)? lines? \d|\blines? [1-6]\d{3}\b")
    places = [f"{file.relative_to(ROOT)}" for file in (ROOT / "src").rglob("*.py") if cited.search(file.read_text())]
    assert not places
