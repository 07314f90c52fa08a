"""A client of the decision service, sync and async, whose retries are safe because events and rewards have ids.

with Client("https://decide.example.org", key) as client:
    d = client.decide({"age": 31}, k=3)            # d.id, d.actions, d.learning
    client.reward(d.id, 1.0)                       # now, tomorrow, twice: counted once

EdgeClient: decides here by a policy that the service signed, and uploads what was decided
in_process, in_process_async: the service in the process of its client, for tests
"""

from manyarms.client.client import AsyncClient, Client
from manyarms.client.conversation import Backoff
from manyarms.client.edge import EdgeClient
from manyarms.client.errors import (
    RemoteConflict,
    RemoteInvalidInput,
    RemoteOverloaded,
    RemoteStoreUnavailable,
    RemoteUnknownAction,
    RemoteUnknownEvent,
    ServiceError,
    Unauthorised,
    Unreachable,
)
from manyarms.client.in_process import in_process, in_process_async
from manyarms.client.results import (
    AddedActions,
    ArmEntry,
    CatalogueEntry,
    ChallengeEntry,
    EdgeDownload,
    EdgePublicKeys,
    FeatureShare,
    LearningProgress,
    RewardEntry,
    ScoreParts,
    ServiceBackup,
    ServiceCompaction,
    ServiceDecision,
    ServiceDeployment,
    ServiceEvent,
    ServiceHealth,
    ServiceReport,
    ServiceSettings,
    ServiceStatus,
    ServiceWhy,
)

__all__ = [
    "AddedActions",
    "ArmEntry",
    "AsyncClient",
    "Backoff",
    "CatalogueEntry",
    "ChallengeEntry",
    "Client",
    "EdgeClient",
    "EdgeDownload",
    "EdgePublicKeys",
    "FeatureShare",
    "LearningProgress",
    "RemoteConflict",
    "RemoteInvalidInput",
    "RemoteOverloaded",
    "RemoteStoreUnavailable",
    "RemoteUnknownAction",
    "RemoteUnknownEvent",
    "RewardEntry",
    "ScoreParts",
    "ServiceBackup",
    "ServiceCompaction",
    "ServiceDecision",
    "ServiceDeployment",
    "ServiceError",
    "ServiceEvent",
    "ServiceHealth",
    "ServiceReport",
    "ServiceSettings",
    "ServiceStatus",
    "ServiceWhy",
    "Unauthorised",
    "Unreachable",
    "in_process",
    "in_process_async",
]
