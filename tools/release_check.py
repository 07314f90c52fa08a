"""Is this tree a release? Says what is wrong, one line each; the exit code is 1 where something is.

python tools/release_check.py

The version is the same in pyproject.toml, at the top of CHANGELOG.md and in the installed package; a source distribution is
built, and the wheel from it, as a stranger would; both hold what they should; and the wheel works in an empty environment,
without any extra. Needs pip and what pip can reach.
"""

from __future__ import annotations

import email
import email.message
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("manyarms", "manyarms_thesis")
# the page of the service: what is not Python gets in by a list in pyproject.toml
DASHBOARD = sorted(
    path.relative_to(ROOT / "src").as_posix()
    for path in (ROOT / "src/manyarms/service/dashboard").iterdir()
    if path.is_file() and path.suffix != ".pyc"
)
# pip's own chatter is not the release's business
PIP = ("-m", "pip", "install", "-qq", "--disable-pip-version-check")
BUILD = """
import sys
from setuptools import build_meta
print(getattr(build_meta, "build_" + sys.argv[1])(sys.argv[2]))
"""
IN_AN_EMPTY_ENVIRONMENT = """
import json, pydoc
import manyarms as ma
import manyarms_thesis
agent = ma.LinTS(ma.ActionPrior(5, [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]]), seed=0)
action = agent.decide([1.0, 0.5])
agent.observe([1.0, 0.5], action, 1.0)
pydoc.render_doc(ma)  # help(ma) needs no extra
print(json.dumps({"version": ma.__version__, "file": ma.__file__}))
"""
COMMANDS = """
import json
from manyarms.cli.commands import COMMANDS
print(json.dumps(list(COMMANDS)))
"""
# extras, and something that needs each
MISSING = ("client", "experiments", "faiss", "frames", "postgresql", "service", "torch")
ASK_FOR_EXTRAS = """
import numpy as np
import manyarms as ma
log = ma.LoggedData(np.ones((2, 1)), np.array([0, 1]), np.ones(2), 2, np.full(2, 0.5))
for ask in (
    lambda: ma.learn(log, ma.SoftmaxPolicy(np.zeros((2, 1))), ma.cLPI()),
    lambda: ma.logs.to_parquet(log, "log.parquet"),
    lambda: ma.logs.to_pandas(log),
    lambda: ma.policies.FaissIndex(np.eye(2)),
    lambda: ma.live.open("postgresql://127.0.0.1/shop", ma.agents.UniformAgent(2, 1)),
    lambda: ma.service.create_app,
    lambda: ma.client.Client("http://localhost"),
):
    try:
        ask()
    except ma.errors.MissingExtra as error:
        print(error)
"""


# ---- what the tree says


def version_of(pyproject: str) -> str:
    """The version in pyproject.toml."""
    found: str = tomllib.loads(pyproject)["project"]["version"]
    return found


def top_of(changelog: str) -> tuple[str, str, str]:
    """The uppermost section of a changelog: its version, what stands behind it (a date), and its text."""
    headings = list(re.finditer(r"^## \[([^\]]+)\](.*)$", changelog, re.MULTILINE))
    if not headings:
        return "", "", ""
    end = headings[1].start() if len(headings) > 1 else len(changelog)
    return headings[0][1], headings[0][2].strip(" -"), changelog[headings[0].end() : end].strip()


def wrong_with_the_version(pyproject: str, changelog: str, installed: str) -> list[str]:
    """What does not agree on the version."""
    version, (top, _, text) = version_of(pyproject), top_of(changelog)
    wrong = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        wrong.append(f"pyproject.toml: version {version} is not of the form 1.2.3")
    if top != version:
        wrong.append(f"CHANGELOG.md: the section on top is {top!r}, and the version is {version}")
    if not re.search(r"^- ", text, re.MULTILINE):
        wrong.append(f"CHANGELOG.md: the section {top!r} says nothing")
    if installed != version:
        wrong.append(f"installed is {installed}, and the version is {version}: make setup installs it anew")
    return wrong


