"""The demonstration, small: it shows what it measured."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from manyarms._base.typing import Array
from manyarms.cli.demo import catalogue, demo
from manyarms.cli.demo import diffusion as demo_diffusion
from manyarms.cli.demo import learning as demo_learning
from manyarms.cli.demo import safe as demo_safe
from manyarms.worlds import CatalogueWorld

SMALL = catalogue.Sizes(actions=300, effects=2, dim=3, rounds=60, runs=2)


def test_the_demo_shows_a_table_and_writes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARTS", (partial(catalogue.large_catalogue, sizes=SMALL),))
    console = Console(file=io.StringIO(), width=120)
    path = demo.run(tmp_path / "new" / "folder", seed=3, console=console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for agent in catalogue.AGENTS:
        assert agent in text
        assert agent in page
    assert "cumulative regret" in text
    assert "300 items, 60 rounds, 2 runs" in text
    assert "import manyarms as ma" in page
    assert "<svg" in page
    assert "src=" not in page


def test_a_run_does_not_depend_on_the_process() -> None:
    job = catalogue.Job("meTS", 0, 0, SMALL)
    first, second = catalogue.act(job), catalogue.act(job)
    np.testing.assert_array_equal(first.regret, second.regret)
    assert first.nbytes > 0


def test_the_code_on_the_page_runs() -> None:
    code = catalogue._code(catalogue.Sizes(actions=50, effects=2, dim=2, rounds=10))
    assert len(code.strip().splitlines()) == 10
    exec(compile(code, "page", "exec"), {"print": lambda value: None})


ROLL = demo_diffusion.Sizes(embeddings=60, depth=3, epochs=3, actions=8, rounds=30, runs=2)


def test_the_second_part_says_what_a_diffusion_prior_gained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARTS", (partial(demo_diffusion.diffusion_prior, sizes=ROLL),))
    console = Console(file=io.StringIO(), width=200)
    path = demo.run(tmp_path, seed=1, console=console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for case in demo_diffusion.CASES:
        assert case.words in text and page.count(case.words) >= 2
    assert text.count("With ") == 2 and page.count("<figure>") == 2
    assert "below LinTS, run by run" in text and "action_contexts=Z" in page and "src=" not in page


@pytest.mark.parametrize(
    ("gains", "words"),
    [([3.0, 4.0, 5.0], "gains 4 ± 1:"), ([-3.0, -4.0, -5.0], "loses 4 ± 1:"), ([-9.0, 1.0, 9.0], "gains nothing that 3 runs"),
     ([4.0], "gains nothing that 1 runs")],
)  # fmt: skip
def test_a_gain_is_called_one_only_where_it_is_clear(gains: list[float], words: str) -> None:
    lost = np.array(gains)[:, None]
    regret = {demo_diffusion.DIFFUSION: 100 - lost, demo_diffusion.GAUSSIAN: np.full_like(lost, 100.0)}
    played = demo_diffusion.Played(demo_diffusion.CASES[0], np.array([10]), regret)
    assert words in played.sentence()


def test_the_code_of_the_second_part_runs() -> None:
    sizes = demo_diffusion.Sizes(embeddings=40, depth=2, actions=6, rounds=5)
    code = demo_diffusion._code(sizes).replace("depth=2", "depth=2, epochs=2")
    exec(compile(code, "page", "exec"), {"print": lambda value: None})


LEARNING = demo_learning.Sizes(actions=400, dim=9, rounds=800, epochs=2, batch=200, test=30)


@pytest.mark.slow
def test_the_offline_part_shows_two_worlds_and_true_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PARTS", (partial(demo_learning.offline_learning, sizes=LEARNING),))
    console = Console(file=io.StringIO(), width=120)
    path = demo.run(tmp_path, seed=1, console=console)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for words in (
        "logging policy",
        "ips",
        "clpi (tau=0.01)",
        "best item of all",
        "actions drawn",
        "most probable item",
    ):
        assert words in text
    for setting in demo_learning.SETTINGS:
        assert f"true click rates ± se: {setting.words}" in text and setting.words in page
    assert (tmp_path / "figures" / "offline.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in page and "ma.learn(" in page and "src=" not in page


@pytest.mark.slow
def test_a_worker_learns_the_same_as_this_process() -> None:
    sizes = demo_learning.Sizes(actions=100, dim=9, rounds=300, epochs=1, batch=100, test=20)
    world = CatalogueWorld(100, 9, test=20, seed=0)
    log = world.log(300, seed=1)
    threads = torch.get_num_threads()
    for setting in demo_learning.SETTINGS:
        job = demo_learning.Job(world, log, setting, demo_learning.OBJECTIVES[1], 0, sizes)
        first, second = demo_learning.act(job), demo_learning.act(job)
        np.testing.assert_array_equal(first.drawn, second.drawn)
        np.testing.assert_array_equal(first.decided, second.decided)
        assert first.drawn.shape == first.decided.shape == (20,)
    torch.set_num_threads(threads)


def test_the_third_part_recommends_what_was_ahead() -> None:
    """Each objective where it is ahead of the other by more than two standard errors, and not behind the logging policy."""
    noise = np.tile([-1e-3, 1e-3], 50)
    low, high, unclear = 0.02 + noise, 0.05 - noise, 0.02 + np.tile([-0.01, 0.0101], 50)

    def advice(ips: tuple[Array, Array], clpi: tuple[Array, Array], logged: float = 0.01) -> str:
        lines = (demo_learning.Line("ips", *ips), demo_learning.Line("clpi", *clpi))
        log = demo_learning.Line("logging policy", np.full(100, logged), np.full(100, logged))
        return demo_learning.TwoObjectives(demo_learning.SETTINGS[0], *lines, log, np.full(100, 0.0195)).sentence()

    assert ", take cLPI (" in advice((low, low), (high, high))
    assert ", take IPS where actions are drawn (" in advice((high, low), (low, unclear))
    both = advice((high, low), (low, high), logged=0.03)
    assert ", take cLPI where the most probable item is played and take IPS where actions are drawn (" in both
    assert "; with actions drawn cLPI earns less than the logging policy (3.00 %; uniform play: 1.95 %)" in both
    assert "(most probable item: cLPI 5.00 %, IPS 2.00 % (+3.00 ± 0.02 points);" in both
    assert ", neither objective is clearly the one to take (" in advice((low, low), (unclear, unclear))
    collapsed = advice((low, low), (high, high), logged=0.06)
    assert ", neither objective" in collapsed and "IPS and cLPI earn less than the logging policy" in collapsed


def test_the_code_of_the_third_part_runs() -> None:
    sizes = demo_learning.Sizes(actions=60, dim=9, rounds=200, epochs=1, batch=100)
    exec(compile(demo_learning._code(sizes), "page", "exec"), {"print": lambda *values: None})


SAFE = demo_safe.Sizes(
    rows=(120, 300), population=600, classes=3, dim=4, noise=0.8, eta0=0.3, epochs=1, least_visits=600
)


def test_the_last_part_shows_certificates_beside_the_truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = partial(demo_safe.safe_to_ship, sizes=SAFE)
    monkeypatch.setattr(demo, "PARTS", (part,))
    console = Console(file=io.StringIO(), width=140)
    threads = torch.get_num_threads()
    path = demo.run(tmp_path, seed=1, console=console)
    torch.set_num_threads(threads)
    assert isinstance(console.file, io.StringIO)
    text, page = console.file.getvalue(), path.read_text()
    for words in (*demo_safe.METHODS, "certificate", "true value", "logging policy's true value", "certificates hold"):
        assert words in text
    assert (tmp_path / "figures" / "safe.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in page and "ma.PACBayes(" in page and "src=" not in page


def test_certificates_of_the_last_part_rest_on_rows_of_their_own() -> None:
    threads = torch.get_num_threads()
    lines = list(demo_safe.learned(demo_safe.world_of(SAFE, 0), SAFE, 0))
    torch.set_num_threads(threads)
    assert [(line.rows, line.name) for line in lines] == [(n, name) for n in SAFE.rows for name in demo_safe.METHODS]
    for line in lines:
        spent = round(demo_safe.PRIOR_SHARE * line.rows) if line.name == demo_safe.SPLIT else 0
        assert line.certificate.rows == line.rows - spent
        assert line.certificate.lower <= line.truth <= line.certificate.upper
    assert "6 of 6 certificates hold" in demo_safe.verdict(lines)


def test_the_code_of_the_last_part_runs() -> None:
    exec(compile(demo_safe._code(SAFE), "page", "exec"), {"print": lambda value: None})
