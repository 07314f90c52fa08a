"""evaluations: off-policy evaluations that run in the background, kept in the store, told in both versions' forms."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from manyarms.errors import ManyArmsError, Overloaded
from manyarms.live import Live
from manyarms.service.personalizer import evaluating
from manyarms.service.personalizer.bodies import EVALUATION, LONGEST, a_list, an_object, writable
from manyarms.service.personalizer.durations import text_of, time_of
from manyarms.service.personalizer.errors import PersonalizerError
from manyarms.service.personalizer.evaluating import (
    COUNT,
    CROSSED,
    HIGH,
    LOW,
    SHOWN,
    SQUARES,
    START,
    VALUE,
    WEIGHT,
    WEIGHTS,
)
from manyarms.service.personalizer.kept import Kept
from manyarms.service.request_log import logger

MOST = 100  # evaluations that are kept; the oldest goes first
MOST_RUNNING = 8  # at once, one after the other
INTERVALS = (5, 60, 360, 720, 1440)  # minutes
STABLE_STATUS = {"Succeeded": "completed", "Running": "pending", "Failed": "failed"}
NAMES = {"Online": "Online Policy", "Baseline": "Baseline Policy", "Random": "Random Policy"}


class Evaluations:
    """The evaluations of a store."""

    def __init__(self, live: Live, going_on: Callable[[], bool] = lambda: True) -> None:
        """going_on: whether the service still runs; an evaluation is given up otherwise."""
        self._live, self._kept, self._going_on = live, Kept(live, "evaluations"), going_on
        self._turn = Lock()
        if any(one["status"] == "Running" for one in self._kept.read().values()):
            self._kept.change(_give_up)

    def create(self, told: Any, name: str | None = None) -> dict[str, Any]:
        """Begin one; name: its id, made here if it is None."""
        wanted = checked(told)
        self._check_logged(wanted["start"], wanted["end"])
        key = uuid.uuid4().hex if name is None else name
        begun = {**wanted, "status": "Running", "created": time.time()}

        def add(kept: dict[str, Any]) -> None:
            if key in kept:
                raise PersonalizerError(
                    409, "EvaluationAlreadyExists", "there is an evaluation with this id", "evaluationId"
                )
            if sum(one["status"] == "Running" for one in kept.values()) >= MOST_RUNNING:
                raise Overloaded(f"{MOST_RUNNING} evaluations are under way: try again later")
            while len(kept) >= MOST:
                del kept[min(kept, key=lambda one: float(kept[one]["created"]))]
            kept[key] = begun

        self._kept.change(add)
        Thread(target=self._run, args=(key, wanted), name="manyarms-evaluation", daemon=True).start()
        return {"id": key, **begun}

    def _check_logged(self, start: float, end: float) -> None:
        if not self._live.database.read("SELECT 1 FROM decisions WHERE at >= ? AND at <= ? LIMIT 1", (start, end)):
            raise PersonalizerError(
                400, "NoLogsExistInDateRange", "nothing was ranked between these times", "startTime"
            )

    def _run(self, key: str, wanted: dict[str, Any]) -> None:
        try:
            with self._turn:
                found = evaluating.evaluate(self._live, wanted["start"], wanted["end"], self._going_on)
            end: dict[str, Any] = {"status": "Succeeded", "found": found} if self._going_on() else {"status": "Failed"}
        except Exception as error:  # whatever it is, nobody shall wait for it for ever
            logger().warning("evaluation failed", extra={"reason": f"{type(error).__name__}: {error}"})
            end = {"status": "Failed"}
        with suppress(ManyArmsError):  # where the store is gone the next start gives it up
            self._finish(key, end)

    def _finish(self, key: str, end: dict[str, Any]) -> None:
        def put(kept: dict[str, Any]) -> None:
            if key in kept:  # nobody has deleted it meanwhile
                kept[key].update(end)

        self._kept.change(put)

    def get(self, key: str) -> dict[str, Any]:
        """One of them."""
        found = self._kept.read().get(key)
        if found is None:
            raise _unknown()
        return {"id": key, **found}

    def list(self) -> list[dict[str, Any]]:
        """All of them, the newest first."""
        found = [{"id": key, **one} for key, one in self._kept.read().items()]
        return sorted(found, key=lambda one: -one["created"])

    def delete(self, key: str) -> None:
        """Forget one."""

        def remove(kept: dict[str, Any]) -> None:
            if key not in kept:
                raise _unknown()
            del kept[key]

        self._kept.change(remove)


def _give_up(kept: dict[str, Any]) -> None:
    """What was running when the process ended will not be finished."""
    for one in kept.values():
        if one["status"] == "Running":
            one["status"] = "Failed"


def _unknown() -> PersonalizerError:
    return PersonalizerError(404, "EvaluationNotFound", "there is no evaluation with this id", "evaluationId")


def checked(told: Any) -> dict[str, Any]:
    """What an evaluation is to do."""
    body = an_object(told, EVALUATION)
    name = body.get("name")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST or not writable(name):
        raise PersonalizerError(400, EVALUATION, f"name is required, a text of 1 to {LONGEST} characters", "name")
    start, end = time_of(body.get("startTime")), time_of(body.get("endTime"))
    for field, value in (("startTime", start), ("endTime", end)):
        if value is None:
            raise PersonalizerError(400, EVALUATION, f"{field} is required, such as 2026-10-01T00:00:00Z", field)
    assert start is not None and end is not None
    if not start < end:
        raise PersonalizerError(400, EVALUATION, "endTime is not after startTime", "endTime")
    policies = a_list(body, "policies", EVALUATION)
    named = [an_object(one, EVALUATION, f"policies[{place}]").get("name") for place, one in enumerate(policies)]
    if len(set(map(str, named))) < len(named):
        raise PersonalizerError(400, "DuplicateCustomPolicyNames", "two policies have the same name", "policies")
    if policies or body.get("enableOfflineExperimentation") or body.get("enablePolicyOptimization"):
        text = (
            "learning settings of Vowpal Wabbit cannot be evaluated here. What was deployed, the baseline and random choices "
            "always are; other agents are compared by letting them look on (shadows) or challenge"
        )
        raise PersonalizerError(400, EVALUATION, text, "policies")
    return {"name": name, "start": start, "end": end}


# ---- as clients get them


def stable_form(one: dict[str, Any]) -> dict[str, Any]:
    """An evaluation as v1.0 has it: sums of each five minutes, and of all."""
    found = one.get("found", {}).get("policies", {})
    return {
        "id": one["id"],
        "name": one["name"],
        "startTime": text_of(one["start"]),
        "endTime": text_of(one["end"]),
        "jobId": one["id"],
        "status": STABLE_STATUS[one["status"]],
        "policyResults": [
            {
                "name": NAMES[policy],
                "arguments": "",
                "summary": [_sums(row, row[START], (row[LOW], row[HIGH])) for row in part["rows"]],
                "totalSummary": _sums(_added(part["rows"]), one["end"], part["interval"]),
            }
            for policy, part in found.items()
            if part["rows"]
        ],
        "featureImportance": [],
    }


def _sums(row: Sequence[float], at: float, ends: Sequence[float]) -> dict[str, Any]:
    return {
        "timeStamp": text_of(at),
        "ipsEstimatorNumerator": row[VALUE],
        "ipsEstimatorDenominator": row[COUNT],
        "snipsEstimatorDenominator": row[WEIGHT],
        "aggregateTimeWindow": "00:05:00",
        "nonZeroProbability": row[SHOWN],
        "confidenceInterval": (ends[1] - ends[0]) / 2,
        "sumOfSquares": row[SQUARES],
    }


def _added(rows: Sequence[Sequence[float]]) -> list[float]:
    return [rows[0][START] if rows else 0.0, *(sum(row[place] for row in rows) for place in range(COUNT, LOW))]


def preview_form(
    one: dict[str, Any],
    minutes: int = 5,
    window: str = "Expanding",
    start: float | None = None,
    end: float | None = None,
) -> dict[str, Any]:
    """An evaluation as the preview has it: a value with its interval, of all and as a time series."""
    first, last = one["start"] if start is None else start, one["end"] if end is None else end
    found, bounds = one.get("found", {}).get("policies", {}), one.get("found", {}).get("bounds", (-1.0, 1.0))
    body = details(one) | {"optimalPolicy": None, "description": _description(one), "content": None}
    if one["status"] == "Succeeded":
        body["content"] = {
            "startTime": text_of(first),
            "endTime": text_of(last),
            "intervalInMinutes": minutes,
            "value": [
                {
                    "name": NAMES[policy],
                    "slotId": None,
                    "arguments": "",
                    "policySource": policy,
                    "summary": {
                        "expectedReward": _value(_added(part["rows"])),
                        "confidenceInterval": list(part["interval"]),
                    },
                    "timeseries": {"data": _series(part["rows"], minutes, window, first, last, bounds)},
                }
                for policy, part in found.items()
            ],
        }
    return body


def details(one: dict[str, Any]) -> dict[str, Any]:
    """An entry of the preview's list."""
    return {
        "id": one["id"],
        "name": one["name"],
        "startTime": text_of(one["start"]),
        "endTime": text_of(one["end"]),
        "creationTime": text_of(one["created"]),
        "status": one["status"],
        "evaluationType": "Manual",
    }


