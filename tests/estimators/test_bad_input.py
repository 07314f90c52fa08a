"""What an objective cannot work with is refused with its name and a reason, before anything is learned; and names."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from manyarms.errors import InvalidInput
from manyarms.estimators import (
    BPR,
    DM,
    DR,
    ES,
    ESLPI,
    IPS,
    IX,
    LPI,
    LS,
    MIPS,
    PC,
    PWLL,
    SNIPS,
    Distance,
    ESBeta,
    OffCEM,
    RegKL,
    RegKLLinear,
    SampleVariance,
    cIPS,
    cLPI,
    named,
    names,
    summaries,
)  # fmt: skip
from manyarms.estimators.naming import as_estimator, parameters_of
from manyarms.logs.data import LoggedData
from manyarms.policies import FixedPolicy
from manyarms.rewards.linear import LinearModel
from manyarms.weights import LogSmoothing

K = 4
MODEL = LinearModel(np.ones((K, 2)))
BARE = LoggedData(np.ones((3, 2)), [0, 1, 2], [0.0, 1.0, 0.5], K)
FULL = LoggedData(np.ones((3, 2)), [0, 1, 2], [0.0, 1.0, 0.5], K, [0.25] * 3, logging=FixedPolicy(np.full(K, 1 / K)))


@pytest.mark.parametrize(
    "objective",
    [cLPI(), ESLPI(), PWLL(lambda r, p: r), IPS(), cIPS(), ES(), ESBeta(), IX(), LS(), SNIPS(), DR(MODEL)],
    ids=lambda o: o.name,
)
def test_propensities_are_asked_for(objective):
    with pytest.raises(InvalidInput, match="propensities"):
        objective.prepare(BARE)
    with pytest.raises(InvalidInput, match="propensities"):
        Distance(objective, 1.0).prepare(BARE)
    objective.prepare(FULL)


@pytest.mark.parametrize("objective", [LPI(), RegKL(), RegKLLinear(), BPR(), DM(MODEL)], ids=lambda o: o.name)
def test_some_need_none(objective):
    objective.prepare(BARE)
    assert PWLL(lambda r, p: r * p, propensities=False).prepare(BARE).columns["weight"].tolist() == [0.0, 1.0, 0.5]


@pytest.mark.parametrize("objective", [MIPS([0, 0, 1, 1]), OffCEM([0, 0, 1, 1], MODEL), PC(np.eye(K), k=2)])
def test_groups_need_the_logging_policy(objective):
    log = LoggedData(BARE.contexts, BARE.actions, BARE.rewards, K, [0.25] * 3)
    with pytest.raises(InvalidInput, match="probabilities of all actions"):
        objective.prepare(log)
    objective.prepare(FULL)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: cLPI(-0.1), "tau"),
        (lambda: cLPI(1.5), "tau"),
        (lambda: cLPI(float("nan")), "tau"),
        (lambda: cIPS(2.0), "tau"),
        (lambda: DR(MODEL, tau=-1.0), "tau"),
        (lambda: ES(1.1), "alpha"),
        (lambda: ES(-0.1), "alpha"),
        (lambda: ESLPI(1.2), "alpha"),
        (lambda: ESBeta(-0.5), "beta"),
        (lambda: ESBeta(1.5), "beta"),
        (lambda: RegKL(0.05), "beta.*overflow"),
        (lambda: RegKLLinear(0.099), "beta.*overflow"),
        (lambda: RegKL(0.0), "beta"),
        (lambda: RegKL(-1.0), "beta"),
        (lambda: IX(-0.1), "gamma"),
        (lambda: LS(-0.1), "smoothing"),
        (lambda: BPR(0), "count"),
        (lambda: BPR(negatives="popular"), "uniform, logging"),
        (lambda: BPR(negatives=2), "uniform, logging.*count"),
        (lambda: PWLL(3), "g"),
        (lambda: IPS("nothing"), "correction"),
        (lambda: IPS(0.1), "correction"),
        (lambda: IPS(LogSmoothing(0.1), self_normalised=True), "self-normalised"),
        (lambda: IPS("cips").correction, "tau"),
        (lambda: DR(MODEL, correction=LS(0.1).correction), "correction"),
        (lambda: MIPS(np.zeros((2, 2), int)), "labels"),
        (lambda: MIPS([]), "labels"),
        (lambda: PC(np.eye(K)), "k, radius"),
        (lambda: PC(np.eye(K), k=9), "k"),
        (lambda: SampleVariance(IPS(), -1.0), "weight"),
        (lambda: SampleVariance(SNIPS(), 1.0), "objective"),
        (lambda: Distance("ips", 1.0), "objective"),
        (lambda: MIPS([0, 1, 1]).prepare(FULL), "labels"),
        (lambda: OffCEM([0, 1, 1, 1, 1], MODEL).prepare(FULL), "labels"),
        (lambda: PC(np.eye(3), k=2).prepare(FULL), "embeddings"),
        (lambda: DM(LinearModel(np.ones((K + 1, 2)))).prepare(FULL), "model.*action_count"),
        (lambda: DR(LinearModel(np.ones((K, 3)))).prepare(FULL), "model.*dim"),
        (lambda: DM(np.ones((K, 2))).prepare(FULL), "model"),
        (lambda: PWLL(lambda r, p: r - 0.4).prepare(FULL), "g.*-0.4 at row 0"),
        (lambda: PWLL(lambda r, p: np.full(len(r), np.inf)).prepare(FULL), "g"),
        (lambda: PWLL(lambda r, p: 1.0).prepare(FULL), "g"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(make, what):
    with pytest.raises(InvalidInput, match=what):
        make()


def test_negative_rewards_and_large_ones():
    down = LoggedData(np.ones((2, 2)), [0, 1], [1.0, -1.0], K, [0.5, 0.5])
    for objective in (LPI(), cLPI(), BPR()):
        with pytest.raises(InvalidInput, match="at least 0"):
            objective.prepare(down)
    up = LoggedData(np.ones((2, 2)), [0, 1], [1.0, 900.0], K, [0.5, 0.5])
    for objective in (RegKL(), LS()):
        with pytest.raises(InvalidInput, match="with_unit_rewards"):
            objective.prepare(up)
    IPS().prepare(down)  # a value may be negative


def test_a_logging_policy_that_cannot_have_written_the_log():
    never = FixedPolicy([0.5, 0.5, 0.0, 0.0])
    log = LoggedData(np.ones((2, 2)), [0, 3], [1.0, 1.0], K, [0.5, 0.5], logging=never)
    for objective in (MIPS(np.arange(K)), OffCEM(np.arange(K), MODEL), PC(np.eye(K), k=1)):
        with pytest.raises(InvalidInput, match="row 1"):
            objective.prepare(log).computed(2)
    without = LoggedData(np.ones((2, 2)), [0, 3], [1.0, 1.0], K, logging=never)
    with pytest.raises(InvalidInput, match="row 1"):
        cLPI().prepare(without)


def test_propensities_may_come_from_the_logging_policy():
    log = LoggedData(BARE.contexts, BARE.actions, BARE.rewards, K, logging=FULL.logging)
    np.testing.assert_array_equal(IPS().prepare(log).columns["propensity"], [0.25] * 3)


def test_every_name_has_a_line_and_an_objective():
    assert set(names()) == set(summaries()) and all(summaries().values())
    assert set(names()) - set(names(learnable=True)) == {"switch"}
    needed = {"model": MODEL, "labels": [0, 0, 1, 1], "embeddings": np.eye(K), "k": 2}
    for name in names():
        told = {key: value for key, value in needed.items() if key in parameters_of(name)}
        if name == "pc":
            told["k"] = 2
        objective = named(name, told).resolved(10_000)
        assert objective.name == name
        assert objective.label.startswith(name)
        assert all(isinstance(value, (int, float)) for value in objective.settings.values())
        objective.prepare(FULL).computed(3)
    assert named("CLPI", {"tau": 0.3}).settings == named("clpi:0.3").settings == {"tau": 0.3}
    assert named("cips", {"tau": 0.3}).settings == named("ips-max:0.3").settings == {"tau": 0.3}
    assert named("es").resolved(10_000).settings == {"alpha": pytest.approx(0.9)}
    assert named("sn_cips:0.1").label == "sn-cips (tau=0.1)" and named("snips").name == "snips"
    assert type(named("potec", {"labels": [0, 1], "model": MODEL})) is OffCEM
    assert SampleVariance(cIPS(0.1), 2.0).settings == {"tau": 0.1, "weight": 2.0}
    assert IPS(ES(0.3).correction).label == "es (alpha=0.3)"
    for name, parameters, what in (
        ("of tomorrow", {}, "one of .*clpi.*cips"),
        ("sn-ls", {}, "one of"),
        ("clpi", {"beta": 1}, "beta.*tau"),
        ("lpi", {"tau": 1}, "none"),
        ("lpi:0.1", {}, "no parameter"),
        ("snips:0.1", {}, "no parameter"),
        ("cips:much", {}, "cips:0.01"),
        ("dr", {}, "model"),
        ("mips", {}, "labels"),
    ):
        with pytest.raises(InvalidInput, match=what):
            named(name, parameters)


def test_what_is_no_estimator_is_refused_by_name():
    for one in (cLPI(), "clpi", LPI(), RegKL(), BPR(), Distance(IPS(), 1.0), SampleVariance(IPS(), 1.0), "bpr:3"):
        with pytest.raises(InvalidInput, match="an objective and not an estimator of a value"):
            as_estimator(one)
    for other in (3, None, ES(0.5).correction):
        with pytest.raises(InvalidInput, match="estimators"):
            as_estimator(other)


def test_a_name_of_no_estimator_is_answered_with_estimators():
    for wrong in ("foo", "foo:1", "sn-ls"):
        with pytest.raises(InvalidInput, match=r"^estimators: expected one of ") as refusal:
            as_estimator(wrong)
        listed = refusal.value.expected.removeprefix("one of ").split(", ")
        assert {"ips", "snips", "cips", "dr", "mips"} <= set(listed) and not {"clpi", "bpr", "lpi"} & set(listed)
        for name in listed:
            needed = {"model": MODEL, "labels": np.zeros(K, dtype=int), "embeddings": np.eye(K), "k": 2}
            assert as_estimator(name, needed)
        with pytest.raises(InvalidInput, match=r"^objective: expected one of .*clpi"):
            named(wrong)


def test_linear_models_show_their_weights_and_others_do_not():
    from manyarms.beliefs import Logistic

    np.testing.assert_array_equal(DM(MODEL).prepare(FULL).model.weights, MODEL.parameters)
    assert DM(LinearModel(np.ones((K, 2)), Logistic())).prepare(FULL).model.weights is None


def test_objectives_need_no_torch():
    code = "import sys, manyarms.estimators; assert 'torch' not in sys.modules and 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
