"""Experiments are found by themselves, in a stable order, and are complete: title, thesis lines, scales, claims, figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from manyarms.cli.experiments import find_experiments
from manyarms.errors import InvalidInput, ManyArmsError
from manyarms_thesis.catalogue import SCALES, Experiment, catalogue, find
from manyarms_thesis.harness.experiments import EXPERIMENTS
from manyarms_thesis.harness.spec import items_of

NOT_OF_THE_THESIS = {"drift", "ope-obd"}
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "extending" / "experiment.py"
ALL = pytest.mark.parametrize("experiment", catalogue().values(), ids=lambda e: e.name)
NAMES = {
    "mets": "synthetic grid structure actions movielens misspecified uncertain bound glm",
    "dts": "synthetic actions scaling misspecified swissroll movielens posterior images bound chains action-contexts rules",
    "sdm": "synthetic actions movielens likelihood prior pessimism bound",
    "ope": "obd",
    "pwll": "landscape plateau maxima convergence escape optimisation support potec mse seeds noise log small clusters logging "
    "pessimism catalogues",
    "es": "clipping bounds hyperparameters principles corrections",
    "pac": "objectives bound heuristic",
    "ls": "bounds",
}


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here reads real data."""
    monkeypatch.delenv("MANYARMS_DATA", raising=False)


def test_all_are_found_chapter_by_chapter() -> None:
    wanted = [f"{prefix}-{name}" for prefix, names in NAMES.items() for name in names.split()]
    assert list(catalogue()) == [*wanted, "es-coverage", "drift"]


@ALL
def test_an_experiment_is_complete(experiment: Experiment) -> None:
    assert experiment.title and callable(experiment.claims) and callable(experiment.figures)
    assert experiment.question.endswith("?") and len(experiment.question) < 250
    for scale in SCALES:
        setting = experiment.setting_at(scale)
        assert setting.endswith(".") and "{" not in setting and 60 < len(setting) < 900
    if experiment.name in NOT_OF_THE_THESIS:
        assert experiment.thesis_lines == "" and experiment.sections == ""
    else:
        assert re.fullmatch(r"\d+(-\d+)?(, \d+(-\d+)?)*", experiment.thesis_lines)
    assert tuple(experiment.scales) == SCALES
    assert all(isinstance(text, str) for text in (*experiment.remarks, *experiment.warnings()))
    for scale in SCALES:
        cells = experiment.cells(scale)
        items = items_of(experiment.name, cells, seed=0)  # whose keys need plain parameters
        assert len({item.key("1") for item in items}) == len(items) >= len(cells) > 0


@ALL
def test_places_are_not_shared(experiment: Experiment) -> None:
    assert [other.name for other in catalogue().values() if other.place == experiment.place] == [experiment.name]


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(InvalidInput, match="did you mean mets-bound"):
        find("mets-bund")
    with pytest.raises(InvalidInput, match=r"experiment: expected one of .*dts-actions.*, got 'zzzz'"):
        find("zzzz")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(InvalidInput, match="not taken"):
        EXPERIMENTS.register("mets-bound")(find("mets-grid"))


def test_an_experiment_is_one_file(tmp_path: Path) -> None:
    """The example of CONTRIBUTING: imported, it is listed, and runs from end to end."""
    assert len(EXAMPLE.read_text().splitlines()) <= 60
    code = (
        f"import sys; sys.path.insert(0, {str(EXAMPLE.parent)!r})\n"
        "if __name__ == '__main__':\n"
        "    import experiment\n"
        "    from manyarms.cli.app import main\n"
        f"    main(['reproduce', 'my-epsilon', '--scale', 'smoke', '--workers', '1', '--out', {str(tmp_path)!r}])\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "bear their statement out" in done.stdout and (tmp_path / "report.html").exists()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "manyarms_thesis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "manyarms_thesis", None)
    with pytest.raises(ManyArmsError, match="manyarms_thesis, which is not installed"):
        find_experiments()
