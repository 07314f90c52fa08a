"""That the default agent learns what is right for whom, and that evaluations say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from live.making import Clock
from manyarms.service.personalizer import default_agent, evaluating, evaluations
from manyarms.service.personalizer.features import phi, tokens
from service.personalizer.calling import asking, serving, until
from service.personalizer.test_contract import CONTRACT

DEVICES, MEALS = ["mobile", "desktop", "tablet"], ["pasta", "salad", "soup"]


def _is_right(device: str, meal: str) -> bool:
    return DEVICES.index(device) == MEALS.index(meal)


def _rewarded(rng: np.random.Generator, device: str, meal: str) -> float:
    return float(rng.random() < (0.8 if _is_right(device, meal) else 0.2))


def _features(device: str, hour: int) -> np.ndarray[Any, Any]:
    context = tokens([{"user": {"device": device}}, {"time": {"hour": hour}}], "")
    return phi(context, [(meal, tokens([{"kind": meal[0], "price": 10}], "")) for meal in MEALS])


def test_greedy_choices_beat_uniform_ones_after_some_hundred_events() -> None:
    """Uniform choices are right a third of the time: over seeds, greedy ones far more often."""
    right = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        agent = default_agent(seed=seed, catalogue=MEALS)
        for _ in range(40):
            rows, taken, rewards = [], [], []
            for _ in range(10):
                device, hour = str(rng.choice(DEVICES)), int(rng.integers(24))
                Z = _features(device, hour)
                meal = str(agent.decide(action_contexts=Z, candidates=MEALS))
                rows.append(Z[MEALS.index(meal)])
                taken.append(meal)
                rewards.append(_rewarded(rng, device, meal))
            agent.observe(np.array(rows), taken, rewards)
        weights = agent.posterior(MEALS[0])[0]
        greedy = [MEALS[int((_features(device, 12) @ weights).argmax())] for device in DEVICES]
        right.append(np.mean([_is_right(device, meal) for device, meal in zip(DEVICES, greedy, strict=True)]))
    assert np.mean(right) > 0.7


def test_a_new_action_is_known_by_its_features() -> None:
    """What was learned of warm meals holds for a warm meal that nobody has ordered."""
    agent = default_agent(seed=0, catalogue=["a", "b", "c", "d"])
    kinds = {"a": "warm", "b": "cold", "c": "warm", "d": "cold"}
    rows = phi({}, [(name, tokens([{"kind": kind}], "")) for name, kind in kinds.items()])
    agent.observe(np.repeat(rows[:2], 20, axis=0), ["a"] * 20 + ["b"] * 20, [1.0] * 20 + [-1.0] * 20)
    scores = rows @ agent.posterior("a")[0]
    assert scores[2] > scores[3]


def test_it_learns_over_http_and_evaluations_say_so() -> None:
    clock = Clock(1.8e9)
    rng = np.random.default_rng(0)
    with serving(default_agent(exploration=0.3, seed=1), clock, wait=5.0) as service:
        for number in range(300):
            device = str(rng.choice(DEVICES))
            answer = service.rank(asking(*MEALS, contextFeatures=[{"user": {"device": device}}]))
            service.reward(answer["eventId"], _rewarded(rng, device, answer["rewardActionId"]))
            clock.now += 6.0
            if number % 20 == 0:
                service.learned()
        service.rank(asking())
        service.learned()
        greedy = {}
        for device in DEVICES:
            answer = service.rank(asking(*MEALS, contextFeatures=[{"user": {"device": device}}]))
            greedy[device] = answer["ranking"][0]["id"]
        assert sum(_is_right(device, meal) for device, meal in greedy.items()) >= 2
        assert service.call("PUT", "/evaluations/e", CONTRACT, preview=True).status_code == 200
        until(lambda: bool(service.call("GET", "/evaluations/e", preview=True).json()["status"] != "Running"))
        body = service.call("GET", "/evaluations/e", preview=True).json()
        assert body["status"] == "Succeeded"
        found = {one["policySource"]: one["summary"] for one in body["content"]["value"]}
        # the truth: 0.4 for the first action and for random ones; what was deployed is better
        for name in ("Baseline", "Random"):
            low, high = found[name]["confidenceInterval"]
            assert low <= 0.4 <= high
            assert found[name]["expectedReward"] == pytest.approx(0.4, abs=0.25)
        assert found["Online"]["expectedReward"] > 0.4


def test_only_events_that_have_waited_are_evaluated() -> None:
    clock = Clock(1.8e9)
    with serving(clock=clock) as service:
        service.reward(service.rank(asking())["eventId"], 1.0)
        clock.now += 601.0
        service.reward(service.rank(asking())["eventId"], 1.0)  # it still waits
        service.rank(asking(deferActivation=True))
        service.call("PUT", "/evaluations/e", CONTRACT, preview=True)
        until(lambda: bool(service.call("GET", "/evaluations/e", preview=True).json()["status"] == "Succeeded"))
        body = service.call("GET", "/evaluations/e", preview=True).json()
        assert body["description"].startswith("1 events; 2 left out")


def test_without_a_default_nothing_is_evaluated() -> None:
    """Events with a reward are not like those without: their mean is nobody's value."""
    clock = Clock(1.8e9)
    with serving(clock=clock, default=None) as service:
        for number in range(4):
            event = service.rank(asking())["eventId"]
            if number % 2:
                service.reward(event, 1.0)
        clock.now += 601.0
        service.rank(asking())
        service.call("PUT", "/evaluations/e", CONTRACT, preview=True)
        until(lambda: bool(service.call("GET", "/evaluations/e", preview=True).json()["status"] == "Succeeded"))
        body = service.call("GET", "/evaluations/e", preview=True).json()
        assert body["description"].startswith("0 events; 5 left out")


