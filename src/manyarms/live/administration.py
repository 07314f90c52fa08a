"""Administration: arms, deployments, challenges, how rewards count, the catalogue, caps, erasure and compaction of a live store.

All but compaction are operations of the log: written, folded like everything else, and done when they are folded here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import Spec, loose
from manyarms.agents import Agent
from manyarms.errors import InvalidInput, LiveError
from manyarms.live import log, naming, packing
from manyarms.live.agent_arm import AgentView
from manyarms.live.arguments import a_name
from manyarms.live.arms import Arm
from manyarms.live.challenge import challenge_body, check_possible
from manyarms.live.compaction import Compaction, compact
from manyarms.live.deployment import BASELINE, Deployment
from manyarms.live.drift_watch import MEAN_TIME, watch_body
from manyarms.live.joining import an_arm, check_default, check_joins, check_kind, check_schema, schema_of
from manyarms.live.learner import Learner
from manyarms.live.operations import changed_settings, explores_not, exploring
from manyarms.live.report import Report
from manyarms.live.settings import Aggregate, Settings
from manyarms.live.stores.database import Database
from manyarms.logs.actions import ActionId, listed_ids
from manyarms.policies import Policy


class Administration(ABC):
    """What is done to a live store now and then, beside deciding and rewarding."""

    _database: Database
    _learner: Learner

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """How rewards count."""

    @abstractmethod
    def sync(self, position: int | None = None, timeout: float = 30.0) -> int:
        """Wait until everything up to this position has been folded; the version."""

    @abstractmethod
    def report(self) -> Report:
        """What is watched."""

    @abstractmethod
    def _submit(self, work: Any) -> Any:
        """Write, and wait until it is in the store."""

    def add_arm(self, name: str, arm: Agent | Policy, *, learns: bool = True) -> None:
        """Take in another agent or a policy. It learns what is decided from now on, and decides nothing until it is deployed.

        An agent has contexts as long and as many actions as the agents that are there; which of them are retired it takes from
        the store. Encoder and ids, where it has them, are those of the store.
        """
        name = a_name("name", name)
        if name == BASELINE or name in self._learner.view.arms:
            raise InvalidInput("name", name, "a name that no arm of this store has")
        made: Arm = an_arm("arm", arm, validate.flag("learns", learns))
        check_schema("arm", self._learner.view.schema, schema_of(check_kind("arm", arm)))
        check_joins(made, (), self.settings.default)
        writing = packing.write_parts(self._database, packing.pack({}, {name: made}))
        self._operate("add_arm", {"name": name, "writing": writing})

    def remove_arm(self, name: str) -> None:
        """Let go of an arm that has no part in the deployment."""
        self._operate("remove_arm", {"name": a_name("name", name)})

    def deploy(
        self,
        shares: Mapping[str, float] | str,
        *,
        holdout: float = 0.0,
        holdout_arm: str | None = None,
        shadows: Sequence[str] = (),
    ) -> None:
        """Who decides from now on.

        shares: the part of the traffic that each arm gets, together 1; or the name of one arm. "baseline" is what the application
        would do (`decide(..., baseline=action)`): an apprentice is {"baseline": 1.0} with the agent among the shadows.
        holdout: a part of the traffic that goes to `holdout_arm` for good. shadows: arms that only look on.
        """
        parts = {shares: 1.0} if isinstance(shares, str) else shares
        wanted = Deployment(parts, holdout, holdout_arm, shadows)  # type: ignore[arg-type]
        self._operate("deploy", wanted.to_json())

    def promote(self, name: str) -> None:
        """All the traffic but the hold-out to this arm; those that had it look on."""
        self._operate("promote", {"name": a_name("name", name)})

    def roll_back(self) -> None:
        """Back to what was deployed before."""
        self._operate("roll_back", {})

    def explore(self, epsilon: float, *, arm: str | None = None) -> None:
        """Give an arm another share of exploration: with probability `epsilon` it takes any action.

        For an agent whose rule has such a share (EpsilonGreedy, EpsilonMixed, Ensemble); others are refused. arm: its name, the
        champion unless said. What it has learned stays as it is; propensities are by the share that held when it was decided.
        """
        share, view = validate.probability("epsilon", epsilon), self._learner.view
        name = view.deployment.champion if arm is None else a_name("arm", arm)
        if name == BASELINE:
            raise explores_not(name, "is what the application would do")
        if name not in view.arms:
            raise InvalidInput("arm", validate.describe(name), f"an arm of this store ({', '.join(sorted(view.arms))})")
        seen = view.arms[name]
        if not isinstance(seen, AgentView):
            raise explores_not(name, "is a policy")
        exploring(name, seen.snapshot.decision, share)
        self._operate("explore", {"name": name, "epsilon": share})

    def challenge(
        self,
        challenger: str | Agent | Policy,
        *,
        name: str | None = None,
        alpha: float = 0.05,
        margin: float = 0.0,
        guard: float = 0.02,
        mean_time: float = 10_000,
    ) -> str:
        """Promote this arm by itself once it is certified to be better than what is deployed; its name.

        challenger: an arm of the store, or an agent or a policy, taken in under `name`. It looks on until it is certified: the
        lower end of its gain, valid at all times at once, is above `margin`. Together all challenges are ever wrong with
        probability at most `alpha`: each has a smaller part of it. Then it gets all the traffic but the hold-out, and its rewards
        are watched: when they have fallen `guard` below what was certified, the store rolls back by itself; without cause that
        happens once in `mean_time` of its events on average, or more rarely. margin and guard are in the units of rewards.

        It needs a `reward_range`, a default reward, and arms with exact propensities (docs/challenges.md).
        """
        body = challenge_body(self.settings, alpha, margin, guard, mean_time)
        view = self._learner.view
        exact = {arm: seen.exact for arm, seen in view.arms.items()}
        if isinstance(challenger, str):
            called = a_name("challenger", challenger)
            if name is not None or called not in view.arms:
                came = called if name is None else f"the arm {called} and name={name!r}"
                raise InvalidInput(
                    "challenger", came, f"one of the arms {', '.join(sorted(view.arms))}, without a `name`"
                )
            check_possible(self.settings, view.deployment, called, exact)
        else:
            if name is None:
                raise InvalidInput("name", None, "a name for the challenger, an arm that the store does not have yet")
            called = a_name("name", name)
            exact[called] = an_arm("challenger", challenger).view().exact
            check_possible(self.settings, view.deployment, called, exact)
            self.add_arm(called, challenger)
        self._operate("challenge", {"name": called, **body})
        return called

    def challenges(self) -> list[Spec]:
        """Every challenge: its state, the gain so far and its lower end, α, how many events count, and since when."""
        found: list[Spec] = loose(self.report().body)["challenges"]
        return found

    def withdraw(self, name: str) -> None:
        """End a challenge, or the guard of an arm that was promoted; what is deployed stays."""
        self._operate("withdraw", {"name": a_name("name", name)})

    def watch_drift(self, mean_time: float | None = MEAN_TIME) -> None:
        """Watch from now on, and anew, whether rewards are still what each agent predicts; alarms that there were are forgotten.

        mean_time: rows that an agent learns for one false alarm, on average, at least: over all rows and per action, with its
        model and without. None: watch no more. A new store watches from the first; one of an earlier version begins here.
        """
        self._operate("watch_drift", watch_body(mean_time))

    def change_settings(
        self,
        *,
        aggregate: Aggregate | EllipsisType = ...,
        default: float | EllipsisType | None = ...,
        wait: float | EllipsisType = ...,
    ) -> Settings:
        """Agree anew how rewards count, for what is decided from now on; the settings that hold then.

        What is left out stays as it is. Events that were decided before count by what held then, their late rewards too; nothing
        is reset or learned anew, and monitors go on. Events settle in the order in which they were decided: with a shorter `wait`
        the first ones still settle when those before them do. default: None for none. The range of rewards never changes.
        """
        given = {"aggregate": aggregate, "default": default, "wait": wait}
        told = {name: value for name, value in given.items() if value is not ...}
        if not told:
            raise InvalidInput("settings", "nothing", "what is to change: `aggregate`, `default` or `wait`")
        wanted = changed_settings(self.settings, told)
        for arm in self._learner.view.arms.values():
            check_default(arm, wanted.default)
        body = {name: getattr(wanted, name) for name in told}
        return Settings(**self._operate("change_settings", body)["settings"])

    def add_actions(
        self,
        number: int | None = None,
        *,
        ids: Iterable[ActionId] | None = None,
        weights: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
    ) -> list[ActionId]:
        """New actions for every arm; their ids. The arguments are those of `Agent.add_actions`."""
        body: dict[str, Any] = {"number": None if number is None else validate.count("number", number)}
        if ids is not None:
            body["ids"] = listed_ids("ids", ids)
            body["number"] = len(body["ids"]) if number is None else body["number"]
            if len(body["ids"]) != body["number"]:
                raise InvalidInput("ids", f"{len(body['ids'])} ids", f"{number}, one for each new action")
        if weights is not None:
            body["weights"] = validate.as_floats("weights", weights).tolist()
        if covariance is not None:
            body["covariance"] = validate.as_floats("covariance", covariance).tolist()
        rows: list[int] = self._operate("add_actions", body)["ids"]
        return naming.named(self._learner.view, rows)

    def update_actions(self, actions: ActionId | npt.ArrayLike | Iterable[ActionId], *, weights: npt.ArrayLike) -> None:
        """Other mixing weights for some actions, for every agent that knows its actions by weights: as `Agent.update_actions`.

        Agents and policies that know their actions otherwise stay as they are.
        """
        rows = naming.one_or_more(self._learner.view, actions)  # type: ignore[arg-type]
        self._operate("update_actions", {"actions": rows, "weights": validate.as_floats("weights", weights).tolist()})

    def retire(self, actions: ActionId | npt.ArrayLike | Iterable[ActionId]) -> None:
        """Do not choose these any more; rewards that come late are still learned."""
        self._operate("retire", {"actions": self._rows_to_change(actions, retired=False)})

    def reinstate(self, actions: ActionId | npt.ArrayLike | Iterable[ActionId]) -> None:
        """Choose these again."""
        self._operate("reinstate", {"actions": self._rows_to_change(actions, retired=True)})

    def _rows_to_change(self, actions: ActionId | npt.ArrayLike | Iterable[ActionId], *, retired: bool) -> list[int]:
        view = self._learner.view
        rows = naming.one_or_more(view, actions)  # type: ignore[arg-type]
        naming.check_actions_known(view, "actions", retired, rows)
        return rows

    def cap(
        self,
        most: int | None,
        window: float = 86_400.0,
        actions: npt.ArrayLike | Iterable[ActionId] | None = None,
    ) -> None:
        """An action that was taken `most` times in `window` seconds rests; None: no cap any more.

        actions: which have this cap, each by itself; every action unless said. It holds from version to version, so that an
        action may be taken a few times more before the next chunk is folded. Where caps would leave fewer actions than a
        question asks for, they do not count for that question: it is answered all the same.
        """
        body: dict[str, Any] = {
            "most": None if most is None else validate.count("most", most),
            "window": validate.positive("window", window),
            "actions": None if actions is None else sorted(set(naming.rows_of(self._learner.view, "actions", actions))),
        }
        self._operate("cap", body)

    def erase(self, event: str) -> None:
        """Forget an event: its record is blanked, and the state becomes what it would be had it never been.

        An event from which the origin of a compacted log has learned cannot be erased any more (UnknownEvent).
        """
        position = self._submit(log.erase(a_name("event", event)))
        self.sync(position)

    def _operate(self, kind: str, body: dict[str, Any]) -> Any:
        position = self._submit(log.add_operation(kind, body))
        self.sync(position)
        result = self._learner.view.frozen["results"].get(position, {})
        if "refused" in result:
            raise LiveError(result["refused"])
        return result

    def compact(self, keep: float, *, dry_run: bool = False) -> Compaction:
        """Delete what happened more than `keep` seconds ago; what was learned from it stays, to the last bit.

        Its events are unknown afterwards, for late rewards, erasures and exports. dry_run: only say what would go.
        """
        return compact(self._database, keep, dry_run=dry_run)


__all__ = ["Administration"]
