"""tools/audit.py: licences are read and judged here; advisories are `make audit`'s business alone, and need a network."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACE = importlib.util.spec_from_file_location("audit", ROOT / "tools" / "audit.py")
assert PLACE is not None and PLACE.loader is not None
audit = importlib.util.module_from_spec(PLACE)
sys.modules["audit"] = audit  # its dataclasses look there
PLACE.loader.exec_module(audit)


def about(*classifiers: str, **fields: str) -> Message:
    """Metadata of a package."""
    message = Message()
    for name, value in fields.items():
        message[name.replace("_", "-")] = value
    for classifier in classifiers:
        message["Classifier"] = f"License :: {classifier}"
    return message


@pytest.mark.parametrize(
    ("found", "licence"),
    [
        (about(License_Expression="MIT OR Apache-2.0"), "MIT OR Apache-2.0"),
        (
            about("OSI Approved :: MIT License", License="GPL-3.0"),
            "MIT",
        ),  # the field's short text is not one that we know
        (about(License="BSD 3-Clause License\n\nCopyright"), "BSD-3-Clause"),
        (about(License="Apache 2.0"), "Apache-2.0"),
        (about("OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)"), "MPL-2.0"),
        (about("OSI Approved", "OSI Approved :: BSD License"), "BSD"),
        (about("OSI Approved :: MIT License", "OSI Approved :: GNU General Public License v3 (GPLv3)"), ""),
        (about(License="x" * 500), ""),
        (about(), ""),
    ],
)
def test_a_licence_is_read_from_metadata(found: Message, licence: str) -> None:
    assert audit.licence_of(found) == licence


@pytest.mark.parametrize(
    ("expression", "accepted"),
    [
        ("MIT", True), ("GPL-3.0-only", False), ("MIT OR GPL-3.0-only", True), ("MIT AND GPL-3.0-only", False), ("", False),
        ("(MIT OR GPL-2.0-only) AND BSD-3-Clause", True), ("(MIT AND GPL-2.0-only) OR (ISC)", True), ("MPL-2.0", False),
        ("Apache-2.0 WITH LLVM-exception AND MIT", True), ("((MIT))", True), ("(MIT) AND (AGPL-3.0-only)", False),
    ],
)  # fmt: skip
def test_an_expression_is_met_by_accepted_licences_alone(expression: str, accepted: bool) -> None:
    assert audit.is_accepted(expression, audit.ACCEPTED) is accepted


def test_what_tests_need_may_have_a_licence_that_stays_with_its_files() -> None:
    assert audit.Package("hypothesis", "6", "MPL-2.0", tool=True).accepted
    assert not audit.Package("somebody", "1", "MPL-2.0", tool=False).accepted


def test_what_is_installed_here_is_accepted() -> None:
    found = {audit.normal(package.name): package for package in audit.packages()}
    assert {"numpy", "scipy", "pytest", "torch"} <= found.keys() and "manyarms" not in found
    assert not found["numpy"].tool and found["pytest"].tool
    assert [f"{p.name}: {p.licence}" for p in found.values() if not p.accepted] == []


def answers(monkeypatch: Any, **by_service: tuple[str, str]) -> None:
    """pip-audit, pretended: what it prints and says for each service."""

    def run(command: list[Any], **_: Any) -> SimpleNamespace:
        printed, said = by_service[command[command.index("-s") + 1]]
        return SimpleNamespace(stdout=printed, stderr=said, returncode=1)

    monkeypatch.setattr(audit, "install_pip_audit", lambda environment: None)
    monkeypatch.setattr(subprocess, "run", run)


PACKAGES = [audit.Package("torch", "2.13.0+cpu", "MIT", tool=False)]
NOT_FOUND = '{"dependencies": [{"name": "torch", "skip_reason": "not found"}]}'


def test_no_service_is_no_error(monkeypatch: Any, tmp_path: Path) -> None:
    answers(monkeypatch, pypi=(NOT_FOUND, ""), osv=("", "Traceback\nConnectionError: no such host\n"))
    known, where = audit.advisories(tmp_path, PACKAGES)
    assert known is None and "pypi knows none of 1" in where and "no such host" in where
    monkeypatch.setattr(audit, "install_pip_audit", lambda environment: "no index")
    assert audit.advisories(tmp_path, PACKAGES) == (None, "pip-audit cannot be installed: no index")


def test_an_advisory_is_told(monkeypatch: Any, tmp_path: Path) -> None:
    told = '{"dependencies": [{"name": "torch", "version": "2.13.0", "vulns": [{"id": "CVE-1", "fix_versions": ["3.0"]}]}]}'
    answers(monkeypatch, pypi=(NOT_FOUND, ""), osv=(told, ""))
    assert audit.advisories(tmp_path, PACKAGES)[0] == ["torch 2.13.0: CVE-1, mended in 3.0"]
