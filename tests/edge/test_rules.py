"""The law of each rule is what it says, whatever is left out, and follows from the bundle, the id and the question alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from edge.making import IDS, KEY, D, a_policy
from manyarms.edge import EdgePolicy, scores
from manyarms.edge.header import RULES
from manyarms.errors import InvalidInput, LiveError, UnknownAction

REFUSED = 1e-6  # a statistical test refuses at this probability: no seed decides
X = np.array([0.7, -1.1, 0.4])
QUESTIONS: list[dict[str, Any]] = [
    {}, {"candidates": ["fig", "apple", "7", "plum"]}, {"exclude": ["pear", "ké", "nobody"]},
    {"candidates": ["fig", "apple", "7"], "exclude": ["apple"]}, {"candidates": ["6"]},
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("asked", QUESTIONS)
def test_actions_come_as_often_as_their_propensities_say(rule: str, asked: dict[str, Any]) -> None:
    policy = a_policy(rule)
    law = policy.law(X, **asked)
    assert sum(law.values()) == pytest.approx(1.0)
    allowed = [one for one in asked.get("candidates", IDS) if one not in asked.get("exclude", ())]
    assert sorted(law) == sorted(allowed)
    number = 2000
    came = dict.fromkeys(law, 0)
    for event in range(number):
        made = policy.decide(X, f"event {event}", **asked)
        assert made.propensity == pytest.approx(law[made.action], rel=1e-12)
        came[made.action] += 1
    likely = [one for one in law if law[one] * number >= 5]
    expected = np.array([law[one] * number for one in likely] + [1e-9])
    counts = np.array([came[one] for one in likely] + [1e-9])
    rest = number - expected.sum()
    if rest > 1e-6:  # what is rare, together
        expected[-1], counts[-1] = rest, number - counts.sum()
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > REFUSED


@pytest.mark.parametrize("rule", RULES)
def test_the_order_of_filters_does_not_matter_and_reading_changes_nothing(rule: str) -> None:
    policy = a_policy(rule)
    again = EdgePolicy.read(policy.to_bytes(KEY), KEY.public)
    assert again.id == policy.id
    for event in range(50):
        made = policy.decide(X, str(event), candidates=["fig", "7", "plum"])
        other = again.decide(X.tolist(), str(event), candidates=["plum", "fig", "7"])
        assert (made.action, made.propensity, made.greedy) == (other.action, other.propensity, other.greedy)


def test_softmax_is_the_softmax_of_the_scores() -> None:
    policy = a_policy("softmax", temperature=0.5)
    table = np.random.default_rng(0).normal(size=(1, len(IDS), D))[0].astype(np.float32).astype(float)
    mass = np.exp(table @ X / 0.5)
    np.testing.assert_allclose(list(policy.law(X).values()), mass / mass.sum(), rtol=1e-12)


def test_epsilon_greedy_gives_the_rest_to_the_best_score() -> None:
    policy = a_policy("epsilon-greedy", epsilon=0.3)
    table = np.random.default_rng(0).normal(size=(1, len(IDS), D))[0]
    best = IDS[int((table @ X).argmax())]
    assert policy.law(X) == pytest.approx({one: 0.3 / 7 + 0.7 * (one == best) for one in IDS})
    flags = [policy.decide(X, str(event)) for event in range(100)]
    assert all(made.greedy is (made.action == best) for made in flags)


def test_an_ensemble_counts_its_draws_and_is_uniform_where_a_context_tells_nothing() -> None:
    policy = a_policy("ensemble", draws=10, epsilon=0.1)
    tables = np.random.default_rng(0).normal(size=(10, len(IDS), D))
    heads = (tables @ X).argmax(axis=1)
    expected = {one: 0.1 / 7 + 0.9 * float((heads == place).mean()) for place, one in enumerate(IDS)}
    assert policy.law(X) == pytest.approx(expected)
    assert policy.law(np.zeros(D)) == pytest.approx(dict.fromkeys(IDS, 1 / 7))
    assert {policy.decide(np.zeros(D), str(event)).action for event in range(200)} == set(IDS)


def test_equal_scores_go_to_the_first() -> None:
    policy = EdgePolicy(a_policy(epsilon=0.0).header, np.ones((1, 3, D)), ["b", "a", "c"])
    assert policy.decide([1, 2, 3], "x").action == "b"
    assert policy.decide([1, 2, 3], "x", exclude=["b"]).action == "a"


@pytest.mark.parametrize("factor", [1e-30, 1.0, 1e30, 1e90])
def test_the_search_in_float32_finds_what_sums_in_order_find(factor: float) -> None:
    """Rows that differ in their last bits, and some that are equal: whatever a fast product makes of them."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(4, 1, 16)).astype(np.float32)
    near = np.nextafter(base, np.float32(np.inf) * np.sign(rng.normal(size=(4, 3000, 16))).astype(np.float32))
    tables = np.ascontiguousarray(np.concatenate([near, near[:, ::-1]], axis=1), dtype=np.float32)
    largest = np.abs(tables).max(axis=1).astype(float)
    for _ in range(8):
        x = rng.normal(size=16) * factor
        barred = np.unique(rng.integers(6000, size=50))
        expected = []
        for table in tables:
            told = [
                sum((float(t) * v for t, v in zip(row[1:], x[1:], strict=True)), float(row[0]) * x[0])
                for row in table[:40]
            ]
            found = scores.in_order(table, x)
            assert found[:40].tolist() == told  # one product and one sum after the other, as Python's floats do
            found[barred] = -np.inf
            expected.append(int(found.argmax()))
        assert scores.best(tables, x, barred, largest).tolist() == expected


