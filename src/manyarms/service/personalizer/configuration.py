"""configurations/service: what counts as a reward, how much is explored, and who decides, changed while the service runs.

Personalizer reset its model when one of these changed. Here nothing is: they are operations of the live store, and events count
by what was agreed when they were decided.
"""

from __future__ import annotations

import math
import time
from threading import Lock
from typing import Any

from manyarms.live import Live
from manyarms.live.agent_arm import AgentView
from manyarms.live.deployment import BASELINE
from manyarms.service.personalizer.bodies import a_number, an_object
from manyarms.service.personalizer.durations import duration_of, seconds_of, text_of
from manyarms.service.personalizer.errors import PersonalizerError
from manyarms.service.personalizer.kept import Kept

CODE = "InvalidServiceConfiguration"
AGGREGATES = {"earliest": "first", "sum": "sum"}
MODES = ("Online", "Apprentice", "LoggingOnly")
SHORTEST, LONGEST = 5.0, 2 * 86_400.0  # seconds that a reward may be waited for
MOST_DAYS = 2**31 - 1
FRESH = 1.0  # seconds after which what another process may have changed is read again
REQUIRED = (
    "rewardWaitTime",
    "defaultReward",
    "rewardAggregation",
    "explorationPercentage",
    "modelExportFrequency",
    "logRetentionDays",
)
USUAL: dict[str, Any] = {
    "modelExportFrequency": "PT1S",
    "logRetentionDays": -1,
    "learningMode": "Online",
    "modelRetrainDays": 0,
    "isInferenceExplainabilityEnabled": False,
}


class Configuration:
    """The configuration of a service. Threads may share it."""

    def __init__(self, live: Live) -> None:
        self._live, self._kept = live, Kept(live, "configuration")
        self._lock = Lock()
        self._known: dict[str, Any] = self._kept.read()
        self._at = time.monotonic()

    def told(self) -> dict[str, Any]:
        """What has no place in the live store, a second old at most."""
        if time.monotonic() - self._at > FRESH:
            self._known, self._at = self._kept.read(), time.monotonic()
        return USUAL | self._known

    @property
    def mode(self) -> str:
        """Online, Apprentice or LoggingOnly: what the store deploys says whether the agent decides."""
        if BASELINE not in self._live.deployment.shares:
            return "Online"
        mode: str = self.told()["learningMode"]
        return "Apprentice" if mode == "Online" else mode

    def of_a_rank(self) -> tuple[str, bool]:
        """What a rank call needs to know: the mode, and whether answers are explained."""
        return self.mode, bool(self.told()["isInferenceExplainabilityEnabled"])

    def body(self) -> dict[str, Any]:
        """As clients get it."""
        settings, told = self._live.settings, self.told()
        spoken = {ours: theirs for theirs, ours in AGGREGATES.items()}
        return {
            "rewardWaitTime": duration_of(settings.wait),
            "defaultReward": settings.default if settings.default is not None else 0.0,
            "rewardAggregation": spoken.get(settings.aggregate, settings.aggregate),
            "explorationPercentage": self.exploration or 0.0,
            "modelExportFrequency": told["modelExportFrequency"],
            "logMirrorEnabled": False,
            "logMirrorSasUri": None,
            "logRetentionDays": told["logRetentionDays"],
            "lastConfigurationEditDate": told.get("lastConfigurationEditDate"),
            "learningMode": self.mode,
            "isAutoOptimizationEnabled": False,
            "autoOptimizationFrequency": None,
            "autoOptimizationStartDate": None,
            "modelRetrainDays": told["modelRetrainDays"],
            "isInferenceExplainabilityEnabled": told["isInferenceExplainabilityEnabled"],
        }

    @property
    def arm(self) -> str:
        """The agent that decides, or that looks on while the baseline does."""
        deployment = self._live.deployment
        shares = sorted(deployment.shares, key=lambda name: -deployment.shares[name])
        return next(name for name in (*shares, *deployment.shadows, *self._arms()) if name != BASELINE)

    def _arms(self) -> list[str]:
        return sorted(self._live.view.arms)

    @property
    def exploration(self) -> float | None:
        """The share of decisions that are uniform; None where the rule has none."""
        arm = self._live.view.arms[self.arm]
        found = getattr(arm.snapshot.decision, "epsilon", None) if isinstance(arm, AgentView) else None
        return None if found is None else float(found)

    def change(self, told: Any, preview: bool) -> dict[str, Any]:
        """Take over a configuration, all of it or nothing; what holds then."""
        wanted = checked(told, preview)
        with self._lock:
            self._check_exploration(wanted["explorationPercentage"])
            before = self.mode
            self._change_rewards(wanted)
            if wanted["explorationPercentage"] != (self.exploration or 0.0):
                self._live.explore(wanted["explorationPercentage"], arm=self.arm)
            mode = wanted.get("learningMode", before)
            own = {name: wanted[name] for name in USUAL if name in wanted} | {"learningMode": mode}
            own["lastConfigurationEditDate"] = text_of(time.time())
            self._known, self._at = self._kept.change(lambda kept: kept.update(own)), time.monotonic()
            if (mode == "Online") is not (before == "Online"):
                if mode == "Online":
                    self._live.deploy({self.arm: 1.0})
                else:
                    self._live.deploy({BASELINE: 1.0}, shadows=[self.arm])
        return self.body()

    def _check_exploration(self, wanted: float) -> None:
        if self.exploration is None and wanted != 0.0:
            text = "the agent that decides here has no share of uniform play that could be changed"
            raise PersonalizerError(400, CODE, text, "explorationPercentage")

    def _change_rewards(self, wanted: dict[str, Any]) -> None:
        settings = self._live.settings
        new: dict[str, Any] = {
            "aggregate": AGGREGATES[wanted["rewardAggregation"]],
            "default": wanted["defaultReward"],
            "wait": wanted["rewardWaitTime"],
        }
        if any(getattr(settings, name) != value for name, value in new.items()):
            self._live.change_settings(**new)


