"""Each file of examples/extending is one part, at most 60 lines long, and works wherever that kind of part is used.

Everything runs in one process that imports the files and nothing else: what they register must not reach other tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "extending"
FILES = sorted(FOLDER.glob("*.py"))

SET_UP = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import manyarms as ma
from typer.testing import CliRunner

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 3))
logging = ma.SoftmaxPolicy(0.5 * rng.standard_normal((4, 3)))
actions = logging.sample(X, rng)
pi0 = logging.probabilities_of(X, actions)
rewards = (X[:, 0] > 0) == (actions == 0)
log = ma.LoggedData(X, actions, rewards.astype(float), 4, pi0, logging=logging)
policy = ma.SoftmaxPolicy(rng.standard_normal((4, 3)))

def command(*arguments):
    from manyarms.cli.app import build
    result = CliRunner().invoke(build(), [str(one) for one in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output
"""

JOBS = {
    "decision_rule": """
import tempfile
from decision_rule import meTSWithFloor
prior = ma.MixedEffectPrior(rng.uniform(-1, 1, (9, 2)), np.zeros((2, 3)), 3 * np.eye(6), np.eye(3))
ma.checks.check_agent(lambda seed: meTSWithFloor(prior, seed=seed))
agent, x = meTSWithFloor(prior, share=0.5, seed=0), np.ones(3)
agent.observe(np.tile(x, (90, 1)), np.arange(90) % 9, np.where(np.arange(90) % 9 == 4, 9.0, 0.0))
likely = [agent.propensity(x, a).value for a in range(9)]
assert min(likely) >= 0.5 / 9 - 1e-12 and likely[4] > 0.5
with tempfile.TemporaryDirectory() as folder:
    agent.save(folder)
    assert ma.load(folder).decide(x) == agent.decide(x)
""",
    "likelihood": """
import tempfile
from likelihood import Binomial
ma.checks.check_likelihood(Binomial(trials=5), rewards=[0.0, 2.0, 5.0], impossible=[-1.0, 6.0, 0.5])
agent = ma.agents.GLMTS(ma.ActionPrior(6, np.zeros(3), np.eye(3)), Binomial(trials=5), seed=0)
agent.observe(X[:60], np.arange(60) % 6, rng.integers(6, size=60).astype(float))
with tempfile.TemporaryDirectory() as folder:
    agent.save(folder)
    again = ma.load(folder)
assert again.belief.likelihood == Binomial(trials=5) and again.decide(X[0]) == agent.decide(X[0])
""",
    "correction": """
import tempfile, pathlib
from correction import SoftClip
ma.checks.check_correction(SoftClip(0.1))
ma.checks.check_estimator(lambda problem: ma.IPS(SoftClip(0.1)))
found = ma.evaluate(policy, log, [ma.IPS(SoftClip(0.1)), "soft-clip:0.1", "soft-clip", "sn-soft-clip:0.1"])
values = [one.value for one in found.estimates]
w = policy.probabilities_of(X, actions) / np.sqrt(pi0**2 + 0.01)
assert np.allclose(values[:2], (w * log.rewards).mean()) and np.isclose(values[3], (w @ log.rewards) / w.sum())
tuned = ma.evaluation.tune(policy, log, "soft-clip")
learned = ma.learn(log, ma.SoftmaxPolicy(np.zeros((4, 3))), ma.IPS(SoftClip(0.1)), epochs=3, learning_rate=0.1).policy
assert ma.certify(policy, log, bound=ma.IPS(SoftClip(0.1))).lower <= ma.certify(policy, log, bound=SoftClip(0.1)).upper
start = ma.GaussianPolicy(np.zeros((4, 3)))
ma.learn(log, start, ma.PACBayes(ma.IPS(SoftClip(0.1))), epochs=1)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ma.logs.to_csv(log, folder / "log.csv")
    policy.save(folder / "policy")
    assert "soft-clip" in command("evaluate", folder / "policy", folder / "log.csv", "--estimators", "soft-clip:0.1,ips")
    assert "soft-clip" in command("learn", "--help") and "soft-clip" in command("evaluate", "--help")
    command("learn", folder / "log.csv", "--objective", "soft-clip:0.1", "--epochs", "1", "--out", folder / "learned")
""",
    "objective": """
import tempfile, pathlib
from objective import RootLPI
ma.checks.check_objective(lambda problem: RootLPI())
learned = ma.learn(log, ma.SoftmaxPolicy(np.zeros((4, 3))), RootLPI(), epochs=5, learning_rate=0.1).policy
try:
    ma.evaluate(policy, log, [RootLPI()])
except ma.errors.InvalidInput as error:
    assert "root-lpi, an objective and not an estimator" in str(error)
else:
    raise AssertionError("evaluate took an objective")
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ma.logs.to_csv(log, folder / "log.csv")
    assert "root-lpi" in command("learn", "--help")
    command("learn", folder / "log.csv", "--objective", "root-lpi", "--epochs", "1", "--out", folder / "learned")
""",
    "bound": """
import tempfile, pathlib
from bound import Hoeffding
ma.checks.check_bound(Hoeffding(0.2))
made = ma.certify(policy, log, bound="hoeffding")
assert made.lower <= made.upper
start = ma.GaussianPolicy(np.zeros((4, 3)))
result = ma.learn(log, start, ma.PACBayes(ma.estimators.cIPS(0.2), bound="hoeffding"), epochs=1)
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    ma.logs.to_csv(log, folder / "log.csv")
    policy.save(folder / "policy")
    command("certify", folder / "policy", folder / "log.csv", "--bound", "hoeffding", "--out", folder / "out")
    command("learn", folder / "log.csv", "--pessimism", "hoeffding", "--epochs", "1", "--out", folder / "learned")
""",
    "log_format": """
import json, tempfile, pathlib
import log_format
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    lines = [{"x0": x[0], "x1": x[1], "x2": x[2], "action": int(a), "reward": float(r), "propensity": float(p)}
             for x, a, r, p in zip(X.tolist(), actions, log.rewards, pi0)]
    path = folder / "log.ndjson"
    path.write_text("".join(json.dumps(line) + chr(10) for line in lines))
    read = ma.logs.collect(ma.open_log(path, action_count=4))
    assert np.array_equal(read.actions, log.actions) and np.allclose(read.propensities, log.propensities)
    assert ma.inspect(path).rows == 400
    command("inspect", path)
    path.write_text("{")
    try:
        ma.open_log(path)
    except ma.errors.DataError as error:
        assert "line 1" in str(error)
""",
}


def test_every_kind_of_part_has_a_short_example() -> None:
    assert {path.stem for path in FILES} == {*JOBS, "experiment"}  # that one is run in tests/thesis/harness
    assert not [path.name for path in FILES if len(path.read_text().splitlines()) > 60]


@pytest.mark.parametrize("part", JOBS)
def test_a_part_of_ones_own_works_wherever_such_parts_are_used(part: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::ImportWarning", "-c", SET_UP + JOBS[part], str(FOLDER)],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
