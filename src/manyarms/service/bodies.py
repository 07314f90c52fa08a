"""The forms of requests and answers under /v1, as the API's description (OpenAPI) shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

MOST_OF_AN_ID = 256
Id = Annotated[StrictStr, Field(min_length=1, max_length=MOST_OF_AN_ID)]
ActionId = Annotated[
    StrictInt | StrictStr, Field(description="An action: its id, or its number where actions have none.")
]
Number = StrictFloat | StrictInt
Entry = StrictStr | StrictFloat | StrictInt | StrictBool | None
Context = Annotated[
    dict[str, Entry | list[Number | None]] | list[Number],
    Field(description="Columns by name, where the agent has an encoder; otherwise a vector of numbers."),
]


class Body(BaseModel):
    """A request: what is not known is refused, rather than passed over."""

    model_config = ConfigDict(extra="forbid")


# ---- decisions


class Question(Body):
    """What is asked for."""

    context: Context | None = None
    action_contexts: list[list[Number]] | None = Field(
        None, description="A context for each candidate, or for each action, in the place of `context`."
    )
    candidates: list[ActionId] | None = Field(None, description="Only these may be chosen.")
    exclude: list[ActionId] | None = Field(None, description="These may not.")
    k: Annotated[StrictInt, Field(ge=1, le=10_000)] | None = Field(None, description="How many, best first.")
    unit: Id | None = Field(None, description="A user or session: it keeps its arm.")
    id: Id | None = Field(
        None, description="Of the event: asked again with it, the answer is the same. Made if it is absent."
    )
    baseline: ActionId | None = Field(
        None, description="What the application would do, where the deployment asks for it."
    )
    propensity: StrictBool = Field(False, description="Estimate the propensity now, where it is not known exactly.")
    deferred: StrictBool = Field(False, description="May not be shown: it counts once it is activated.")

    def arguments(self) -> dict[str, Any]:
        """As `live.decide` takes them."""
        return {
            "x": self.context, "action_contexts": self.action_contexts, "candidates": self.candidates,
            "exclude": self.exclude, "k": self.k, "unit": self.unit, "id": self.id, "baseline": self.baseline,
            "propensity": self.propensity, "active": not self.deferred,
        }  # fmt: skip


class Questions(Body):
    """Several at once."""

    decisions: Annotated[list[Question], Field(min_length=1)]


class Learning(BaseModel):
    """How far learning is: rows learned, entries of the log up to this decision that are not folded yet, and the version."""

    rows: int
    lag: int
    version: int


class Answer(BaseModel):
    """A decision."""

    id: str
    action: ActionId
    actions: list[ActionId]
    propensity: float | None = Field(description="The chance of the first action; null where it is computed later.")
    propensity_kind: str | None = Field(description='"exact" or "estimated".')
    arm: str
    version: int
    logged: bool = Field(description="False only where the store was out of reach and decisions go on without it.")
    active: bool = Field(description="False as long as a deferred decision is not activated.")
    learning: Learning


class DecisionAnswers(BaseModel):
    """Decisions in the order of the questions: each has a status, and is an answer or a problem."""

    decisions: list[dict[str, Any]]


# ---- rewards


class Reward(Body):
    """What an event earned."""

    event: Id
    value: Number = 1.0
    action: ActionId | None = Field(None, description="Of several decided together, which one; the first unless said.")
    id: Annotated[StrictStr, Field(max_length=MOST_OF_AN_ID)] = Field(
        "", description="Of the reward, where an event has several."
    )


class Rewards(Body):
    """Several at once."""

    rewards: Annotated[list[Reward], Field(min_length=1)]


class Told(BaseModel):
    """What became of each, in their order: a status, and a problem where it was refused."""

    rewards: list[dict[str, Any]]


class Activation(Body):
    """A deferred decision was shown."""

    event: Id


# ---- the catalogue


class NewActions(Body):
    """New actions: their ids, or how many."""

    ids: Annotated[list[ActionId], Field(min_length=1, max_length=100_000)] | None = None
    number: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = None
    weights: list[list[Number]] | None = Field(
        None, description="Mixing weights, where the agents know actions by them."
    )
    covariance: list[Any] | None = Field(None, description="Prior covariances, where each action has its own.")


class ActionChange(Body):
    """What changes for one action."""

    retired: StrictBool | None = None
    weights: list[Number] | None = None


class SomeActions(Body):
    """Actions by id."""

    actions: Annotated[list[ActionId], Field(min_length=1, max_length=100_000)]


# ---- arms


class NewAgent(Body):
    """A saved agent or policy in the folder of the service's agents."""

    name: Id
    folder: Annotated[StrictStr, Field(min_length=1, max_length=200)]
    learns: StrictBool = True


class Shares(Body):
    """Who decides."""

    shares: dict[str, Number]
    holdout: Number = 0.0
    holdout_arm: Id | None = None
    shadows: list[Id] = []


class ChallengeBody(Body):
    """Promote an arm once it is certified to be better."""

    alpha: Number = 0.05
    margin: Number = 0.0
    guard: Number = 0.02
    mean_time: Number = 10_000


# ---- the store


class NewSettings(Body):
    """How events that are decided from now on count; what is absent stays."""

    aggregate: StrictStr | None = None
    default: Number | None = None
    wait: Number | None = None


class Compact(Body):
    """Delete what happened more than `keep` seconds ago."""

    keep: Annotated[Number, Field(ge=0)]
    dry_run: StrictBool = True


class ProblemBody(BaseModel):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
