"""The exceptions of the package: one tree, so that a caller can catch it at the width it needs.

ManyArmsError                 everything below; a ValueError
├── InvalidInput              an argument is wrong: the message names it, what came and what was expected
│   └── UnknownAction         an action id that does not exist, is retired, or comes twice
├── Contradiction             bounds that cannot all be true: an assumption does not hold, or chance of at most delta
├── DataError                 a data file is missing, unreadable, truncated or of another format
├── StorageError              a file cannot be written, or what was saved not be read: damaged, incomplete, of another version
│   └── StoreUnavailable      the store of a live agent cannot be read or written now; nothing of the call was kept
├── LiveError                 a call of a live agent that cannot be served
│   ├── UnknownEvent          no decision with this id: never made, compacted or erased
│   ├── Conflict              an id that was used before, for something else
│   └── Overloaded            too much is waiting to be written: try again later
├── ClusterError              a cluster that cannot be reached, or whose software is not that of this process
└── MissingExtra              an optional dependency is absent; the message says what to install
"""

from __future__ import annotations

LIKELY_REASONS = (
    "the policy was learned from these rows; propensities that are not those of the logging policy; rewards outside their range; "
    "rows that are not independent (sessions, repeated events)"
)
"""Why bounds contradict each other, or what is known beforehand."""


class ManyArmsError(ValueError):
    """Base of every error that this package raises on purpose."""


class InvalidInput(ManyArmsError):
    """An argument is not what was expected; nothing has been changed, but by a link that fails while an agent learns."""

    def __init__(self, argument: str, came: object, expected: str) -> None:
        self.argument = argument
        self.came = came
        self.expected = expected
        try:
            said = str(came)
        except Exception:  # an integer of more digits than Python prints, or somebody else's __str__
            said = f"an object of type {type(came).__name__}"
        super().__init__(f"{argument}: expected {expected}, got {said}")

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of worker processes reach the caller as they are; what came is sent as the text that it was shown as."""
        return type(self), (
            self.argument,
            str(self)[len(f"{self.argument}: expected {self.expected}, got ") :],
            self.expected,
        )


class UnknownAction(InvalidInput):
    """An action id that does not exist, is retired, or is given twice."""


class Contradiction(ManyArmsError):
    """Bounds that cannot all be true: an assumption does not hold, or an event of probability at most delta happened."""

    def __init__(self, came: str, delta: float) -> None:
        self._given = came, delta
        super().__init__(
            f"{came}: this cannot be, so that nothing is certified. Likely reasons: {LIKELY_REASONS}. If none of these, chance: "
            f"probability at most {delta:g}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._given


class DataError(ManyArmsError):
    """A data file is missing, unreadable, truncated or of another format."""


class StorageError(ManyArmsError):
    """A file cannot be written, or what was saved cannot be read back: damaged, incomplete or of an unknown version."""


class StoreUnavailable(StorageError):
    """The store of a live agent cannot be read or written now. Nothing of the call was kept; it may be tried again."""


class LiveError(ManyArmsError):
    """A call of a live agent that cannot be served, and why."""


class UnknownEvent(LiveError):
    """No decision has this id: it was never made, or its record has been compacted or erased."""


class Conflict(LiveError):
    """An id that was used before, for something else: the first use stands."""


class Overloaded(LiveError):
    """Too much is waiting to be written. Nothing of the call was kept; it may be tried again later."""


class ClusterError(ManyArmsError):
    """A cluster cannot be reached, or its machines have other software than this process."""


class MissingExtra(ManyArmsError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self._purpose = purpose
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: pip install 'manyarms[{extra}]'"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.package, self.extra, self._purpose)


__all__ = [
    "ClusterError",
    "Conflict",
    "Contradiction",
    "DataError",
    "InvalidInput",
    "LiveError",
    "ManyArmsError",
    "MissingExtra",
    "Overloaded",
    "StorageError",
    "StoreUnavailable",
    "UnknownAction",
    "UnknownEvent",
]
