"""Bodies that mean something: what a well-behaved application would send, about events, actions and arms that there are.

`service.fuzzing` puts them in the place of some made-up bodies, so that calls are done and not only refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from live import tortured
from service.fuzz_checks import SECRET, SECRET_NUMBER


@dataclass
class Known:
    """What there is: ids of events, actions and arms, the newest at the end."""

    events: list[Any] = field(default_factory=list)
    actions: list[Any] = field(default_factory=lambda: list(range(tortured.ACTIONS)))
    arms: list[Any] = field(default_factory=lambda: ["agent", *tortured.OTHERS])
    evaluations: list[Any] = field(default_factory=list)

    def one(self, what: str, rng: random.Random) -> Any:
        """One of them, more likely a new one."""
        known = getattr(self, what)[-rng.choice([3, 30, 300]) :]
        return rng.choice(known) if known else "nothing"

    def learn(self, told: Any) -> None:
        """Ids of an answer."""
        if not isinstance(told, dict):
            return
        event = told.get("eventId", told.get("id"))
        if isinstance(event, str) and {"actions", "ranking", "slots"} & set(told):
            self.events.append(event)
        elif isinstance(event, str) and "evaluationType" in told:
            self.evaluations.append(event)
        for one in told.get("decisions") or ():
            self.learn(one)
        self.actions += [one for one in told.get("ids") or () if isinstance(one, int | str)]


def context(rng: random.Random) -> list[float]:
    """One that fits."""
    return [rng.uniform(-1, 1) for _ in range(tortured.DIM)]


def _question(known: Known, rng: random.Random) -> dict[str, Any]:
    asked: dict[str, Any] = {"context": context(rng)}
    if rng.random() < 0.1:  # one that does not fit, and must not be sent back
        asked["context"] = rng.choice(
            [{"age": SECRET}, {"a": [SECRET_NUMBER]}, [SECRET_NUMBER], [1, [SECRET], 2], SECRET]
        )
    elif rng.random() < 0.1:
        rows = [context(rng) for _ in range(3)]
        asked = {"action_contexts": rows, "candidates": rng.sample(range(tortured.ACTIONS), 3)}
    for name, value in {
        "id": rng.choice([known.one("events", rng), f"event {rng.randrange(10**9)}"]),
        "k": rng.randint(1, 4),
        "unit": f"unit {rng.randrange(9)}",
        "deferred": True,
        "propensity": True,
        "exclude": [known.one("actions", rng)],
    }.items():
        if rng.random() < 0.2:
            asked[name] = value
    return asked


def _reward(known: Known, rng: random.Random) -> dict[str, Any]:
    given: dict[str, Any] = {"event": known.one("events", rng), "value": rng.choice([0, 1, 0.5, -3, 7e5])}
    if rng.random() < 0.3:
        given["id"] = rng.choice(tortured.REWARD_IDS)
    if rng.random() < 0.2:
        given["action"] = known.one("actions", rng)
    return given


def _shares(known: Known, rng: random.Random) -> dict[str, Any]:
    arms = rng.sample(["agent", *tortured.OTHERS], rng.randint(1, 2))
    shares = dict(zip(arms, [1.0] if len(arms) == 1 else [0.25, 0.75], strict=True))
    return {"shares": shares, **rng.choice([{}, {}, {"shadows": ["other"]}, {"holdout": 0.1, "holdout_arm": "agent"}])}


def _rank(known: Known, rng: random.Random) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "actions": [
            {"id": f"a{n}", "features": [{"topic": rng.choice("xyz"), "price": n}]} for n in range(rng.randint(1, 5))
        ],
        "contextFeatures": [{"device": rng.choice(["phone", "tablet"]), "nested": {"hour": rng.randrange(24)}}],
    }
    for name, value in {
        "eventId": rng.choice([known.one("events", rng), f"event-{rng.randrange(10**9)}"]),
        "deferActivation": True,
        "excludedActions": ["a1"],
    }.items():
        if rng.random() < 0.3:
            asked[name] = value
    return asked


def _rank_slots(known: Known, rng: random.Random) -> dict[str, Any]:
    asked = _rank(known, rng)
    asked.pop("excludedActions", None)
    number = rng.randint(1, len(asked["actions"]))
    asked["slots"] = [{"id": f"s{n}", "baselineAction": f"a{n}", "features": [{"size": n}]} for n in range(number)]
    return asked


def _configuration(known: Known, rng: random.Random) -> dict[str, Any]:
    return {
        "rewardWaitTime": rng.choice(["PT10M", "PT1H"]), "defaultReward": rng.choice([0, 0.5]), "rewardAggregation": "earliest",
        "explorationPercentage": rng.choice([0.1, 0.4]), "modelExportFrequency": "PT5M", "logRetentionDays": -1,
        "learningMode": "Online", "modelRetrainDays": 0,
    }  # fmt: skip


def _evaluation(known: Known, rng: random.Random) -> dict[str, Any]:
    times = {"startTime": "2020-01-01T00:00:00Z", "endTime": f"20{rng.randint(30, 90)}-01-01T00:00:00Z"}
    return {"name": f"evaluation {rng.randrange(99)}", **times, "policies": []}


Body = Callable[[Known, random.Random], Any]
BODIES: dict[str, Body] = {
    "POST /v1/decide": _question,
    "POST /v1/decide/batch": lambda k, r: {"decisions": [_question(k, r) for _ in range(r.randint(1, 4))]},
    "POST /v1/reward": _reward,
    "POST /v1/reward/batch": lambda k, r: {"rewards": [_reward(k, r) for _ in range(r.randint(1, 4))]},
    "POST /v1/activate": lambda k, r: {"event": k.one("events", r)},
    "POST /v1/catalogue": lambda k, r: {"weights": tortured.weights_of(r.randrange(9))},
    "PATCH /v1/catalogue/{action}": lambda k, r: r.choice(
        [{"retired": r.random() < 0.5}, {"weights": tortured.weights_of(r.randrange(9))[0]}]
    ),
    "POST /v1/catalogue/retire": lambda k, r: {"actions": [r.randrange(6)]},
    "POST /v1/catalogue/reinstate": lambda k, r: {"actions": [r.randrange(6)]},
    "POST /v1/agents": lambda k, r: {"name": (name := r.choice(tortured.OTHERS)), "folder": name},
    "POST /v1/agents/{name}/challenge": lambda k, r: {},
    "PUT /v1/deployment": _shares,
    "PATCH /v1/settings": lambda k, r: r.choice([{"wait": 3600}, {"default": 0.25}, {"aggregate": "max"}]),
    "POST /v1/admin/compact": lambda k, r: {"keep": r.choice([0, 5, 3600]), "dry_run": r.random() < 0.8},
    "POST /v1/edge/{agent}/decisions": lambda k, r: {
        "decisions": [
            {
                "id": f"edge {r.randrange(10**9)}",
                "context": context(r),
                "action": 1,
                "propensity": 0.5,
                "bundle": "0" * 32,
            }
        ]
    },
    "rank": _rank,
    "multislot/rank": _rank_slots,
    "multislot/events/{eventId}/reward": lambda k, r: {
        "reward": [{"slotId": f"s{r.randrange(3)}", "value": r.random()}]
    },
    "events/{eventId}/reward": lambda k, r: {"value": r.choice([0, 0.5, 1])},
    "configurations/service": _configuration,
    "evaluations": _evaluation,
    "evaluations/{evaluationId}": _evaluation,
}


def meaningful(method: str, path: str) -> Body | None:
    """What makes a body for a call, if something does."""
    if not path.startswith("/personalizer/"):
        return BODIES.get(f"{method.upper()} {path}")
    return next((BODIES[name] for name in sorted(BODIES, key=len, reverse=True) if path.endswith(name)), None)