def checked(told: Any, preview: bool) -> dict[str, Any]:
    """A configuration with durations in seconds; whatever Personalizer refused is refused, with its code."""
    body = an_object(told, CODE)
    for name in (*REQUIRED, *(("modelRetrainDays",) if preview else ())):
        if body.get(name) is None:
            raise PersonalizerError(400, CODE, f"{name} is required", name)
    found: dict[str, Any] = {}
    wait = seconds_of(body["rewardWaitTime"])
    if wait is None or not SHORTEST <= wait <= LONGEST:
        text = "a duration of 5 seconds to 2 days, such as PT10M"
        raise PersonalizerError(400, "InvalidRewardWaitTime", text, "rewardWaitTime")
    found["rewardWaitTime"] = wait
    found["defaultReward"] = _between(body, "defaultReward", -1.0, 1.0)
    found["explorationPercentage"] = _between(body, "explorationPercentage", 0.0, 1.0)
    if body["rewardAggregation"] not in AGGREGATES:
        raise PersonalizerError(400, CODE, "earliest or sum", "rewardAggregation")
    found["rewardAggregation"] = body["rewardAggregation"]
    if not seconds_of(body["modelExportFrequency"]):
        raise PersonalizerError(400, CODE, "a duration, such as PT5M", "modelExportFrequency")
    found["modelExportFrequency"] = body["modelExportFrequency"]
    least = math.ceil(wait / 86_400.0) + 1
    days = _days(body, "logRetentionDays")
    if days is None or not (days == -1 or days >= least):
        text = f"-1 (for ever), or at least {least}: the waiting time and a day, in whole days"
        raise PersonalizerError(400, "InvalidLogRetentionDays", text, "logRetentionDays")
    found["logRetentionDays"] = days
    if body.get("modelRetrainDays") is not None:
        again = _days(body, "modelRetrainDays")
        if again is None or again < 0 or (days >= 0 and again > days):
            text = "from 0 to the number of days that logs are kept"
            raise PersonalizerError(400, "InvalidModelRetrainDays", text, "modelRetrainDays")
        found["modelRetrainDays"] = again
    mode = body.get("learningMode")
    if mode is not None:
        if mode not in MODES:
            raise PersonalizerError(400, CODE, f"one of {', '.join(MODES)}", "learningMode")
        found["learningMode"] = mode
    _refuse_absent(body, found)
    return found


def _refuse_absent(body: dict[str, Any], found: dict[str, Any]) -> None:
    """What is not here is refused rather than promised."""
    for name, instead in (
        ("logMirrorEnabled", "the log is in your own store: `manyarms export` writes it"),
        (
            "isAutoOptimizationEnabled",
            "learning settings are not optimised by themselves: challenge the agent with another",
        ),
    ):
        if body.get(name) not in (None, False):
            raise PersonalizerError(400, CODE, f"not here; {instead}", name)
    explains = body.get("isInferenceExplainabilityEnabled")
    if explains is not None:
        if not isinstance(explains, bool):
            raise PersonalizerError(400, CODE, "true or false", "isInferenceExplainabilityEnabled")
        found["isInferenceExplainabilityEnabled"] = explains


def _between(body: dict[str, Any], name: str, least: float, most: float) -> float:
    value = a_number(body[name])
    if value is None or not least <= value <= most:
        raise PersonalizerError(400, CODE, f"a number from {least:g} to {most:g}", name)
    return value


def _days(body: dict[str, Any], name: str) -> int | None:
    value = body[name]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and abs(value) <= MOST_DAYS else None


__all__ = ["Configuration", "checked"]
