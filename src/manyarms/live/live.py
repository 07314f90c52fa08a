"""Live: decisions with ids, rewards that may come late, and agents that learn from both, with nothing lost."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms.agents import Agent
from manyarms.errors import InvalidInput, LiveError, ManyArmsError, Overloaded, StoreUnavailable, UnknownEvent
from manyarms.live import log, packing
from manyarms.live.arms import Arm, an_arm, check_joins
from manyarms.live.challenge import challenge_body, check_possible
from manyarms.live.compaction import Compaction, compact
from manyarms.live.deciding import decided
from manyarms.live.deployment import BASELINE, Deployment
from manyarms.live.group_commit import GroupCommit
from manyarms.live.learner import Background, Learner
from manyarms.live.propensities import PropensityWorker
from manyarms.live.records import MOST_OF_AN_ID, DecisionRecord, Question
from manyarms.live.report import Report, alarms
from manyarms.live.settings import Settings
from manyarms.live.state import State
from manyarms.live.stores.database import Database
from manyarms.policies import Policy


@dataclass(frozen=True, slots=True)
class LiveDecision:
    """What was decided.

    id: of the event, for its rewards. actions: best first. version: of the state that decided. arm: which agent or policy did.
    propensity: the chance of the first action, None where it is not known yet; propensity_kind: "exact" or "estimated".
    logged: False only where the store could not be reached and decisions go on without it.
    """

    id: str
    actions: tuple[int, ...]
    version: int
    arm: str
    propensity: float | None
    propensity_kind: str | None
    logged: bool = True

    @property
    def action(self) -> int:
        """The first action."""
        return self.actions[0]


class Live:
    """Agents on a store: `manyarms.live.open` makes it. Threads may share it, and processes may open the same store.

    A decision is returned when it is in the store, and so is a reward. What was learned is folded from the store, in the
    background every `fold_every` seconds, or by `learn()`.
    """

    def __init__(
        self,
        database: Database,
        state: State,
        *,
        background: bool = True,
        fold_every: float = 0.5,
        snapshot_every: int = 200,
        most_waiting: int = 4096,
        patience: float = 5.0,
        without_store: Literal["refuse", "decide"] = "refuse",
        learner: bool = True,
        propensities: bool = True,
    ) -> None:
        self._database = database
        self._settings = state.settings
        self._salt = state.salt
        self._without_store = validate.one_of("without_store", without_store, ("refuse", "decide"))
        self._patience = validate.not_negative("patience", patience)
        every = validate.positive("fold_every", fold_every)
        self._background = validate.flag("background", background)
        computes = validate.flag("propensities", propensities)
        self._learner = Learner(
            database,
            state,
            snapshot_every=validate.count("snapshot_every", snapshot_every),
            cuts=validate.flag("learner", learner),
        )
        self._commits = GroupCommit(database, most_waiting=most_waiting, patience=patience)
        self._failures: dict[str, ManyArmsError | None] = {}
        self._threads: list[Background] = []
        self._worker = PropensityWorker(database)
        if self._background:
            self._start("learner", self._learner.learn, every)
            if computes:
                self._start("propensities", self._worker.work, every)
        self._closed = False

    def _start(self, name: str, work: Any, every: float) -> None:
        def failed(error: ManyArmsError | None) -> None:
            self._failures[name] = error

        self._threads.append(Background(f"manyarms-{name}", work, every, failed))

    # ---- every day ----------------------------------------------------------------------------------------------------

    def decide(
        self,
        x: npt.ArrayLike | None = None,
        *,
        candidates: npt.ArrayLike | None = None,
        exclude: npt.ArrayLike | None = None,
        k: int | None = None,
        action_contexts: npt.ArrayLike | None = None,
        unit: str | None = None,
        id: str | None = None,
        baseline: int | None = None,
        propensity: bool = False,
    ) -> LiveDecision:
        """Decide, and return when the decision is in the store.

        x, candidates, exclude, k, action_contexts: as `Agent.decide` takes them. unit: a user or session that keeps its arm and,
        as long as nothing new is learned, its random numbers. id: of the event, made here if it is not given; the same id with
        the same question gives the same decision again, with another one a Conflict. baseline: the action that the application
        would take, where the deployment asks for it. propensity: estimate it now, where it is not known exactly.
        """
        asked = _question(x, candidates, exclude, k, action_contexts)
        event = uuid.uuid4().hex if id is None else _name("id", id)
        unit = None if unit is None else _name("unit", unit)
        baseline = None if baseline is None else validate.count("baseline", baseline, least=0)
        estimate = validate.flag("propensity", propensity)
        try:
            record = decided(self._learner.view, self._salt, asked, event, unit, baseline, estimate)
        except ManyArmsError:
            if id is not None and (earlier := self._earlier(event, asked.digest(unit))) is not None:
                return _answer(earlier)  # what can be decided no more was decided before
            raise
        try:
            return _answer(self._submit(log.add_decision(record)))
        except (StoreUnavailable, Overloaded):
            if self._without_store == "refuse":
                raise
            return _answer(record, logged=False)

    def _earlier(self, event: str, digest: bytes) -> DecisionRecord | None:
        """The decision with this id, if it answers this question."""
        with suppress(UnknownEvent):
            found = self.event(event)
            return found if found.digest == digest else None
        return None

    def reward(self, event: str, value: float = 1.0, *, action: int | None = None, id: str = "") -> None:
        """The reward of an event, in the store when this returns. Told twice, it counts once.

        action: of several actions decided together, which one earned it; the first unless said. id: of the reward, where an
        event has several (a click now, a purchase tomorrow): they count together as the store's `aggregate` says. The same id
        with another value is a Conflict.
        """
        event = _name("event", event)
        number = self._settings.check(value)
        which = None if action is None else validate.count("action", action, least=0)
        self._submit(log.add_reward(event, which, _name("id", id, empty=True), number))

    def _submit(self, work: Any) -> Any:
        if self._closed:
            raise LiveError("this live store is closed: open it again")
        return self._commits.submit(work)

    def event(self, event: str) -> DecisionRecord:
        """What the log has of a decision."""
        with self._database.reading() as reader:
            return log.decision(reader, _name("event", event))

    # ---- learning -----------------------------------------------------------------------------------------------------

    def learn(self) -> int:
        """Fold what the store has got since, here and now, where this process is the learner; the version."""
        return self._learner.learn().version

    def sync(self, position: int | None = None, timeout: float = 30.0) -> int:
        """Wait until everything that is in the store now has been folded, and is decided with here; the version."""
        last = int(self._database.read("SELECT position FROM counter")[0][0])
        position = last if position is None else validate.count("position", position, least=0, most=last)
        end = time.monotonic() + validate.not_negative("timeout", timeout)
        while True:
            view = self._learner.learn()
            if view.upto >= position:
                return view.version
            if time.monotonic() > end:
                raise Overloaded(
                    f"nothing has been folded beyond position {view.upto} for {timeout:g} s: is there a learner?"
                )
            time.sleep(0.02)

    @property
    def version(self) -> int:
        """How many chunks have been folded into what decides here."""
        return self._learner.view.version

    @property
    def settings(self) -> Settings:
        """What was agreed when the store was made."""
        return self._settings

    @property
    def deployment(self) -> Deployment:
        """Who decides."""
        return self._learner.view.deployment

    @property
    def database(self) -> Database:
        """The store's database."""
        return self._database

    def snapshot(self) -> None:
        """Keep the state in the store, so that the next start is quick; done by itself every `snapshot_every` chunks."""
        self._learner.snapshot()

    def state_bytes(self) -> bytes:
        """The whole state, as a snapshot keeps it: equal bytes, equal states."""
        return self._learner.state_bytes()

    def status(self) -> dict[str, Any]:
        """How it is going: version, what waits to be folded, what was learned, replaced and refused, what failed behind it.

        It answers where the store does not, too: what only the store knows is None then, and `failures` says why.
        """
        view = self._learner.view
        failures = {name: str(error) for name, error in self._failures.items() if error is not None}
        position = at = None
        try:
            [(position, at)] = self._database.read("SELECT position, at FROM counter")
        except StoreUnavailable as error:
            failures["store"] = str(error)
        return {
            "version": view.version,
            "waiting": None if position is None else position - view.upto,
            "at": at,
            "learner": self._learner.is_learner,
            "deployment": view.deployment.to_json() | {"previous": None},
            "arms": sorted(view.arms),
            "capped": sorted(view.capped),
            **view.frozen["counts"],
            "alarms": alarms(view.frozen["watch"]),
            "failures": failures,
        }

    # ---- operations ---------------------------------------------------------------------------------------------------

    def add_arm(self, name: str, arm: Agent | Policy, *, learns: bool = True) -> None:
        """Take in another agent or a policy. It learns what is decided from now on, and decides nothing until it is deployed.

        An agent has contexts as long and as many actions as the agents that are there; which of them are retired it takes from
        the store.
        """
        name = _name("name", name)
        if name == BASELINE or name in self._learner.view.arms:
            raise InvalidInput("name", name, "a name that no arm of this store has")
        made: Arm = an_arm("arm", arm, validate.flag("learns", learns))
        check_joins(made, (), self._settings.default)
        writing = packing.write_parts(self._database, packing.pack({}, {name: made}))
        self._operate("add_arm", {"name": name, "writing": writing})

    def remove_arm(self, name: str) -> None:
        """Let go of an arm that has no part in the deployment."""
        self._operate("remove_arm", {"name": _name("name", name)})

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
        self._operate("promote", {"name": _name("name", name)})

    def roll_back(self) -> None:
        """Back to what was deployed before."""
        self._operate("roll_back", {})

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
        body = challenge_body(self._settings, alpha, margin, guard, mean_time)
        view = self._learner.view
        exact = {arm: seen.exact for arm, seen in view.arms.items()}
        if isinstance(challenger, str):
            called = _name("challenger", challenger)
            if name is not None or called not in view.arms:
                came = called if name is None else f"the arm {called} and name={name!r}"
                raise InvalidInput(
                    "challenger", came, f"one of the arms {', '.join(sorted(view.arms))}, without a `name`"
                )
            check_possible(self._settings, view.deployment, called, exact)
        else:
            called = _name("name", name)
            exact[called] = an_arm("challenger", challenger).view().exact
            check_possible(self._settings, view.deployment, called, exact)
            self.add_arm(called, challenger)
        self._operate("challenge", {"name": called, **body})
        return called

    def challenges(self) -> list[dict[str, Any]]:
        """Every challenge: its state, the gain so far and its lower end, α, how many events count, and since when."""
        found: list[dict[str, Any]] = self.report().body["challenges"]
        return found

    def withdraw(self, name: str) -> None:
        """End a challenge, or the guard of an arm that was promoted; what is deployed stays."""
        self._operate("withdraw", {"name": _name("name", name)})

    def report(self) -> Report:
        """What is watched: values, lift, sample ratio, propensities, shadows and challenges. Print it, or take its `body`."""
        view = self._learner.view
        return Report.of(view.frozen["watch"], self._settings, view.version)

    def add_actions(
        self,
        number: int | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
    ) -> list[int]:
        """New actions for every arm; their ids. The arguments are those of `Agent.add_actions`."""
        body: dict[str, Any] = {"number": None if number is None else validate.count("number", number)}
        if weights is not None:
            body["weights"] = validate.as_floats("weights", weights).tolist()
        if covariance is not None:
            body["covariance"] = validate.as_floats("covariance", covariance).tolist()
        ids: list[int] = self._operate("add_actions", body)["ids"]
        return ids

    def retire(self, actions: int | npt.ArrayLike) -> None:
        """Do not choose these any more; rewards that come late are still learned."""
        self._operate("retire", {"actions": _one_or_more(actions)})

    def reinstate(self, actions: int | npt.ArrayLike) -> None:
        """Choose these again."""
        self._operate("reinstate", {"actions": _one_or_more(actions)})

    def cap(self, most: int | None, window: float = 86_400.0, actions: npt.ArrayLike | None = None) -> None:
        """An action that was taken `most` times in `window` seconds rests; None: no cap any more.

        actions: which have this cap, each by itself; every action unless said. It holds from version to version, so that an
        action may be taken a few times more before the next chunk is folded. Where caps would leave fewer actions than a
        question asks for, they do not count for that question: it is answered all the same.
        """
        body: dict[str, Any] = {
            "most": None if most is None else validate.count("most", most),
            "window": validate.positive("window", window),
            "actions": None if actions is None else sorted(set(_ids("actions", actions))),
        }
        self._operate("cap", body)

    def erase(self, event: str) -> None:
        """Forget an event: its record is blanked, and the state becomes what it would be had it never been.

        An event from which the origin of a compacted log has learned cannot be erased any more (UnknownEvent).
        """
        position = self._submit(log.erase(_name("event", event)))
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

    # ---- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what was accepted, stop learning, and let the store go. Nothing depends on it: what was told is in the store."""
        self._database.require_own_process()
        if self._closed:
            return
        self._closed = True
        for thread in self._threads:
            thread.stop()
        self._commits.close()
        with suppress(ManyArmsError):  # the store is gone: the lease ends by itself
            self._learner.resign()
        self._database.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        view = self._learner.view
        return f"<Live: {', '.join(sorted(view.arms))}; version {view.version}>"


