"""Checkpoints that cannot be gone on from are refused before anything is learned, and so are places that cannot hold one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms._base import storage
from manyarms._base.typing import AnyArray
from manyarms.errors import InvalidInput, StorageError
from manyarms.estimators import LPI
from manyarms.logs import LoggedData
from manyarms.policies import Layers, SoftmaxPolicy

pytest.importorskip("torch")
from manyarms.learning import learn

K, D = 5, 3
WORDS = {"step": "3", "history": [{"epoch": 1}], "best_epoch": None, "stopped": 0}


def run(folder: Any, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    log = LoggedData(rng.normal(size=(60, D)), rng.integers(K, size=60), np.ones(60), K, np.full(60, 1 / K))
    encoder = Layers([np.eye(D), np.eye(D)], [np.zeros(D), np.zeros(D)])
    start = SoftmaxPolicy(rng.normal(size=(K, D)), encoder=encoder)
    settings: dict[str, Any] = {"epochs": 2, "batch": 30, "train": "both", "validation": 0.2, "patience": 5}
    return learn(log, start, LPI(), folder=folder, device="cpu", **{**settings, **options})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], dict[str, AnyArray]]:
    folder = tmp_path_factory.mktemp("run")
    run(folder)
    return folder, *storage.read(folder, "learning")


def test_a_spoiled_checkpoint_is_refused(saved: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, spec, arrays = saved
    accepted = []
    for name, array in arrays.items():
        spoiled: dict[str, AnyArray | None] = {"missing": None, "texts": array.astype("U8"), "more": array[None]}
        if array.dtype.kind == "f":
            spoiled["nan"] = np.full_like(array, np.nan)
        for how, bad in spoiled.items():
            changed = {key: value for key, value in arrays.items() if key != name}
            changed |= {} if bad is None else {name: bad}
            monkeypatch.setattr(storage, "read", lambda *_, changed=changed: (spec, changed))
            try:
                run(folder)
                accepted.append(f"{name}: {how}")
            except StorageError as error:
                assert str(folder) in str(error)
    assert not accepted


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize(
    "change", [lambda spec, name: spec.pop(name), lambda spec, name: spec.update({name: WORDS[name]})]
)
def test_a_checkpoint_that_says_nothing_sensible(
    saved: Any, name: str, change: Callable[[dict[str, Any], str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, spec, arrays = saved
    spec = dict(spec)
    change(spec, name)
    monkeypatch.setattr(storage, "read", lambda *_: (spec, arrays))
    with pytest.raises(StorageError, match="the saved run"):
        run(folder)


@pytest.mark.parametrize("folder", ["a\0b", "", 3, "\ud800"])
def test_no_path(folder: Any) -> None:
    with pytest.raises(InvalidInput, match="folder: expected a path"):
        run(folder)


@pytest.mark.parametrize("name", ["file", "file/inside", "x" * 300])
def test_a_folder_that_cannot_be_is_refused_before_the_first_step(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    def begun(_: object) -> None:
        raise AssertionError("the work has begun")

    with pytest.raises(StorageError, match="cannot be written"):
        run(tmp_path / name, progress=begun)