# ---- what was built


def wrong_with_the_wheel(names: list[str]) -> list[str]:
    """What is missing in a wheel, or should not be there."""
    tops = {name.split("/")[0] for name in names}
    info = {top for top in tops if top.endswith(".dist-info")}
    wrong = [f"wheel: no {package}/py.typed" for package in PACKAGES if f"{package}/py.typed" not in names]
    wrong += [f"wheel: no {package}/__init__.py" for package in PACKAGES if f"{package}/__init__.py" not in names]
    wrong += [f"wheel: no {name}" for name in DASHBOARD if name not in names]
    wrong += [f"wheel: {top} has no place in it" for top in sorted(tops - info - set(PACKAGES))]
    wrong += [f"wheel: {name} is a test" for name in names if re.search(r"(^|/)(tests?/|test_|conftest)", name)]
    wrong += [f"wheel: {name} is left from a run" for name in names if "__pycache__" in name or name.endswith(".pyc")]
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        wrong.append("wheel: no LICENSE")
    return wrong


def wrong_with_the_source(names: list[str]) -> list[str]:
    """What is missing in a source distribution: without these nobody can build from it."""
    inside = {name.partition("/")[2] for name in names}
    needed = [
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        *(f"src/{package}/py.typed" for package in PACKAGES),
    ]
    return [f"source distribution: no {name}" for name in needed if name not in inside]


def wrong_with_the_metadata(told: email.message.Message, version: str) -> list[str]:
    """What an index would refuse or show wrongly."""
    wrong = []
    wanted = {
        "Name": "manyarms", "Version": version, "License-Expression": "Apache-2.0", "License-File": "LICENSE",
        "Description-Content-Type": "text/markdown",
    }  # fmt: skip
    for name, value in wanted.items():
        if told[name] != value:
            wrong.append(f"metadata: {name} is {told[name]!r}, not {value!r}")
    for name in ("Metadata-Version", "Summary", "Author", "Keywords", "Requires-Python"):
        if not told[name]:
            wrong.append(f"metadata: no {name}")
    if "\n" in (told["Summary"] or ""):
        wrong.append("metadata: the summary has more than one line")
    if not str(told.get_payload()).strip().startswith("# "):
        wrong.append("metadata: the description does not start with a title")
    classifiers = told.get_all("Classifier") or []
    lowest = re.fullmatch(r">=(\d+\.\d+)", told["Requires-Python"] or "")
    if lowest is None or f"Programming Language :: Python :: {lowest[1]}" not in classifiers:
        wrong.append(f"metadata: Requires-Python is {told['Requires-Python']!r}, and no classifier names that release")
    wrong += [f"metadata: {c!r} is replaced by License-Expression" for c in classifiers if c.startswith("License ::")]
    wrong += [f"metadata: {c!r} is no classifier" for c in classifiers if not re.fullmatch(r"[^:]+( :: [^:]+)+", c)]
    if len(set(classifiers)) != len(classifiers):
        wrong.append("metadata: a classifier stands there twice")
    for requirement in told.get_all("Requires-Dist") or []:
        if "@" in requirement:
            wrong.append(f"metadata: {requirement!r} names a place, which an index refuses")
        elif "extra ==" not in requirement and ">=" not in requirement:
            wrong.append(f"metadata: {requirement!r} has no lower bound")
    return wrong


# ---- building, and an empty environment


def environment(folder: Path) -> Path:
    """A new virtual environment; its Python."""
    venv.create(folder, with_pip=True, symlinks=sys.platform != "win32")
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def output_of(what: str, *command: str | Path, cwd: Path) -> str:
    """What a program prints; an error with the last line that it says where it fails."""
    run = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if run.returncode:
        said = (run.stderr or run.stdout).strip().splitlines() or ["nothing"]
        raise RuntimeError(f"{what}: {said[-1]}")
    return run.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """The source distribution of this tree, and the wheel that is built from it, not from the tree."""
    python = environment(folder / "build")
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    output_of("installing what building needs", python, *PIP, *requires, cwd=folder)
    tree = folder / "tree"
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, tracked.split("\0")):  # nothing that only lies about here gets in
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes((ROOT / name).read_bytes())
    source = folder / output_of("building sources", python, "-c", BUILD, "sdist", folder, cwd=tree).splitlines()[-1]
    with tarfile.open(source) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    wheel = folder / output_of("building a wheel", python, "-c", BUILD, "wheel", folder, cwd=unpacked).splitlines()[-1]
    return source, wheel


