"""Live: decisions with ids, rewards that may come late, and agents that learn from both, with nothing lost."""

from __future__ import annotations

import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal

from manyarms._base import validate
from manyarms._base.tables import Shown, Table, text_of
from manyarms._base.typing import Spec
from manyarms.errors import ManyArmsError, Overloaded, StoreUnavailable
from manyarms.live import naming
from manyarms.live.administration import Administration
from manyarms.live.calls import Calls, LiveDecision
from manyarms.live.deployment import Deployment
from manyarms.live.group_commit import GroupCommit
from manyarms.live.learner import Background, Learner
from manyarms.live.looking import Looking
from manyarms.live.propensities import LEAST_PART, PropensityWorker
from manyarms.live.report import Report, alarms, drifted
from manyarms.live.settings import Settings
from manyarms.live.state import State
from manyarms.live.stores.database import Database
from manyarms.logs.actions import Actions
from manyarms.logs.encoding import Encoder


class Live(Shown, Calls, Administration, Looking):
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
        gather: float = 0.0,
        without_store: Literal["refuse", "decide"] = "refuse",
        learner: bool = True,
        propensities: bool = True,
        propensity_share: float = 1.0,
    ) -> None:
        self._database = database
        self._salt = state.salt
        self._without_store = validate.one_of("without_store", without_store, ("refuse", "decide"))
        self._patience = validate.not_negative("patience", patience)
        every = validate.positive("fold_every", fold_every)
        self._background = validate.flag("background", background)
        computes = validate.flag("propensities", propensities)
        part = validate.number("propensity_share", propensity_share, least=LEAST_PART, most=1.0)
        self._learner = Learner(
            database,
            state,
            snapshot_every=validate.count("snapshot_every", snapshot_every),
            cuts=validate.flag("learner", learner),
        )
        self._commits = GroupCommit(database, most_waiting=most_waiting, patience=patience, gather=gather)
        self._failures: dict[str, ManyArmsError | None] = {}
        self._threads: list[Background] = []
        self._worker = PropensityWorker(database, part)
        if self._background:
            self._start("learner", self._learner.learn, every)
            if computes:
                self._start("propensities", self._worker.work, every)
        self._closed = False

    def _start(self, name: str, work: Any, every: float) -> None:
        def failed(error: ManyArmsError | None) -> None:
            self._failures[name] = error

        self._threads.append(Background(f"manyarms-{name}", work, every, failed))

    @property
    def catalogue(self) -> Actions | None:
        """The ids of the store's actions; None where they are numbered from 0."""
        return self._learner.view.schema.catalogue

    @property
    def encoder(self) -> Encoder | None:
        """What makes contexts of rows of a table; None where contexts are vectors."""
        return self._learner.view.schema.encoder

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

    def learning(self, position: int = 0) -> Spec:
        """How far learning is: rows learned, the version, and lag: entries up to a position of the log that are not folded."""
        view, position = self._learner.view, validate.count("position", position, least=0)
        counts: dict[str, int] = view.frozen["counts"]
        return {"rows": counts["learned"], "lag": max(0, position - view.upto), "version": view.version}

    @property
    def settings(self) -> Settings:
        """How rewards count: of what is decided now. What was decided before a change counts by what held then."""
        return self._learner.view.agreed.now

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

    def status(self) -> Spec:
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
            "deployment": {name: value for name, value in view.deployment.to_json().items() if name != "previous"},
            "arms": sorted(view.arms),
            "capped": naming.named(view, sorted(view.capped)),
            **view.frozen["counts"],
            "alarms": alarms(view.frozen["watch"], self._called),
            "warnings": drifted(view.frozen["watch"], "model", self._called),
            "failures": failures,
        }

    def report(self) -> Report:
        """What is watched: values, lift, sample ratio, propensities, shadows, challenges, drift. Print it, or take its `body`."""
        view = self._learner.view
        return Report.of(view.frozen["watch"], view.agreed.now, view.version, self._called)

    # ---- the end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what was accepted, stop learning, and let the store go. Nothing depends on it: what was told is in the store."""
        self._database.require_own_process()
        if self._closed:
            return
        self._closed = True
        self._worker.stop()
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

    def _table(self) -> Table:
        view = self._learner.view
        counts = [(name.replace("_", " "), text_of(count)) for name, count in view.frozen["counts"].items()]
        told = [f"ALARM: {text}" for text in alarms(view.frozen["watch"], self._called)]
        told += [f"look: {text}" for text in drifted(view.frozen["watch"], "model", self._called)]
        title = f"live at version {view.version:,}: {', '.join(sorted(view.arms))}"
        return Table(title, rows=counts, notes=told, parts=[view.deployment._table()])


__all__ = ["Live", "LiveDecision"]
