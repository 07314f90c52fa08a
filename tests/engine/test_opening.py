"""Engines by their names: what is accepted, and what is said without Ray."""

from __future__ import annotations

import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest

import engine_contract as contract
from manyarms.cli.app import main
from manyarms.engine import Local, checked_on, elsewhere, local, opened
from manyarms.errors import InvalidInput, MissingExtra


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *more: None if name == "ray" else found(name, *more))


def test_engines_have_names() -> None:
    for name in ("local", "ray", "ray://host", "ray://10.0.0.1:10001"):
        assert checked_on(name) == name
    assert not elsewhere("local") and elsewhere("ray")
    wrong: list[Any] = ["", "Ray", "spark", "ray:", "ray://", "ray://host:port", "ray://a b", "ray:\n//host", 3, None]
    for name in wrong:
        with pytest.raises(InvalidInput, match=r"^on: expected \"local\", \"ray\", \"ray://host:port\""):
            checked_on(name)


def test_an_engine_that_is_open_stays_so() -> None:
    with local(1) as engine:
        assert elsewhere(engine)
        with opened(engine) as same:
            assert same is engine
        assert dict(engine.map(contract.double, [1])) == {1: 2}
    with opened(workers=1) as another:
        assert isinstance(another, Local) and another.workers == 1


@pytest.mark.usefixtures("no_ray")
def test_without_ray_one_is_told_what_to_install() -> None:
    for name in ("ray", "ray://host:10001"):
        with (
            pytest.raises(MissingExtra, match=r"working on a cluster needs .*pip install 'manyarms\[ray\]'"),
            opened(name),
        ):
            pass


@pytest.mark.usefixtures("no_ray")
def test_a_command_without_ray_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "mets-synthetic", "--scale", "smoke", "--on", "ray", "--out", str(tmp_path / "out")])
    assert ended.value.code not in (0, None) and "pip install 'manyarms[ray]'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "mets-synthetic", "--scale", "smoke", "--on", "spark", "--out", str(tmp_path / "out")])
    assert ended.value.code not in (0, None) and "--on: expected" in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_nothing_of_ray_is_imported_by_what_does_not_use_it() -> None:
    code = (
        "import sys, manyarms, manyarms.engine, manyarms.rewards, manyarms.evaluation; assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)