def wrong_in_an_empty_environment(wheel: Path, version: str, folder: Path) -> list[str]:
    """The wheel alone, with nothing but what it requires: it imports, decides, explains itself, and has its command."""
    python = environment(folder / "empty")
    output_of("installing the wheel", python, *PIP, wheel, cwd=folder)
    output_of("pip check", python, "-m", "pip", "check", cwd=folder)
    answer = output_of("using the wheel", python, "-I", "-c", IN_AN_EMPTY_ENVIRONMENT, cwd=folder)
    told = json.loads(answer.splitlines()[-1])
    wrong = []
    if told["version"] != version:
        wrong.append(f"wheel: manyarms.__version__ is {told['version']}, not {version}")
    if not Path(told["file"]).is_relative_to(folder):
        wrong.append("wheel: another manyarms was imported than the one that was installed")
    return wrong + wrong_with_the_commands(python, version, folder)


def wrong_with_the_commands(python: Path, version: str, folder: Path) -> list[str]:
    """Without any extra: the version is told, every command explains itself, and what is missing is named with its extra."""
    command = python.with_name("manyarms.exe" if sys.platform == "win32" else "manyarms")
    wrong = []
    for said in ([command, "--version"], [command, "version"], [python, "-m", "manyarms", "--version"]):
        if version not in output_of("the version", *said, cwd=folder):
            wrong.append(f"wheel: `{' '.join(map(str, said[1:]))}` does not say {version}")
    names = json.loads(output_of("the commands", python, "-I", "-c", COMMANDS, cwd=folder))
    overview = output_of("manyarms --help", command, "--help", cwd=folder)
    wrong += [f"wheel: `manyarms --help` does not list {name}" for name in names if name not in overview]
    for name in names:
        if name not in output_of(f"manyarms {name} --help", command, name, "--help", cwd=folder):
            wrong.append(f"wheel: `manyarms {name} --help` does not name itself")
    told = output_of("manyarms version", command, "version", cwd=folder)
    wrong += [
        f"wheel: `manyarms version` does not say that [{extra}] is missing"
        for extra in (*MISSING, "sklearn")
        if f"manyarms[{extra}]" not in told
    ]
    refusals = output_of("asking for what is missing", python, "-I", "-c", ASK_FOR_EXTRAS, cwd=folder)
    wrong += [
        f"wheel: what needs [{extra}] does not say so" for extra in MISSING if f"manyarms[{extra}]" not in refusals
    ]
    return wrong


def main() -> int:
    """Everything, in order; a failure to build ends it."""
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = version_of(pyproject)
    wrong = wrong_with_the_version(pyproject, changelog, metadata.version("manyarms"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        try:
            source, wheel = build(folder)
            with tarfile.open(source) as archive:
                wrong += wrong_with_the_source(archive.getnames())
            with zipfile.ZipFile(wheel) as packed:
                names = packed.namelist()
                (where,) = (name for name in names if name.endswith(".dist-info/METADATA"))
                told = email.message_from_bytes(packed.read(where))
            wrong += wrong_with_the_wheel(names) + wrong_with_the_metadata(told, version)
            wrong += wrong_in_an_empty_environment(wheel, version, folder)
        except RuntimeError as error:
            wrong.append(str(error))
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", top_of(changelog)[1]):
        print(f"note: CHANGELOG.md gives {version} no date yet")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True).stdout.strip():
        print("note: there are changes that are not committed; what was built has them where git knows the file")
    print("\n".join(wrong) if wrong else f"release-check: {version} is ready")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
