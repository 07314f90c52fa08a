"""What the API's description (OpenAPI) says of Personalizer's calls."""

from __future__ import annotations

from typing import Any

from manyarms.service.personalizer.bodies import LONGEST, MOST_ACTIONS, MOST_SLOTS

ABOUT = {
    400: "The request is refused",
    401: "No key, or one that is not known",
    403: "The key lacks the scope",
    404: "No such event or evaluation",
    409: "The id was used with another body",
    413: "The body is too large",
    421: "Called by a name that is not this service's",
    429: "More requests than the caller may make",
    500: "An unexpected error",
    503: "Too much is waiting, or the store cannot be reached",
}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "target": {"type": ["string", "null"]},
                "details": {"type": "array", "items": {"type": "object"}},
                "innerError": {"type": ["object", "null"]},
            },
        }
    },
}
_ID = {"type": "string", "minLength": 1, "maxLength": LONGEST}
_FEATURES = {"type": "array", "items": {"type": "object"}}
_IDS = {"type": "array", "items": {"type": "string"}}
_ACTIONS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_ACTIONS,
    "items": {"type": "object", "required": ["id", "features"], "properties": {"id": _ID, "features": _FEATURES}},
}
_REWARD = {"type": "number", "minimum": -1, "maximum": 1}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


RANK = _object(
    ["actions"],
    actions=_ACTIONS,
    contextFeatures=_FEATURES,
    excludedActions=_IDS,
    eventId={**_ID, "type": ["string", "null"]},
    deferActivation={"type": "boolean"},
)
SLOTS = _object(
    ["actions", "slots"],
    actions=_ACTIONS,
    slots={
        "type": "array",
        "minItems": 1,
        "maxItems": MOST_SLOTS,
        "items": _object(
            ["id", "baselineAction"], id=_ID, baselineAction=_ID, features=_FEATURES, excludedActions=_IDS
        ),
    },
    contextFeatures=_FEATURES,
    eventId={**_ID, "type": ["string", "null"]},
    deferActivation={"type": "boolean"},
)
REWARD = _object(["value"], value=_REWARD)
SLOT_REWARDS = _object(
    ["reward"],
    reward={"type": "array", "minItems": 1, "items": _object(["slotId", "value"], slotId=_ID, value=_REWARD)},
)
CONFIGURATION = _object(
    [
        "rewardWaitTime", "defaultReward", "rewardAggregation", "explorationPercentage", "modelExportFrequency",
        "logRetentionDays",
    ],
    rewardWaitTime={"type": "string", "examples": ["PT10M"]},
    defaultReward=_REWARD,
    rewardAggregation={"type": "string", "enum": ["earliest", "sum"]},
    explorationPercentage={"type": "number", "minimum": 0, "maximum": 1},
    modelExportFrequency={"type": "string", "examples": ["PT5M"]},
    logRetentionDays={"type": "integer", "minimum": -1},
    modelRetrainDays={"type": "integer", "minimum": 0},
    learningMode={"type": "string", "enum": ["Online", "Apprentice", "LoggingOnly"]},
    isInferenceExplainabilityEnabled={"type": "boolean"},
)  # fmt: skip
POLICY = _object(
    ["name", "arguments"],
    name={"type": "string", "minLength": 1, "maxLength": 256},
    arguments={"type": "string", "minLength": 1, "maxLength": 1024},
)
EVALUATION = _object(
    ["name", "startTime", "endTime", "policies"],
    name=_ID,
    startTime={"type": "string", "format": "date-time"},
    endTime={"type": "string", "format": "date-time"},
    policies={"type": "array", "maxItems": 0, "items": {"type": "object"}},
)


def refusals() -> dict[int | str, dict[str, Any]]:
    """The statuses that a call may refuse with."""
    return {
        status: {"description": text, "content": {"application/json": {"schema": _ERROR}}}
        for status, text in ABOUT.items()
    }


def extra(path: str, body: dict[str, Any] | None, preview: bool, query: tuple[str, ...]) -> dict[str, Any]:
    """Parameters and body of a call."""
    names = [part[1:-1].partition(":")[0] for part in path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [{"name": name, "in": "path", "required": True, "schema": _ID} for name in names]
    if preview:
        version = {"type": "string", "enum": ["2022-09-01-preview"]}
        parameters.append({"name": "api-version", "in": "query", "required": True, "schema": version})
    parameters += [{"name": name, "in": "query", "required": False, "schema": {"type": "string"}} for name in query]
    found: dict[str, Any] = {"parameters": parameters}
    if body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return found


__all__ = ["CONFIGURATION", "EVALUATION", "POLICY", "RANK", "REWARD", "SLOTS", "SLOT_REWARDS", "extra", "refusals"]
