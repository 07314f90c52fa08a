"""Arms: what can decide in a live store. An agent, which learns (`agent_arm`), or a policy, which stays as it is (`policy_arm`).

An arm changes when a chunk is folded. Decisions are made on a *view* of it, which never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from manyarms._base.explanation import Explanation
from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions import Propensity
from manyarms.live.records import Question


class ArmView(ABC):
    """An arm as it is at one version."""

    exact: bool
    """Whether its propensities are known exactly."""

    @property
    def timed(self) -> bool:
        """Whether it must be told what time it is when it decides."""
        return False

    def check(self, asked: Question) -> None:
        """Refuse a kind of question that it never answers, though others do."""
        return

    def check_reward(self, value: float) -> None:
        """Refuse a reward that it could not learn."""
        return

    @abstractmethod
    def decide(self, asked: Question, draw: int) -> list[int]:
        """The actions that it takes, by the random numbers of a draw."""

    def decide_with_propensity(
        self, asked: Question, draw: int, of: int | None = None
    ) -> tuple[list[int], Propensity | None]:
        """The same, and the propensity of an action (of: by default the first one taken) where it comes at no further cost."""
        return self.decide(asked, draw), None

    @abstractmethod
    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        """How likely `decide` is to take this action first, or at all; `draws`: how many are drawn to estimate it."""

    @abstractmethod
    def greedy(self, asked: Question) -> int | None:
        """The action that looks best to it; None where it cannot tell."""

    @abstractmethod
    def explain(self, asked: Question, action: int) -> Explanation:
        """What made the score of this action."""

    def favourite(self, asked: Question) -> int | None:
        """The action that it would take if it never explored; None where it cannot tell."""
        return self.greedy(asked)

    @abstractmethod
    def can_do_without(self, asked: Question, barred: set[int]) -> bool:
        """Whether it still has as many actions as were asked for where these, and those retired, are left out."""


class Arm(ABC):
    """What decides, learns, and is kept in snapshots.

    learns: whether it is taught. since: the position at which it joined: decisions after it teach it, earlier ones do not.
    """

    kind: str

    def __init__(self, learns: bool = True, since: int = 0) -> None:
        self.learns = learns
        self.since = since

    @property
    @abstractmethod
    def actions(self) -> int:
        """How many actions it has ever known: their ids are below."""

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """The length of the contexts that it learns from; None where it learns nothing."""

    @property
    def features(self) -> frozenset[str]:
        """What it must be told of each new action: "weights", "covariance", or nothing."""
        return frozenset()

    @property
    @abstractmethod
    def retired(self) -> Set[int]:
        """Which of them are retired."""

    @abstractmethod
    def take_over(self, retired: Set[int]) -> None:
        """From now on these are retired, and no others."""

    @abstractmethod
    def check_reward(self, value: float) -> None:
        """Refuse a reward that it could not learn."""

    @abstractmethod
    def view(self) -> ArmView:
        """As it is now, for ever."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write it to a folder."""

    @abstractmethod
    def observe(self, X: Array, actions: Ints, rewards: Array, at: Array) -> None:
        """Learn rows that were decided at these times."""

    @abstractmethod
    def replace_reward(self, X: Array, actions: Ints, was: Array, now: Array, at: Array) -> None:
        """Learn that rewards it has learned were others, of rows that were decided at these times."""

    @abstractmethod
    def check_catalogue(self, kind: str, body: dict[str, Any]) -> None:
        """Refuse what `change_catalogue` could not do."""

    @abstractmethod
    def change_catalogue(self, kind: str, body: dict[str, Any]) -> list[int]:
        """Add, retire or reinstate actions; the ids of new ones."""


def without(asked: Question, capped: frozenset[int], arm: ArmView) -> Question:
    """The question with these actions left out as well, where that leaves enough of what the arm chooses from."""
    if not capped:
        return asked
    barred = {*(asked.exclude or ()), *capped}
    return replace(asked, exclude=sorted(barred)) if arm.can_do_without(asked, barred) else asked


__all__ = ["Arm", "ArmView", "without"]
