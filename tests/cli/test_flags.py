"""Messages name flags: what the command line was told, not what the library calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from manyarms.cli import _flags, app
from manyarms.cli._flags import Flags
from manyarms.errors import InvalidInput, MissingExtra
from manyarms.logs import LoggedData, to_csv
from manyarms.policies import UniformPolicy

GROUP: Any = typer.main.get_command(app.app)


def flags_of(command: str) -> Flags:
    return Flags.of(GROUP.commands[command])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("flags")
    rng = np.random.default_rng(0)
    data = LoggedData(
        rng.normal(size=(40, 2)), rng.integers(3, size=40), rng.integers(2, size=40), 3, np.full(40, 1 / 3)
    )
    to_csv(data, folder / "log.csv")
    UniformPolicy(3).save(folder / "policy")
    return {"LOG": str(folder / "log.csv"), "POLICY": str(folder / "policy"), "OUT": str(folder / "out")}


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        app.main(list(words))
    said = capsys.readouterr().err
    assert ended.value.code == app.ERROR, said
    assert said.startswith("manyarms: ") and said.count("\n") == 1
    return said.removeprefix("manyarms: ")


@pytest.mark.parametrize("command", sorted(GROUP.commands))
def test_every_option_is_called_by_its_flag(command: str) -> None:
    flags = flags_of(command)
    for one in GROUP.commands[command].params:
        if one.param_type_name == "argument" or not one.expose_value:
            continue
        flag = max(one.opts, key=len)
        said = flags.error(InvalidInput(one.name, "what came", "what was expected"))
        assert flag in said.partition(": expected")[0], said
        said = flags.error(InvalidInput("something", "what came", f"what was expected (or `{one.name}`)"))
        assert flag in said


ARGUMENTS = {
    "evaluate": {
        "propensity_floor": "--floor",
        "reward_range": "--low, --high",
        "columns.action": "--action",
        "log": "LOG",
    },
    "compare": {
        "propensity_floor": "--floor",
        "reward_range": "--low, --high",
        "policy": "POLICY, --probabilities, --decisions",
    },
    "choose": {"propensity_floor": "--floor", "reward_range": "--low, --high", "columns.event_id": "--event-id"},
    "tune": {"family": "--estimator", "columns.reward": "--reward"},
    "certify": {"largest_reward": "--high", "two_sided": "--lower-only", "largest_group": "--largest-group"},
    "learn": {
        "learning_rate": "--learning-rate",
        "columns.timestamp": "--timestamp",
        "by": "--split-by",
        "k": "--neighbours",
    },
    "inspect": {"action_count": "--actions", "columns.propensity": "--propensity"},
}


@pytest.mark.parametrize("command", ARGUMENTS)
def test_arguments_that_an_option_stands_for(command: str) -> None:
    for argument, flag in ARGUMENTS[command].items():
        assert flags_of(command).error(InvalidInput(argument, "x", "y")) == f"{flag}: expected y, got x"


def test_texts_lose_python_and_keep_everything_else() -> None:
    flags = flags_of("evaluate")
    said = {
        "(drop_missing=True leaves such rows out)": "(--drop-missing leaves such rows out)",
        "or reward_range=(low, high), the range": "or --low, --high, the range",
        'interval="block" is for these': "--interval block is for these",
        "a bound on the weights: propensity_floor, or": "a bound on the weights: --floor, or",
        "with a reward model= the direct method": "with a reward --model the direct method",
        "the interval at this level, seed and group": "the interval at this level, seed and group",
        "es (alpha=0.5), level=0.9": "es (alpha=0.5), level=0.9",
        "column 'drop_missing' of 'propensity_floor.csv'": "column 'drop_missing' of 'propensity_floor.csv'",
        "out/drop_missing/x and x.drop_missing": "out/drop_missing/x and x.drop_missing",
        "`level` and `seed`": "--level and --seed",
        "name the column of groups (columns.group)": "name the column of groups (--group)",
    }
    for before, after in said.items():
        assert flags.text(before) == after
    assert Flags().text("drop_missing=True") == "drop_missing=True"


def test_what_came_is_left_alone() -> None:
    error = InvalidInput("columns.action", "'drop_missing'", "one of 'reward_range', 'x'")
    assert flags_of("evaluate").error(error) == "--action: expected one of 'reward_range', 'x', got 'drop_missing'"


# a wrong value for every option that can have one; the name of the library's argument must not be seen
WRONG = {
    "evaluate": {
        "--level": "3", "--interval": "wide", "--block": "soon", "--floor": "7", "--low": "1", "--estimators": "luck",
        "--action": "nowhere", "--reward": "nowhere", "--propensity": "nowhere", "--group": "nowhere", "--event-id": "nowhere",
        "--timestamp": "nowhere", "--context": "nowhere",
    },
    "compare": {"--level": "3", "--interval": "wide", "--block": "soon", "--floor": "7", "--high": "1", "--estimator": "luck"},
    "choose": {"--delta": "3", "--kind": "wide", "--floor": "7", "--high": "1", "--estimator": "luck"},
    "tune": {"--estimator": "luck", "--rule": "thumb", "--grid": "a,b", "--width": "-1"},
    "certify": {"--delta": "3", "--bound": "luck", "--high": "0", "--largest-group": "0", "--action": "nowhere"},
    "inspect": {"--action": "nowhere"},
}  # fmt: skip
LEARNING = {
    "--objective": "luck", "--pessimism": "luck", "--validation": "2", "--split-by": "luck", "--parametrisation": "luck",
    "--support": "luck", "--clusters": "0", "--neighbours": "0", "--tau": "-1", "--negatives": "3", "--epochs": "0",
    "--batch": "0", "--learning-rate": "0", "--schedule": "luck", "--optimiser": "luck", "--l2": "-1", "--towards": "luck",
    "--precision": "luck", "--patience": "0", "--device": "luck",
}  # fmt: skip
ORDER = {
    "evaluate": ["POLICY", "LOG"], "compare": ["POLICY", "uniform", "LOG"], "choose": ["POLICY", "uniform", "LOG"],
    "tune": ["POLICY", "LOG"], "certify": ["POLICY", "LOG"], "inspect": ["LOG"], "learn": ["LOG"],
}  # fmt: skip


@pytest.mark.parametrize(("command", "flag"), [(c, f) for c, wrong in WRONG.items() for f in wrong])
def test_a_wrong_value_is_told_by_the_flag_it_was_given_with(
    command: str, flag: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    words = [files.get(word, word) for word in ORDER[command]]
    out = [] if command == "inspect" else ["--out", files["OUT"]]
    said = refused(capsys, command, *words, *out, flag, WRONG[command][flag])
    assert flag in said.partition(": expected")[0], said
    assert not Path(files["OUT"]).exists()


@pytest.mark.parametrize("flag", LEARNING)
def test_a_wrong_value_for_learning(flag: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    said = refused(capsys, "learn", files["LOG"], "--out", files["OUT"], flag, LEARNING[flag])
    assert flag in said.partition(": expected")[0], said


def test_a_missing_extra_is_named_with_its_brackets(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from manyarms.logs import inspection

    def missing(*_: Any, **__: Any) -> None:
        raise MissingExtra("torch", "torch", "learning")

    monkeypatch.setattr(inspection, "inspect", missing)
    assert "pip install 'manyarms[torch]'" in refused(capsys, "inspect", files["LOG"])


def test_nobody_speaks_for_a_command_that_has_ended(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "evaluate", "uniform", files["LOG"], "--level", "3", "--out", files["OUT"])
    assert _flags.spoken().by_argument
    _flags.speak_for(None)
    assert not _flags.spoken().by_argument
