"""From the call to the arithmetic a reader passes at most eight of the library's files, in `evaluate` and in `learn`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import manyarms as ma
from manyarms.checks import estimators as checks_offline
from manyarms.learning.products import RightFactor
from manyarms.weights import ClipPropensities

HOME = str(Path(ma.__file__).parent)
MOST = 8


@pytest.fixture
def walks(monkeypatch):
    """The distinct files of the library on the stack, from the outermost in, each time that a function is reached."""
    found = []

    def watch(where, name):
        plain = getattr(where, name)

        def watched(*arguments, **named):
            frame, files = sys._getframe(1), []
            while frame is not None:
                if frame.f_code.co_filename.startswith(HOME):
                    files.append(frame.f_code.co_filename.removeprefix(HOME))
                frame = frame.f_back
            found.append(list(dict.fromkeys(reversed(files))))
            return plain(*arguments, **named)

        monkeypatch.setattr(where, name, watched)

    watch(ClipPropensities, "weight")
    watch(torch, "mm")
    watch(torch, "exp2")
    watch(RightFactor, "times")
    return found


def test_evaluation(walks):
    problem = checks_offline.a_problem()
    ma.evaluate(problem.policy, problem.log, [ma.estimators.cIPS(0.1)])
    assert walks and max(map(len, walks)) <= MOST, max(walks, key=len)


def test_learning(walks):
    problem = checks_offline.a_problem()
    ma.learn(problem.log, problem.policy, ma.estimators.cIPS(0.1), epochs=1, device="cpu")
    assert any("/learning/blockwise.py" in files for files in walks)
    assert max(map(len, walks)) <= MOST, max(walks, key=len)
