"""What an evaluation cannot work with is refused by name before a row is read; nothing that is accepted becomes NaN."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import pytest

import manyarms as ma
from manyarms import evaluate
from manyarms.errors import InvalidInput
from manyarms.estimators import DM, DR, IPS, MIPS, PC, OffCEM, cluster_actions, named
from manyarms.evaluation import choose, difference, quality, row_terms, true_value, tune
from manyarms.logs.data import LoggedData
from manyarms.policies import SoftmaxPolicy, UniformPolicy
from manyarms.rewards import LinearModel
from manyarms.worlds import MixedEffect

N, K, D = 40, 5, 3
RNG = np.random.default_rng(0)
X, A = RNG.normal(size=(N, D)), RNG.integers(K, size=N)
R = (RNG.random(N) < 0.5).astype(float)
POLICY = SoftmaxPolicy(RNG.normal(size=(K, D)))
LOG = LoggedData(X, A, R, K, np.full(N, 1 / K), logging=UniformPolicy(K))
MODEL = LinearModel(RNG.normal(size=(K, D)))


class Said:
    """A policy, or a model, that says what it was told."""

    action_count, dim, smallest_probability = K, D, 0.0

    def __init__(self, probability=0.2, prediction=0.5):
        self.probability, self.prediction = probability, prediction

    def probabilities_of(self, X, actions):
        return np.full(len(X), self.probability)

    def predict(self, X, actions):
        return np.full(len(X), self.prediction)

    def block(self, X, ids):
        return np.full((len(X), len(ids)), self.prediction)


class NoRows:
    action_count, dim = K, D

    def chunks(self, rows=1):
        return iter(())


def with_propensities(smallest, **fields):
    p, rewards = np.full(N, 0.3), R.copy()
    p[[3, 17]], rewards[[3, 17]] = smallest, 1.0
    return LoggedData(X, A, rewards, K, p, **fields)


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("reward_range", (1.0, 0.0)), ("reward_range", (0.0, math.nan)), ("reward_range", (0.0, math.inf)),
        ("reward_range", "01"), ("reward_range", (0.0, 1.0, 2.0)), ("reward_range", {0: 0, 1: 1}),
        ("reward_range", (0.0, 1e-320)), ("reward_range", iter((0.0, 1.0))),
        ("level", 1), ("level", 0.0), ("level", 1 - 1e-16), ("level", "0.9"), ("level", math.nan), ("level", 5e-324),
        ("estimators", "snips"), ("estimators", [["snips"]]), ("estimators", iter(["snips"])), ("estimators", {"snips": 1}),
        ("estimators", []), ("estimators", [IPS]), ("estimators", ["cips:" + "9" * 5000]), ("estimators", ["clpi"]),
        ("seed", -1), ("seed", 1.0), ("seed", np.random.default_rng(0)), ("seed", True),
        ("replicates", 2.5), ("replicates", -1), ("replicates", 10**15), ("chunk", 0), ("chunk", 2.5),
        ("bias", np.array([True, False])), ("bias", "no"), ("propensity_floor", 1e-320), ("propensity_floor", 0.5),
        ("propensity_floor", 2.0), ("model", "linear"), ("model", LinearModel), ("interval", ["normal"]), ("name", 3),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_an_argument_is_refused_by_its_name(argument, bad):
    with pytest.raises(InvalidInput, match=argument):
        evaluate(POLICY, LOG, **{argument: bad})


@pytest.mark.parametrize(
    "policy",
    [
        None,
        "policy",
        SoftmaxPolicy,
        np.zeros(3),
        UniformPolicy(K + 1),
        Said(math.nan),
        Said(1.5),
        Said(-0.1),
        Said("a"),
    ],
    ids=lambda policy: str(policy)[:20],
)
def test_what_is_no_policy_for_this_log(policy):
    calls = [
        lambda: evaluate(policy, LOG, ["snips"], bias=False),
        lambda: difference(POLICY, policy, LOG) if policy is not None else evaluate(policy, LOG),
        lambda: choose({"a": POLICY, "b": policy}, LOG),
        lambda: tune(policy, LOG, bias=False),
        lambda: row_terms(policy, LOG, "ips", bias=False),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"polic|other"):
            call()


def test_an_agent_is_a_policy():
    prior = ma.ActionPrior(K, np.zeros(D), np.eye(D))
    drawing, greedy = ma.LinTS(prior, seed=0), ma.Agent(ma.LinTS(prior).belief, ma.Greedy())
    wanted = evaluate(greedy.as_policy(), LOG, ["ips"])["ips"].value
    for agent in (greedy, ma.Agent(drawing.belief, ma.Greedy())):
        assert evaluate(agent, LOG, ["ips"])["ips"].value == wanted
    assert np.isfinite(evaluate(drawing, LOG, ["ips"])["ips"].value)
    with pytest.raises(InvalidInput, match=r"^policy: expected a policy: that of an agent is agent.as_policy\(\)"):
        true_value(ma.worlds.MixedEffect(actions=K, effects=2, dim=D, seed=0), greedy)


@pytest.mark.parametrize("width", [D - 1, D + 1])
def test_a_policy_over_contexts_of_another_length(width):
    policy = SoftmaxPolicy(np.zeros((K, width)))
    said = f"^policy: expected one over contexts of length {D}, as the log's are, got a policy over contexts of length {width}$"
    for call in (evaluate, lambda one, log: difference(POLICY, one, log), tune):
        with pytest.raises(InvalidInput, match=said):
            call(policy, LOG)


@pytest.mark.parametrize("log", [None, "log", LoggedData, [LOG], NoRows()])
def test_what_is_no_log(log):
    for call in (evaluate, lambda p, log: difference(p, None, log), lambda p, log: choose([p], log), tune):
        with pytest.raises(InvalidInput, match="log"):
            call(POLICY, log)
    with pytest.raises(InvalidInput, match="log"):
        row_terms(POLICY, log, "ips")


def test_policies_are_listed_or_named():
    for bad in ("ab", [], {}, {3: POLICY}, iter([POLICY]), POLICY, {POLICY}):
        with pytest.raises(InvalidInput, match="policies"):
            choose(bad, LOG)
    with pytest.raises(InvalidInput, match="delta"):  # a level of 1 - 1e-16 has no quantile
        choose([POLICY, POLICY], LOG, delta=1e-15)


@pytest.mark.parametrize(
    "block", [0, 2.5, "x", True, N + 1, timedelta(0), np.timedelta64("NaT", "s"), np.timedelta64(1, "Y")]
)
def test_blocks_of_time(block):
    times = np.datetime64("2020-01-01") + np.arange(N).astype("timedelta64[D]")
    log = LoggedData(X, A, R, K, np.full(N, 1 / K), timestamps=times)
    with pytest.raises(InvalidInput, match="block"):
        evaluate(POLICY, log, ["snips"], interval="block", block=block)
    with pytest.raises(InvalidInput, match="log"):
        evaluate(POLICY, NoRows(), interval="block")


@pytest.mark.parametrize(
    "grid", ["abc", {0.1}, [], [None], [0.1, "x"], [0.1, [0.2, 0.3]], np.array(0.5), [1e-320], iter([0.1])]
)
def test_grids_to_tune_over(grid):
    with pytest.raises(InvalidInput):
        tune(POLICY, LOG, "cips", grid)


def test_tuning_without_propensities():
    with pytest.raises(InvalidInput, match="propensities"):
        tune(POLICY, LoggedData(X, A, R, K))


@pytest.mark.parametrize("model", [None, "model", LinearModel, np.zeros((K, D))])
def test_what_is_no_model(model):
    for make in (DM, DR, lambda model: OffCEM(np.arange(K), model), lambda model: named("switch:1", {"model": model})):
        with pytest.raises(InvalidInput, match="model"):
            make(model)


@pytest.mark.parametrize("name", ["dm", "dr", "sndr", "switch-dr"])
@pytest.mark.parametrize("prediction", [math.nan, math.inf])
def test_predictions_that_are_no_numbers(name, prediction):
    with pytest.raises(InvalidInput, match="model"):
        evaluate(POLICY, LOG, [name], model=Said(prediction=prediction))


def test_small_integers_do_not_overflow():
    """np.uint8(200) + 100 is 44: what was checked is what is used."""
    for given in (np.uint8(200), np.int64(200)):
        found = evaluate(POLICY, LOG, ["snips"], replicates=given, chunk=given, seed=given, interval="bootstrap")
        assert (
            found["snips"] == evaluate(POLICY, LOG, ["snips"], replicates=200, seed=200, interval="bootstrap")["snips"]
        )
    embeddings = RNG.normal(size=(K, 2))
    assert PC(embeddings, k=np.uint8(2)).settings == PC(embeddings, k=2).settings
    np.testing.assert_array_equal(cluster_actions(embeddings, np.uint8(2)), cluster_actions(embeddings, 2))
    assert len(set(cluster_actions(embeddings, 2, seed=2**100).tolist())) == 2  # more than scikit-learn's 32 bits


@pytest.mark.parametrize("smallest", [1e-50, 1e-120, 1e-200, 1e-300])
@pytest.mark.parametrize("chunk", [N, 7])
def test_tiny_propensities_say_nothing_and_nothing_wrong(smallest, chunk):
    log = with_propensities(smallest)
    found = evaluate(POLICY, log, chunk=chunk)
    for one in found.estimates:
        assert math.isfinite(one.value), one
        ends = [end for interval in one.intervals for end in (interval.low, interval.high)]
        assert not np.isnan([one.standard_error, *ends]).any(), one
    assert not math.isnan(tune(POLICY, log, chunk=chunk).trials[0].bias_bound)
    assert not math.isnan(difference(POLICY, None, log, chunk=chunk).value)


def test_propensities_without_an_inverse():
    for call in (evaluate, tune, lambda p, log: choose([p], log), lambda p, log: difference(p, None, log)):
        with pytest.raises(InvalidInput, match="inverses are finite"):
            call(POLICY, with_propensities(1e-310))
    rewards = LoggedData(X, A, 1e90 * R, K, np.full(N, 1e-250))
    with pytest.raises(InvalidInput, match="beyond all numbers"):
        evaluate(POLICY, rewards, ["ips"])


@pytest.mark.parametrize("scale", [50.0, 200.0, 3000.0])
def test_a_logging_policy_that_hardly_explores(scale):
    """Its probabilities of most actions have no inverse; biases sum over them all the same."""
    logging = SoftmaxPolicy(scale * RNG.normal(size=(K, D)))
    actions = logging.sample(X, 1)
    log = LoggedData(X, actions, R, K, logging.probabilities_of(X, actions), logging=logging)
    for policy in (UniformPolicy(K), POLICY):
        found = evaluate(policy, log, bias=True, chunk=7)
        assert not any(
            math.isnan(end) for one in found.estimates for end in (one.value, one.interval.low, one.interval.high)
        )


def test_one_row():
    log = LoggedData(X[:1], A[:1], R[:1], K, [0.2])
    found = evaluate(POLICY, log)
    assert all(one.interval.low == -math.inf for one in found.estimates if one.interval.kind == "normal")
    assert found.verdict().verdict == "cannot tell"


def test_labels_and_embeddings_are_private_copies():
    labels, embeddings = np.arange(K) % 2, RNG.normal(size=(K, 2))
    mips, pc = MIPS(labels), PC(embeddings, k=2)
    before = [evaluate(POLICY, LOG, [one]).estimates[0].value for one in (mips, pc)]
    labels[:], embeddings[:] = 0, 0.0
    assert [evaluate(POLICY, LOG, [one]).estimates[0].value for one in (mips, pc)] == before


@pytest.mark.parametrize(
    "labels", [[[0, 1], [1]], np.ma.array([0, 1, 0], mask=[1, 0, 0]), [0.5, 1.0], [None], [], "ab"]
)
def test_what_is_no_list_of_clusters(labels):
    with pytest.raises(InvalidInput, match="labels"):
        MIPS(labels)


def test_estimators_with_equal_labels_ask_the_policy_once():
    class Counted(SoftmaxPolicy):
        asked = 0

        def group_mass(self, X, labels, wanted):
            Counted.asked += 1
            return super().group_mass(X, labels, wanted)

    labels = np.arange(K) % 2
    evaluate(
        Counted(np.asarray(POLICY.actions)), LOG, [MIPS(labels), OffCEM(labels, MODEL), MIPS(labels + 0)], bias=False
    )
    assert Counted.asked == 1


@pytest.mark.parametrize(
    ("argument", "bad"),
    [("truth", 10**400), ("truth", math.nan), ("seed", -1), ("world", None), ("fit", 3), ("logging", "x")],
)
def test_quality_of_what(argument, bad):
    world = MixedEffect(actions=K, effects=2, dim=D, seed=0)
    given = {"world": world, "policy": POLICY, "logging": UniformPolicy(K), "rows": 20, "runs": 2}
    with pytest.raises(InvalidInput, match=argument):
        quality(**{**given, argument: bad})


def test_results_know_the_names_they_have():
    found = evaluate(POLICY, LOG, ["snips"])
    for bad in ("ips", 3, None, np.array(["snips", "ips"])):
        with pytest.raises(InvalidInput, match="name"):
            found[bad]
    neighbours = PC(RNG.normal(size=(K, 2)), k=2).neighbours
    for actions in ([-1], [K], [0.5]):
        with pytest.raises(InvalidInput, match="actions"):
            list(neighbours.lists(actions))
