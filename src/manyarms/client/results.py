"""What calls of the service give: frozen records with types. What a newer service adds is left out, or in `body`."""

# annotations are types here, not strings: manyarms.client.reading goes by them

from collections.abc import Mapping
from dataclasses import dataclass, field

from manyarms._base.tables import Shown, Table
from manyarms._base.text import number
from manyarms._base.typing import JSON, Spec
from manyarms.client.reading import AS_IT_IS, WHOLE, Unreadable

Id = str | int
MOST_SHOWN = 12  # features that a table lists


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
class FeatureShare(Shown):
    """What a feature added to a score: its value, and its contribution, by what actions share (root) and by the action (leaf)."""

    name: str
    value: float
    contribution: float
    root: float | None = None
    leaf: float | None = None
    variance_share: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class ScoreParts(Shown):
    """A score and what it is made of: features, the largest contribution first.

    quantity: what is scored. sd: its standard deviation, None where it is known. root_share: the part of it that comes from what
    actions share; root_variance_share: the same of the variance.
    """

    quantity: str
    score: float
    sd: float | None
    root_share: float | None
    root_variance_share: float | None
    features: tuple[FeatureShare, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ServiceWhy(Shown):
    """Why an event's action was taken.

    version: of the state that decided; explained_by: of the one that explains, another where that is gone. explanation: None
    where there is no score, and `unexplained` says why. body: all that the service told, with the action that looked best.
    """

    event: str
    arm: str
    action: Id
    version: int
    explained_by: int
    explanation: ScoreParts | None
    unexplained: str | None
    propensity: float | None
    propensity_kind: str | None
    body: Spec = field(default_factory=dict, metadata={WHOLE: True}, repr=False)

    def _table(self) -> Table:
        title = f"event {self.event}: {self.arm} took {self.action}"
        if self.explanation is None:
            return Table(title, notes=[self.unexplained] if self.unexplained else [])
        found = self.explanation
        rows = [(one.name, one.value, one.contribution, one.root, one.leaf) for one in found.features[:MOST_SHOWN]]
        note = f"{found.quantity}: {number(found.score)}"
        return Table(title, ("feature", "value", "adds", "root", "leaf"), rows, [note])


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
class EdgePublicKeys(Shown):
    """The public key that bundles are signed with, and those before it, newest first; in hexadecimal."""

    public_key: str
    previous: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them: for an `EdgeClient` that reads older bundles, too."""
        return (self.public_key, *self.previous)


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
    "EdgePublicKeys",
    "FeatureShare",
    "LearningProgress",
    "RewardEntry",
    "ScoreParts",
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
