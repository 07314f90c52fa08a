"""What calls of the service give: frozen records with types. What a newer service adds is left out, or in `body`."""

# annotations are types here, not strings: manyarms.client.reading goes by them

from collections.abc import Mapping
from dataclasses import dataclass, field

from manyarms._base.tables import Shown, Table
from manyarms._base.typing import JSON, Spec
from manyarms.client.reading import AS_IT_IS, WHOLE, Unreadable

Id = str | int


@dataclass(frozen=True, slots=True, repr=False)
class LearningProgress(Shown):
    """How much the agents knew: rows folded, entries of the log not folded yet, and the version of the state."""

    rows: int
    lag: int | None
    version: int


@dataclass(frozen=True, slots=True, repr=False)
class ServiceDecision(Shown):
    """What was decided.

    id: of the event, for its rewards. actions: best first. propensity: the chance of the first action, None where it is not known
    yet; propensity_kind: "exact" or "estimated". arm, version: which state of which agent or policy decided. logged: False only
    where the service decides without its store. active: False until a deferred decision is activated.
    """

    id: str
    actions: tuple[Id, ...]
    propensity: float | None
    propensity_kind: str | None
    arm: str
    version: int
    learning: LearningProgress
    logged: bool = True
    active: bool = True

    def __post_init__(self) -> None:
        if not self.actions:
            raise Unreadable("the answer's list of actions is empty")

    @property
    def action(self) -> Id:
        """The first action."""
        return self.actions[0]


@dataclass(frozen=True, slots=True, repr=False)
class RewardEntry(Shown):
    """A reward as the service's log has it: of which action, under which id, how much, and when (seconds since 1970)."""

    action: Id
    id: str
    value: float
    at: float


@dataclass(frozen=True, slots=True, repr=False)
class ServiceEvent(Shown):
    """What the service's log has of a decision.

    at: when it was decided, seconds since 1970. rewards: those that have come, in order. erased: whether it was forgotten; then
    it has no actions. context: as numbers, where a single event was asked for. body: all that the service told.
    """

    id: str
    at: float
    arm: str
    version: int
    unit: str | None
    actions: tuple[Id, ...]
    propensity: float | None
    propensity_kind: str | None
    active: bool
    erased: bool
    rewards: tuple[RewardEntry, ...]
    context: JSON = field(default=None, metadata={AS_IT_IS: True}, repr=False)
    body: Spec = field(default_factory=dict, metadata={WHOLE: True}, repr=False)

    @property
    def action(self) -> Id | None:
        """The first action; None of an event that was erased."""
        return self.actions[0] if self.actions else None


@dataclass(frozen=True, slots=True, repr=False)
class ServiceWhy(Shown):
    """Why an event's action had its score: what each part of the context and of the model gave, in `body`."""

    body: Spec = field(metadata={WHOLE: True})

    def _table(self) -> Table:
        return _shown("why", self.body)


@dataclass(frozen=True, slots=True, repr=False)
class CatalogueEntry(Shown):
    """An action of the service's catalogue.

    row: its place; id: its name, or the row where actions have no ids. retired: it is not chosen any more; capped: it rests.
    """

    row: int
    id: Id
    retired: bool
    capped: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class AddedActions(Shown):
    """The ids of new actions."""

    ids: tuple[Id, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ArmEntry(Shown):
    """An agent or a policy of the service's store: its share of the traffic, and whether it has the hold-out or looks on."""

    name: str
    share: float
    holdout: bool
    shadow: bool
    exact_propensities: bool


@dataclass(frozen=True, slots=True, repr=False)
class ChallengeEntry(Shown):
    """A challenge: whose, how it stands, the gain so far and its lower end, and over how many events; all of it in `body`."""

    name: str
    state: str
    gain: float | None
    gain_low: float | None
    events: int
    body: Spec = field(default_factory=dict, metadata={WHOLE: True}, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class ServiceDeployment(Shown):
    """Who decides: the share of each arm, the part that is held out and for whom, and arms that only look on."""

    shares: Mapping[str, float]
    holdout: float = 0.0
    holdout_arm: str | None = None
    shadows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class ServiceSettings(Shown):
    """How rewards count: of several, the first, the sum or the largest; the default after `wait` seconds; their range."""

    aggregate: str
    default: float | None
    wait: float
    reward_range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ServiceReport(Shown):
    """What is watched: values, lift, sample ratio, propensities, shadows and challenges, in `body`."""

    body: Spec = field(metadata={WHOLE: True})

    def _table(self) -> Table:
        return _shown("report", self.body)


@dataclass(frozen=True, slots=True, repr=False)
class ServiceStatus(Shown):
    """How it is going: the version, what waits to be folded, who decides, alarms and failures; all of it in `body`."""

    version: int
    waiting: int | None
    arms: tuple[str, ...]
    alarms: tuple[str, ...]
    failures: Mapping[str, str]
    body: Spec = field(default_factory=dict, metadata={WHOLE: True}, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class ServiceCompaction(Shown):
    """What was deleted, or would be: rows by table, bytes in them, and the version at which the log begins then."""

    version: int
    moved: bool
    decisions: int
    rewards: int
    bytes: int
    dry_run: bool
    body: Spec = field(default_factory=dict, metadata={WHOLE: True}, repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class ServiceBackup(Shown):
    """A copy of the store that the service made: the file, by the service's name for it, and its size."""

    file: str
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class ServiceHealth(Shown):
    """Whether the service can decide and write, and why not where it cannot."""

    status: str
    reasons: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Whether it can."""
        return self.status == "ok"


@dataclass(frozen=True, slots=True, repr=False)
class EdgeDownload(Shown):
    """A policy for the edge as it came: its bytes, not verified yet, and its ETag. data: None where it is the one you have."""

    data: bytes | None = field(repr=False)
    etag: str | None


@dataclass(frozen=True, slots=True, repr=False)
class EdgeKey(Shown):
    """The public key that bundles are signed with, in hexadecimal."""

    public_key: str


def _shown(title: str, body: Mapping[str, JSON]) -> Table:
    """A dictionary as names and values, the inner ones in short."""
    rows = [(name.replace("_", " "), _short(value)) for name, value in body.items()]
    return Table(title, rows=rows)


def _short(value: JSON) -> str | int | float | bool | None:
    if isinstance(value, Mapping):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, list | tuple):
        return f"{len(value)} entries" if value else "none"
    assert value is None or isinstance(value, str | int | float)
    return value


__all__ = [
    "AddedActions",
    "ArmEntry",
    "CatalogueEntry",
    "ChallengeEntry",
    "EdgeDownload",
    "EdgeKey",
    "LearningProgress",
    "RewardEntry",
    "ServiceBackup",
    "ServiceCompaction",
    "ServiceDecision",
    "ServiceDeployment",
    "ServiceEvent",
    "ServiceHealth",
    "ServiceReport",
    "ServiceSettings",
    "ServiceStatus",
    "ServiceWhy",
]