def _question(x: Any, candidates: Any, exclude: Any, k: Any, action_contexts: Any) -> Question:
    given, name = (x, "x") if action_contexts is None else (action_contexts, "action_contexts")
    if given is None:
        raise InvalidInput("x", "None", "a context, or `action_contexts`")
    numbers = validate.as_floats(name, given)
    if numbers.ndim != (1 if name == "x" else 2):
        expected = "one context, (d,)" if name == "x" else "a context for each action, (m, d)"
        raise InvalidInput(name, f"shape {numbers.shape}", expected)
    return Question(
        np.ascontiguousarray(numbers, dtype="<f8").copy(),
        None if candidates is None else _ids("candidates", candidates),
        None if exclude is None else _ids("exclude", exclude),
        None if k is None else validate.count("k", k),
    )


def _ids(name: str, values: Any) -> list[int]:
    found: list[int] = validate.integers(name, values, 1, "a list of integers, ids of actions").tolist()
    if found and min(found) < 0:
        raise InvalidInput(name, min(found), "ids of actions, from 0")
    return found


def _one_or_more(actions: Any) -> list[int]:
    one = isinstance(actions, int | np.integer)
    return _ids("actions", [actions] if one else actions)


def _name(argument: str, value: object, empty: bool = False) -> str:
    """An id or a name: text that is not too long."""
    if not isinstance(value, str) or len(value) > MOST_OF_AN_ID or not (value or empty) or "\0" in value:
        raise InvalidInput(argument, validate.describe(value), f"a text of 1 to {MOST_OF_AN_ID} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(argument, validate.describe(value), "text that can be written as UTF-8") from None
    return value


def _answer(record: DecisionRecord, logged: bool = True) -> LiveDecision:
    return LiveDecision(
        record.id, tuple(record.actions), record.version, record.arm, record.propensity, record.propensity_kind, logged
    )


__all__ = ["Live", "LiveDecision"]
