"""How the service is going, and what is done to its store."""

from __future__ import annotations

from typing import Literal

from manyarms._base import validate
from manyarms._base.typing import JSON
from manyarms.client.call import Call, call
from manyarms.client.calls.answers import a
from manyarms.client.results import (
    ServiceBackup,
    ServiceCompaction,
    ServiceHealth,
    ServiceReport,
    ServiceSettings,
    ServiceStatus,
)
from manyarms.errors import InvalidInput

UNCHANGED: Literal["unchanged"] = "unchanged"
"""A setting that stays as it is, where None has a meaning."""


class Operations:
    """Status and administration."""

    @call
    def report(self) -> Call[ServiceReport]:
        """What is watched: values, lift, sample ratio, propensities, shadows and challenges.

        print(client.report())
        """
        return Call("GET", "/v1/report", a(ServiceReport), again=True)

    @call
    def status(self) -> Call[ServiceStatus]:
        """How it is going: version, what waits to be folded, what was learned, alarms and failures.

        client.status().alarms
        """
        return Call("GET", "/v1/status", a(ServiceStatus), again=True)

    @call
    def settings(self) -> Call[ServiceSettings]:
        """How rewards count.

        client.settings().wait
        """
        return Call("GET", "/v1/settings", a(ServiceSettings), again=True)

    @call
    def change_settings(
        self,
        *,
        aggregate: Literal["first", "sum", "max"] | None = None,
        default: float | Literal["unchanged"] | None = UNCHANGED,
        wait: float | None = None,
    ) -> Call[ServiceSettings]:
        """How events count that are decided from now on; what is not given stays. default: None for no default reward.

        client.change_settings(wait=3600.0)
        """
        body: dict[str, JSON] = {}
        if aggregate is not None:
            body["aggregate"] = validate.one_of("aggregate", aggregate, ("first", "sum", "max"))
        if default != UNCHANGED:
            body["default"] = None if default is None else validate.number("default", default)
        if wait is not None:
            body["wait"] = validate.not_negative("wait", wait)
        if not body:
            raise InvalidInput("settings", "none of them", "something to change: `aggregate`, `default` or `wait`")
        return Call("PATCH", "/v1/settings", a(ServiceSettings), body)

    @call
    def compact(self, keep: float, *, dry_run: bool = True) -> Call[ServiceCompaction]:
        """Delete what happened more than `keep` seconds ago; only with dry_run=False, otherwise say what would go.

        client.compact(30 * 86_400.0).bytes
        """
        body = {"keep": validate.not_negative("keep", keep), "dry_run": validate.flag("dry_run", dry_run)}
        return Call("POST", "/v1/admin/compact", a(ServiceCompaction), body, again=bool(dry_run))

    @call
    def backup(self) -> Call[ServiceBackup]:
        """A copy of the store while it is in use, on the service's machine.

        client.backup().file
        """
        return Call("POST", "/v1/admin/backup", a(ServiceBackup))

    @call
    def health(self) -> Call[ServiceHealth]:
        """Whether the service is ready to decide. It is an answer, not an error, that it is not.

        client.health().ready
        """
        return Call("GET", "/readyz", a(ServiceHealth), again=True, fine=(503,))


__all__ = ["UNCHANGED", "Operations"]