def _description(one: dict[str, Any]) -> str:
    found = one.get("found")
    if found is None:
        return ""
    why = "never shown, still waiting, erased, without a default reward, or of a chance that is not exact"
    return f"{found['events']} events; {found['left_out']} left out: {why}"


def _value(row: Sequence[float]) -> float | None:
    """The value by weights that are made to sum to 1 (SNIPS)."""
    return row[VALUE] / row[WEIGHT] if row[WEIGHT] > 0 else None


def _series(
    rows: Sequence[Sequence[float]], minutes: int, window: str, first: float, last: float, bounds: Sequence[float]
) -> list[dict[str, Any]]:
    """Of everything so far (Expanding), or of each interval by itself (Rolling, with normal intervals)."""
    told: list[dict[str, Any]] = []
    so_far: list[float] | None = None
    step = minutes * 60
    groups: dict[int, list[Sequence[float]]] = {}
    for row in rows:
        groups.setdefault(int(row[START] // step) * step, []).append(row)
    for begin, part in groups.items():
        own = _added(part)
        so_far = own if so_far is None else _added([so_far, own])
        sums, ends = (so_far, (part[-1][LOW], part[-1][HIGH])) if window == "Expanding" else (own, _normal(own, bounds))
        if first - step < begin <= last:
            told.append({"timeStamp": text_of(begin), "expectedReward": _value(sums), "confidenceInterval": list(ends)})
    return told


def _normal(row: Sequence[float], bounds: Sequence[float]) -> tuple[float, float]:
    """Of `_value`: the sum of w^2 (r - v)^2 over the square of that of w is its variance, nearly. One event has none."""
    value = _value(row)
    if value is None or row[SHOWN] < 2:
        return bounds[0], bounds[1]
    squares = row[SQUARES] - 2.0 * value * row[CROSSED] + value * value * row[WEIGHTS]
    half = 1.96 * math.sqrt(max(0.0, squares)) / row[WEIGHT]
    return max(bounds[0], value - half), min(bounds[1], value + half)


__all__ = ["INTERVALS", "Evaluations", "details", "preview_form", "stable_form"]
