"""A real Ray runtime on this machine, one for all tests; they are slow, and skipped without Ray."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manyarms.cli.app import main
from manyarms.engine import Engine, opened

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before slow tests are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("ignore:::ray"))  # what Ray says of its own modules


@pytest.fixture(scope="session")
def ray_engine() -> Iterator[Engine]:
    """An engine of two workers, which find the modules of tests."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(HERE.parents[1]), prepend=os.pathsep)
        patch.delenv("RAY_ADDRESS", raising=False)
        with opened("ray", workers=2) as engine:
            yield engine


@pytest.fixture
def command() -> Callable[..., None]:
    """Gives a command, which must succeed."""

    def given(*words: object) -> None:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        assert ended.value.code == 0, words

    return given
