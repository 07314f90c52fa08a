"""What a release promises: one version everywhere, bounds that are tested, and a check that sees what is wrong with the files."""

from __future__ import annotations

import email
import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
METADATA = """Metadata-Version: 2.4
Name: manyarms
Version: 1.2.3
Summary: Contextual bandits
Author: The manyarms authors
License-Expression: Apache-2.0
License-File: LICENSE
Keywords: bandits
Classifier: Programming Language :: Python :: 3.11
Requires-Python: >=3.11
Description-Content-Type: text/markdown
Requires-Dist: numpy>=2.0
Requires-Dist: torch>=2.4; extra == "torch"

# manyarms
"""
WHEEL = [
    "manyarms/__init__.py", "manyarms/py.typed", "manyarms_thesis/__init__.py", "manyarms_thesis/py.typed",
    "manyarms/certificates/testing_bounds.py", "manyarms-1.2.3.dist-info/METADATA",
    "manyarms-1.2.3.dist-info/licenses/LICENSE",
    *(f"manyarms/service/dashboard/{path.name}" for path in (ROOT / "src/manyarms/service/dashboard").glob("*.*")),
]  # fmt: skip


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("release_check")


def test_one_version_everywhere(check: ModuleType) -> None:
    version = check.version_of(PYPROJECT)
    assert check.wrong_with_the_version(PYPROJECT, CHANGELOG, version) == []


def test_the_citation_is_of_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    told = dict(re.findall(r"^([a-z-]+): (.+)$", citation, re.MULTILINE))
    project = tomllib.loads(PYPROJECT)["project"]
    assert told["cff-version"] == "1.2.0" and told["type"] == "software" and told["title"] == project["name"]
    assert told["version"] == project["version"] and told["license"] == project["license"]
    assert [f'"{one["name"]}"' for one in project["authors"]] == re.findall(r"^  - name: (.+)$", citation, re.MULTILINE)


def test_no_address_of_the_project_is_invented() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "urls" not in tomllib.loads(PYPROJECT)["project"]
    assert not re.search(r"https?:|doi|repository", citation)


def test_a_version_that_differs_is_seen(check: ModuleType) -> None:
    project = '[project]\nversion = "1.2.3"\n'
    log = "# Changelog\n\n## [1.2.3] - 2030-01-31\n\n- Something.\n\n## [1.2.2]\n\n- More.\n"
    assert check.wrong_with_the_version(project, log, "1.2.3") == []
    assert check.top_of(log) == ("1.2.3", "2030-01-31", "- Something.")
    assert check.top_of("# Changelog\n") == ("", "", "")
    for pyproject, changelog, installed in [
        (project, log, "1.2.2"),
        (project.replace("1.2.3", "1.2.4"), log, "1.2.4"),
        (project.replace("1.2.3", "1.2"), log.replace("1.2.3", "1.2"), "1.2"),
        (project, log.replace("- Something.", ""), "1.2.3"),
        (project, "# Changelog\n", "1.2.3"),
    ]:
        assert check.wrong_with_the_version(pyproject, changelog, installed)


def test_a_wheel_has_both_packages_and_nothing_else(check: ModuleType) -> None:
    assert check.wrong_with_the_wheel(WHEEL) == []
    for more in ("tests/test_x.py", "manyarms/tests/x.py", "manyarms/test_x.py", "other/x.py", "manyarms/x.pyc"):
        assert check.wrong_with_the_wheel([*WHEEL, more]), more
    for name in [*WHEEL[:4], *WHEEL[6:]]:
        assert check.wrong_with_the_wheel([other for other in WHEEL if other != name]), name


def test_every_file_of_the_dashboard_is_a_file_of_the_package() -> None:
    """A picture or a script of a new kind would be missing in the wheel, and in nothing that is run from the tree."""
    patterns = tomllib.loads(PYPROJECT)["tool"]["setuptools"]["package-data"]["manyarms.service.dashboard"]
    files = [path for path in (ROOT / "src/manyarms/service/dashboard").iterdir() if path.is_file()]
    assert {"index.html", "app.js", "style.css"} <= {path.name for path in files}
    for path in files:
        assert path.suffix == ".py" or any(path.match(pattern) for pattern in patterns), path.name


def test_a_source_distribution_can_be_built_from(check: ModuleType) -> None:
    names = [
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "src/manyarms/py.typed",
        "src/manyarms_thesis/py.typed",
    ]
    assert check.wrong_with_the_source([f"manyarms-1.2.3/{name}" for name in names]) == []
    assert check.wrong_with_the_source([f"manyarms-1.2.3/{name}" for name in names[1:]])


def test_metadata_that_an_index_would_refuse_are_seen(check: ModuleType) -> None:
    assert check.wrong_with_the_metadata(email.message_from_string(METADATA), "1.2.3") == []
    for old, new in [
        ("Version: 1.2.3", "Version: 1.2.4"),
        ("Apache-2.0", "MIT"),
        ("Summary: Contextual bandits\n", ""),
        (">=3.11", ">=3.12"),
        ("Python :: 3.11", "Python :: 3.11\nClassifier: License :: OSI Approved"),
        ("Python :: 3.11", "Python :: 3.11\nClassifier: Programming Language"),
        ("numpy>=2.0", "numpy"),
        ("numpy>=2.0", "numpy @ file:numpy.whl"),
        ("# manyarms", ""),
    ]:
        assert check.wrong_with_the_metadata(email.message_from_string(METADATA.replace(old, new)), "1.2.3"), new


def test_the_lowest_dependencies_are_those_that_are_tested() -> None:
    """constraints-lowest.txt is the lower bounds of pyproject.toml; torch is the release of constraints.txt in both."""
    project = tomllib.loads(PYPROJECT)["project"]
    extras = project["optional-dependencies"]
    wanted = {}
    for requirement in [
        *project["dependencies"],
        *(r for name in ("experiments", "frames", "sklearn", "faiss", "postgresql") for r in extras[name]),
        *(r for name in ("service", "client") for r in extras[name]),
        *(r for r in extras["test"] if r.startswith(("schemathesis", "playwright"))),  # they drive the service
    ]:
        name, lowest = re.sub(r"\[.*\]|;.*", "", requirement).split(">=")
        wanted[name] = lowest + ".0" * (2 - lowest.count("."))

    def pinned(name: str) -> dict[str, str]:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        return dict(line.split("==") for line in lines if line and not line.startswith("#"))

    found = pinned("constraints-lowest.txt")
    assert found.pop("torch") == pinned("constraints.txt")["torch"]
    assert found == wanted


def test_no_file_of_the_project_names_a_place_on_somebodys_machine() -> None:
    files = ["Makefile", "pyproject.toml", "constraints.txt", "constraints-lowest.txt", ".ci/run"]
    for name in files:
        assert not re.search(
            r"index-url|find-links|/home/|/root/|https?://(?!pypi|127\.0\.0\.1|localhost)", (ROOT / name).read_text()
        ), name