def test_numbered_actions() -> None:
    policy = EdgePolicy.read(a_policy("softmax", ids=[4, 7, -2]).to_bytes(KEY), KEY.public)
    made = policy.decide(X, "x", candidates=np.array([7, -2]))
    assert type(made.action) is int and made.candidates == (7, -2)
    with pytest.raises(UnknownAction, match="candidates"):
        policy.decide(X, candidates=[5])
    with pytest.raises(UnknownAction, match="candidates"):
        policy.decide(X, candidates=["7"])
    with pytest.raises(UnknownAction, match="candidates"):
        policy.decide(X, candidates=[True])


@pytest.mark.parametrize(
    ("argument", "asked"),
    [
        ("context", {"context": [1.0, 2.0]}),
        ("context", {"context": [1.0, 2.0, float("nan")]}),
        ("context", {"context": {"age": 3}}),
        ("context", {"context": "text"}),
        ("id", {"id": ""}),
        ("id", {"id": "x" * 257}),
        ("id", {"id": "\ud800"}),
        ("id", {"id": 7}),
        ("candidates", {"candidates": []}),
        ("candidates", {"candidates": ["fig", "fig"]}),
        ("candidates", {"candidates": "fig"}),
        ("candidates", {"candidates": ["fig"], "exclude": ["fig"]}),
        ("exclude", {"exclude": IDS}),
        ("exclude", {"exclude": [None]}),
    ],
)
def test_wrong_questions_are_refused_by_name(argument: str, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        a_policy().decide(**{"context": X, "id": "x", **asked})
    assert refused.value.argument == argument


def test_what_has_expired_decides_nothing() -> None:
    policy = a_policy(created=0.0, expires=1.0)
    with pytest.raises(LiveError, match="expired at 1970-01-01"):
        policy.decide(X)


@pytest.mark.parametrize("rule", RULES)
def test_a_decision_is_checked_by_making_it_again(rule: str) -> None:
    policy = a_policy(rule)
    for event in range(40):
        made = policy.decide(X, str(event), exclude=["6"])
        told = {"context": X, "id": made.id, "action": made.action, "propensity": made.propensity, "exclude": ["6"]}
        again = policy.check(**told)
        assert (again.action, again.propensity, again.greedy) == (made.action, made.propensity, made.greedy)
        policy.check(**{**told, "propensity": made.propensity * (1 + 1e-12)})
        for wrong in (
            {"propensity": made.propensity * 0.999},
            {"action": "nobody"},
            {"action": 7},
            {"propensity": 2.0},
        ):
            with pytest.raises(InvalidInput):
                policy.check(**{**told, **wrong})
        other = next(one for one in policy.law(X, exclude=["6"]) if one != made.action)
        with pytest.raises(InvalidInput, match="action"):
            policy.check(**{**told, "action": other})


def test_a_softmax_may_round_to_the_neighbour_of_the_action_that_was_drawn() -> None:
    """The border of two actions is moved to where an event draws its point."""
    policy = a_policy("softmax")
    point = policy._words("event")[3] / 2**64
    table = np.zeros((1, 2, D), dtype=np.float64)
    table[0, :, 0] = np.log([point, 1 - point])
    moved = EdgePolicy(policy.header, table, ["left", "right"])
    law = moved.law([1.0, 0.0, 0.0])
    border = law["left"]
    assert abs(border - point) < 1e-6  # parameters are rounded to float32: not as near as rounding alone
    for action, chance in law.items():
        if moved.decide([1.0, 0.0, 0.0], "event").action != action:
            with pytest.raises(InvalidInput):
                moved.check([1.0, 0.0, 0.0], "event", action, chance)
    scale = np.log(point / (1 - point)) / (float(np.float32(table[0, 0, 0])) - float(np.float32(table[0, 1, 0])))
    for action, chance in moved.law([scale, 0.0, 0.0]).items():  # the context makes up for what they lack
        assert moved.check([scale, 0.0, 0.0], "event", action, chance).action == action


def test_rows_become_the_contexts_that_the_log_has() -> None:
    from manyarms.logs import Encoding

    rows = {
        "age": [20.0, None, 41.5, 33.0], "town": ["Ulm", "Bonn", None, "Ulm"], "place": [1.0, 2.0, 2.0, 10.0],
        "where": np.arange(8.0).reshape(4, 2),
    }  # fmt: skip
    encoder = Encoding(categorical=["place"]).fit(rows, list(rows))
    told = replace(a_policy().header, dim=encoder.dim, features=tuple(encoder.names), encoder=encoder.as_json())
    policy = EdgePolicy(told, np.ones((1, 2, encoder.dim)), ["a", "b"])
    policy = EdgePolicy.read(policy.to_bytes(KEY), KEY.public)
    asked: list[dict[str, Any]] = [
        {"age": 20, "town": "Ulm", "place": 2, "where": [0.1, 0.2]},
        {"age": None, "town": None, "place": "10", "where": [3, 4], "more": 1},
        {"age": float("nan"), "town": "Rome", "place": 2.5, "where": np.array([1e3, 2.0])},
        {"age": True, "town": "Bonn", "place": None, "where": (0.3, 1 / 3)},
    ]
    for row in asked:
        assert policy.vector(row).tolist() == encoder.row(row).tolist()
    for wrong in ({"age": "x"}, {"age": 1e101}, {"town": 3}, {"where": [1.0]}, {"where": "ab"}, {"place": [1]}):
        row = {**asked[0], **wrong}
        for encode in (policy.vector, encoder.row):
            with pytest.raises(InvalidInput):
                encode(row)
    with pytest.raises(InvalidInput, match="no column 'where'"):
        policy.decide({"age": 1, "town": "Ulm", "place": 2})