def test_intervals_of_each_part_have_its_value_in_them_and_hold_as_often_as_they_say() -> None:
    """Against brute force: values by weights that are made to sum to 1, of a policy that plays what was logged at random."""
    rng, held, repeats = np.random.default_rng(3), 0, 400
    for _ in range(repeats):
        running = evaluating._Running((-1.0, 1.0))
        for _ in range(200):
            p = float(rng.uniform(0.2, 0.8))
            taken = rng.random() < p
            running.see(0.0, taken / p, float(rng.choice([-1.0, 1.0], p=[0.1, 0.9])))
        [row] = running.rows()
        value = evaluations._value(row)
        low, high = evaluations._normal(row, (-1.0, 1.0))
        assert value is not None and -1.0 <= low <= value <= high <= 1.0
        held += low <= 0.8 <= high
    assert held > 0.88 * repeats  # of 95 % five standard errors are 0.055, and normal ends are a little short
    alone = evaluating._Running((-1.0, 1.0))
    alone.see(0.0, 1.0, 0.5)
    assert evaluations._normal(alone.rows()[0], (-1.0, 1.0)) == (-1.0, 1.0)


def test_random_choices_are_not_evaluated_where_only_the_baseline_was_shown() -> None:
    clock = Clock(1.8e9)
    with serving(clock=clock) as service:
        service.configure(learningMode="Apprentice")
        for _ in range(3):
            service.reward(service.rank(asking())["eventId"], 1.0)
        clock.now += 601.0
        service.rank(asking())
        service.call("PUT", "/evaluations/e", CONTRACT, preview=True)
        until(lambda: bool(service.call("GET", "/evaluations/e", preview=True).json()["status"] == "Succeeded"))
        values = service.call("GET", "/evaluations/e", preview=True).json()["content"]["value"]
        found = {one["policySource"]: one["summary"]["expectedReward"] for one in values}
        assert found == {"Online": 1.0, "Baseline": 1.0, "Random": None}


@pytest.mark.parametrize("window", ["Expanding", "Rolling"])
def test_time_series(window: str) -> None:
    clock = Clock(1.8e9)
    with serving(clock=clock) as service:
        for reward in (0.0, 1.0):
            for _ in range(4):
                service.reward(service.rank(asking())["eventId"], reward)
            clock.now += 3600.0
        service.rank(asking())
        service.call("PUT", "/evaluations/e", CONTRACT, preview=True)
        until(lambda: bool(service.call("GET", "/evaluations/e", preview=True).json()["status"] == "Succeeded"))
        asked = {"intervalInMinutes": "60", "window": window}
        content = service.call("GET", "/evaluations/e", preview=True, params=asked).json()["content"]
        values = [one["expectedReward"] for one in content["value"][0]["timeseries"]["data"]]
        assert content["intervalInMinutes"] == 60
        assert values == ([0.0, 0.5] if window == "Expanding" else [0.0, 1.0])
        for wrong in ({"intervalInMinutes": "7"}, {"window": "Sliding"}, {"startTime": "soon"}):
            assert service.call("GET", "/evaluations/e", preview=True, params=wrong).status_code == 400
