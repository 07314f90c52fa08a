"""Vowpal Wabbit's decision-service lines: the chosen action, its cost and probability, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manyarms.errors import DataError, InvalidInput
from manyarms.logs import Actions, Encoding, read_dsjson


def line(**changes: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "_labelIndex": 1, "Version": "1",
        "EventId": "e1", "Timestamp": "2024-02-03T04:05:06.5000000Z", "a": [2, 1, 3], "p": [0.8, 0.15, 0.05],
        "c": {
            "user": {"age": 30, "town": "Ulm", "_ignored": 5}, "hour": [1, 2],
            "_multi": [{"_tag": "pear", "f": {"x": 1}}, {"_tag": "fig"}, {"_tag": "plum"}],
        },
    }  # fmt: skip
    return told | changes


def write(folder: Path, *lines: dict[str, Any] | str) -> Path:
    path = folder / "log.dsjson"
    path.write_text("".join((told if isinstance(told, str) else json.dumps(told)) + "\n" for told in lines))
    return path


def test_a_round_is_read(tmp_path: Path) -> None:
    other = line(_label_cost=0.5, _label_probability=0.05, _label_Action=3, _labelIndex=2, EventId="e2", a=[3, 1, 2])
    other["p"] = [0.05, 0.15, 0.8]
    other["c"] = {"user": {"town": "Bonn"}, "_multi": [{"_tag": "fig"}, {"_tag": "kiwi"}, {"_tag": "pear"}]}
    log = read_dsjson(write(tmp_path, line(), other))
    assert list(log.catalogue or ()) == ["pear", "fig", "plum", "kiwi"]
    np.testing.assert_array_equal(log.actions, [1, 0])
    np.testing.assert_array_equal(log.rewards, [1.0, -0.5])
    np.testing.assert_array_equal(log.propensities, [0.8, 0.05])
    np.testing.assert_array_equal(log.support, [[1, 0, 2], [0, 1, 3]])
    np.testing.assert_allclose(log.support_probabilities, [[0.8, 0.15, 0.05], [0.05, 0.15, 0.8]])
    assert log.encoder is not None
    names = ["user.age", "user.town=Bonn", "user.town=Ulm", "user.town: other", "hour[0]", "hour[1]"]
    assert log.encoder.names == names
    np.testing.assert_array_equal(log.contexts, [[30, 0, 1, 0, 1, 2], [0, 1, 0, 0, 0, 0]])  # absent numbers are 0
    assert log.event_ids is not None and log.event_ids.tolist() == ["e1", "e2"]
    assert log.timestamps is not None and str(log.timestamps[0]) == "2024-02-03T04:05:06.500000"


def test_gzipped_with_a_given_catalogue_and_encoder(tmp_path: Path) -> None:
    first = read_dsjson(write(tmp_path, line()), encoder=Encoding())
    (tmp_path / "log.json.gz").write_bytes(gzip.compress((json.dumps(line()) + "\n\n").encode()))
    again = read_dsjson(tmp_path / "log.json.gz", catalogue=first.catalogue, encoder=first.encoder)
    np.testing.assert_array_equal(again.contexts, first.contexts)
    with pytest.raises(DataError, match=r"line 1: the action 'fig' is not in the catalogue"):
        read_dsjson(tmp_path / "log.json.gz", catalogue=Actions(["pear", "plum"]))


def test_actions_without_tags_are_told_by_id_or_by_their_features(tmp_path: Path) -> None:
    told = line(c={"_multi": [{"i": {"id": "one"}}, {"id": 7}, {"f": 2}]})
    assert list(read_dsjson(write(tmp_path, told)).catalogue or ()) == ["one", "7", '{"f":2}']
    assert list(read_dsjson(write(tmp_path, told), identity="position").catalogue or ()) == ["0", "1", "2"]
    with pytest.raises(DataError, match="no _tag"):
        read_dsjson(write(tmp_path, told), identity="tag")
    same = line(c={"_multi": [{"f": 2}, {"f": 2}, {"f": 3}]})
    with pytest.raises(DataError, match="offered twice"):
        read_dsjson(write(tmp_path, same))


def test_ragged_action_sets(tmp_path: Path) -> None:
    short = line(a=[2, 1], p=[0.8, 0.2], c={"_multi": [{"_tag": "plum"}, {"_tag": "pear"}]})
    path = write(tmp_path, line(), short)
    with pytest.raises(InvalidInput, match=r'3, as at line 1; ragged="drop".*2 actions offered at line 2'):
        read_dsjson(path)
    dropped = read_dsjson(path, ragged="drop")
    assert dropped.support is None
    assert "between 2 and 3 actions were offered; the support was left out" in dropped.notes
    padded = read_dsjson(path, ragged="pad")
    np.testing.assert_array_equal(padded.support, [[1, 0, 2], [0, 2, 1]])
    np.testing.assert_allclose(padded.support_probabilities, [[0.8, 0.15, 0.05], [0.8, 0.2, 0]])


def test_rounds_not_meant_for_learning_are_left_out(tmp_path: Path) -> None:
    log = read_dsjson(write(tmp_path, line(), line(_skipLearn=True), line(pdrop=0.0)))
    assert len(log) == 2
    assert any("_skipLearn" in note for note in log.notes)
    assert any("pdrop = 0.3" in note for note in read_dsjson(write(tmp_path, line(pdrop=0.3))).notes)
    with pytest.raises(InvalidInput, match="different pdrop"):
        read_dsjson(write(tmp_path, line(pdrop=0.3), line()))
    mismatch = read_dsjson(write(tmp_path, line(_label_probability=0.7)))
    assert any("_label_probability is not what p says" in note for note in mismatch.notes)
    np.testing.assert_array_equal(mismatch.propensities, [0.7])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_label_cost": None}, "_label_cost is None"),
        ({"_label_cost": "high"}, "_label_cost"),
        ({"_label_probability": 0.0}, "_label_probability is 0"),
        ({"_label_probability": 1.5}, "_label_probability is 1.5"),
        ({"_labelIndex": 0}, "do not name the same action"),
        ({"_label_Action": 0, "_labelIndex": 1}, "_label_Action is 0"),
        ({"a": [1, 2]}, "same length"),
        ({"a": [2, 2, 3]}, "each of the 3 actions"),
        ({"p": [0.8, 0.15, 0.5]}, "p sums to 1.45"),
        ({"p": [0.8, -0.1, 0.3]}, "probabilities"),
        ({"c": {}}, "no actions"),
        ({"c": {"_multi": [5]}}, "no JSON object"),
        ({"_outcomes": []}, "several decisions"),
        ({"c": {"_slots": [], "_multi": [{}]}}, "several decisions"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=rf"line 2: .*{message}"):
        read_dsjson(write(tmp_path, line(), line(**changes)))


def test_broken_files_are_refused(tmp_path: Path) -> None:
    for text, message in (("", "no round"), ("{", "line 1: not valid JSON"), ("[1]\n", "not a JSON object")):
        with pytest.raises(DataError, match=message):
            read_dsjson(write(tmp_path, text))
    mixed = line()
    mixed["c"] = {**mixed["c"], "user": {"age": "thirty"}}
    with pytest.raises(InvalidInput, match=r"'user\.age'.*'thirty' at line 2"):
        read_dsjson(write(tmp_path, line(), mixed))
    with pytest.raises(InvalidInput, match="ragged"):
        read_dsjson(write(tmp_path, line()), ragged="cut")  # type: ignore[arg-type]


def test_lines_that_do_not_say_what_else_was_offered(tmp_path: Path) -> None:
    told = line()
    del told["a"], told["p"], told["Timestamp"], told["EventId"]
    log = read_dsjson(write(tmp_path, told))
    assert log.support is None and log.timestamps is None
    np.testing.assert_array_equal(log.actions, [1])
