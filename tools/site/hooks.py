"""What the manual needs beside MkDocs and its plugins; mkdocs.yml names this file.

- Pages of the repository that are no part of docs/ (ARCHITECTURE.md and others) are pages of the site, and links between the two
  lead from page to page. A link to any other file of the repository becomes its name; one to nothing is an error.
- Reference pages list the public names of a topic: docs/reference/TOPIC.md has an introduction, the names come from `__all__`.
- Formulas are MathML when the site is built: no script draws them.
"""

from __future__ import annotations

import ast
import html
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parents[2]
log = logging.getLogger("mkdocs.hooks.manyarms")
# what is outside docs/, and where the site has it
ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "examples/extending/README.md": "project/extending.md",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """The pages from outside docs/ join the others."""
    from mkdocs.structure.files import File

    for source, page in ELSEWHERE.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between docs/ and the rest; the names of a topic."""
    uri = page.file.src_uri
    origin = next(
        (source for source, there in ELSEWHERE.items() if there == uri and there != "index.md"), f"docs/{uri}"
    )
    markdown = outside_code(markdown, lambda text: LINK.sub(lambda link: relinked(link, origin, uri), text))
    makers = {"everyday names": everyday_names, "commands": commands, "experiments": experiments}
    for mark, make in makers.items():
        if f"<!-- {mark} -->" in markdown:
            markdown = markdown.replace(f"<!-- {mark} -->", make())
    return re.sub(r"^<!-- names: (\S+) -->$", lambda found: entries(found[1]), markdown, flags=re.MULTILINE)


def outside_code(markdown: str, change: Any) -> str:
    """`change` applied to everything but blocks of code."""
    parts, end = [], 0
    for block in FENCE.finditer(markdown):
        parts += [change(markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(markdown[end:])])


def relinked(link: re.Match[str], origin: str, uri: str) -> str:
    """One link of a page that is `origin` in the repository and `uri` in the site."""
    picture, text, target = link.groups()
    path, mark, anchor = target.partition("#")
    if re.match(r"[a-z]+:", target) or not path:
        return link[0]
    there = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    if there in ELSEWHERE:
        there = ELSEWHERE[there]
    elif there.startswith("docs/") and there.endswith((".md", ".svg", ".png")):
        there = there.removeprefix("docs/")
    elif (ROOT / there).exists():
        return f"`{there}`" if text in (there, Path(there).name) else f"{text} (`{there}` in the repository)"
    else:
        log.warning(f"{origin} links to {target}, which is nowhere in the repository")
        return text
    return f"{picture}[{text}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{mark}{anchor})"


def public_names(module: str) -> list[str]:
    """`__all__` of a module, read without importing it."""
    source = ROOT / "src" / Path(*module.split(".")) / "__init__.py"
    if not source.exists():
        source = source.parent.with_suffix(".py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return sorted(ast.literal_eval(node.value), key=str.lower)
    log.warning(f"{module} has no __all__")
    return []


def entries(module: str) -> str:
    """An entry for each public name of a topic."""
    return "\n\n".join(f"::: {module}.{name}" for name in public_names(module))


def everyday_names() -> str:
    """The names of the package itself, with links to their entries."""
    topics = {path.stem: public_names(f"manyarms.{path.stem}") for path in topic_pages()}
    lines = ["| name | topic |", "| --- | --- |"]
    for name in public_names("manyarms"):
        topic = next((topic for topic, names in topics.items() if name in names), None)
        if topic:
            lines.append(f"| [`ma.{name}`][manyarms.{topic}.{name}] | [`ma.{topic}`]({topic}.md) |")
    return "\n".join(lines) + "\n\n::: manyarms._base.storage.load\n"


def topic_pages() -> list[Path]:
    """The pages that list a topic."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return [page for page in pages if "<!-- names: " in page.read_text(encoding="utf-8")]


def commands() -> str:
    """Every command with its arguments and options, as its own help has them."""
    import typer.main

    from manyarms.cli.app import app

    program: Any = typer.main.get_command(app)
    parts = []
    for name, command in program.commands.items():
        # two spaces in front: lines that stay as they are
        text = re.sub(r"^  (?=\S)", "      ", command.help or "", flags=re.MULTILINE)
        parts += [f"## manyarms {name}", text, "| option | meaning | default |", "| --- | --- | --- |"]
        parts[-2:] = ["\n".join([*parts[-2:], *(option_row(one) for one in command.params if not one.hidden)])]
    return "\n\n".join(parts)


def experiments() -> str:
    """Every experiment that can be reproduced, with what it shows and how large it is."""
    from manyarms_thesis.catalogue import catalogue

    lines = ["| experiment | what it shows | remarks |", "| --- | --- | --- |"]
    for name, experiment in catalogue().items():
        remark = (experiment.remarks or ("",))[0]
        lines.append("| " + " | ".join([f"`{name}`", cell(experiment.title), cell(remark)]) + " |")
    return "\n".join(lines)


def cell(text: str) -> str:
    """A text as a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def option_row(option: Any) -> str:
    """An argument or option as a row of a table."""
    argument = option.param_type_name == "argument"
    name = option.metavar or option.name.upper() if argument else ", ".join([*option.opts, *option.secondary_opts])
    default = option.show_default if isinstance(option.show_default, str) else option.default
    shown = (
        "" if default is None or default is False or default == () or (argument and option.required) else f"{default}"
    )
    cells = [f"`{name}`", option.help or "", shown]
    return "| " + " | ".join(map(cell, cells)) + " |"


def on_page_content(content: str, **_: Any) -> str:
    """LaTeX between the marks of Arithmatex becomes MathML."""

    def inline(found: re.Match[str]) -> str:
        return formula(found[1], "inline")

    def block(found: re.Match[str]) -> str:
        return f'<div class="arithmatex">{formula(found[1], "block")}</div>'

    content = re.sub(r'<span class="arithmatex">\\\((.*?)\\\)</span>', inline, content, flags=re.DOTALL)
    return re.sub(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', block, content, flags=re.DOTALL)


def formula(latex: str, display: str) -> str:
    """MathML of a formula. Limits stand beside their sums: above and below they overlap without a mathematical font."""
    made: str = convert(html.unescape(latex), display=display)
    return made.replace("munderover", "msubsup").replace("munder>", "msub>")
