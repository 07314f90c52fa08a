"""`ma.load` gives back whatever was saved, by the kind in its manifest; nothing else is ever called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyarms as ma
from manyarms._base import storage
from manyarms.errors import StorageError
from manyarms.logs import Actions, Encoding, LoggedData, Schema
from manyarms.policies import FixedPolicy, SoftmaxPolicy, UniformPolicy


def saved_things() -> dict[str, Any]:
    prior = ma.HierarchicalPrior(3, np.zeros(2), np.eye(2), np.eye(2))
    return {
        "agent": ma.HierTS(prior, seed=0),
        "policy": SoftmaxPolicy(np.arange(6.0).reshape(3, 2)),
        "actions": Actions(["x", "y"]),
        "encoder": Encoding().fit({"age": [20.0, 40.0]}, ["age"]),
    }


@pytest.mark.parametrize("kind", list(saved_things()))
def test_whatever_was_saved_comes_back(kind: str, tmp_path: Path) -> None:
    thing = saved_things()[kind]
    thing.save(tmp_path)
    again = ma.load(tmp_path)
    assert type(again) is type(thing)
    assert type(ma.load(tmp_path, type(thing))) is type(thing)
    with pytest.raises(StorageError, match=f"holds a {type(thing).__name__}, expected UniformPolicy"):
        ma.load(tmp_path, UniformPolicy)
    if kind == "policy":
        np.testing.assert_array_equal(again.actions, thing.actions)


def test_the_schema_of_a_log_travels_with_what_was_learned(tmp_path: Path) -> None:
    encoder = Encoding().fit({"age": [20.0, 40.0]}, ["age"])
    log = LoggedData(np.ones((2, 2)), [0, 1], [0.0, 1.0], 2, catalogue=Actions(["x", "y"]), encoder=encoder)
    policy = FixedPolicy([0.25, 0.75])
    policy.schema = log.schema
    policy.save(tmp_path / "policy")
    again = ma.load(tmp_path / "policy")
    assert again.decide({"age": 30.0}) == "y" and again.propensity({"age": 30.0}, "x") == 0.25
    schema = again.schema
    assert schema.catalogue == log.catalogue and schema.encoder is not None and schema.encoder.names == encoder.names
    FixedPolicy([0.5, 0.5]).save(tmp_path / "bare")
    assert ma.load(tmp_path / "bare").schema == Schema()
    assert {path.suffix for path in (tmp_path / "policy").iterdir()} == {".json", ".npz"}  # one save, nothing beside it


def test_a_kind_of_ones_own(tmp_path: Path) -> None:
    @storage.LOADERS.register("a kind of this test")
    def restore(spec: dict[str, storage.JSON], arrays: dict[str, Any]) -> list[float]:
        return [spec["scale"] * value for value in arrays["x"].tolist()]

    try:
        storage.save(tmp_path, "a kind of this test", {"scale": 2}, {"x": np.arange(3)})
        assert ma.load(tmp_path) == ma.load(tmp_path, list) == [0, 2, 4]
    finally:
        del storage.LOADERS._parts["a kind of this test"]
    with pytest.raises(StorageError, match="a kind of this test"):
        ma.load(tmp_path)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    storage.save(tmp_path, "os.system", {"command": "true"}, {})
    with pytest.raises(StorageError, match=r"nothing here can load.*'os\.system'"):
        ma.load(tmp_path)


def test_folders_of_another_format_version_are_refused(tmp_path: Path) -> None:
    """What 0.1 wrote has version 1; it is named before anything else is looked at."""
    UniformPolicy(3).save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["version"] == 4
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"version": 1}))
    with pytest.raises(
        StorageError, match=r"format version 1, .* reads version 4. Load it with the release that wrote it"
    ):
        ma.load(tmp_path)
