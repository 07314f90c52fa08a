"""A log, read once: the first rows, to see what it has; then all of them, for the summaries of everything that was declared.

Parameters of bounds may follow from the number of rows. Most sources know it (a log in memory, an open file). Where one does
not (a file whose incomplete rows are left out), pi, pi0 and the reward of every row are kept until the end, 24 bytes a row. Only
where that is not enough, because sums over all actions or simulated probabilities depend on the parameters as well, the rows
are counted by a reading of their own.

On an engine, workers read shards, and what they have collected is merged; the number of rows is then known beforehand. Rows that
depend on each other in groups are read here: a group may have rows in several shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from manyarms._base.typing import Array
from manyarms.bounds import Bound, Statistic, Summary
from manyarms.certificates.groups import GroupSums
from manyarms.certificates.prior import Randomised
from manyarms.certificates.summarise import Collector, DrawnCollector, log_rows, rows_seen
from manyarms.errors import InvalidInput
from manyarms.estimators.inputs import logged_probabilities, require_log
from manyarms.evaluation.given import Given
from manyarms.evaluation.readers import Divided, Here, Pass, Reader
from manyarms.logs.data import CHUNK, LoggedData, LogSource
from manyarms.logs.row_sketch import RowSketch, refuse, sketch_of
from manyarms.policies.base import Policy
from manyarms.policies.randomised import MixedLogitPolicy

PARAMETERS = 64  # draws of all parameters, each a policy, for corrections that are not linear

Declared = Callable[[int], tuple[list[Bound], list[Bound]]]
"""The bounds of the value and of the gain, for n rows."""


@dataclass(frozen=True)
class Summaries:
    """What was read: for the bounds of the value, as a mixture of rules (or a fixed policy) and over drawn parameters."""

    of_value: dict[bool, Summary]
    """By `is_drawn`."""

    of_gain: Summary
    rows: int
    logged: float
    simulated: bool

    def is_drawn(self, bound: Bound) -> bool:
        """Whether a bound reads the averages over drawn parameters."""
        return _is_drawn(bound, self.simulated)

    def with_margins(self, delta: float) -> dict[bool, tuple[Summary, Summary]]:
        """Moved against lower and upper bounds by what simulation may be off; delta is shared among the summaries."""
        return {drawn: one.with_margins(delta / len(self.of_value)) for drawn, one in self.of_value.items()}


class Reading:
    """The rows of a log, from the first on."""

    def __init__(
        self, log: LogSource, *, by_group: bool = True, trust_estimates: bool = False, reader: Reader | None = None
    ) -> None:
        """reader: who reads all but the first rows, this process unless given."""
        require_log(log)
        self.log, self._reader = log, Here() if reader is None else reader
        self._parts: Iterator[LoggedData] = iter(())
        first: LoggedData | None
        if isinstance(self._reader, Divided):
            first = self._reader.first(log)
        else:
            self._parts = log.chunks(CHUNK)
            first = next(self._parts, None)
        if first is None:
            raise InvalidInput("log", "no rows", "at least one")
        self.first = first
        self._by_group = by_group  # whether rows of one group depend on each other
        self._trusted = trust_estimates
        self._used: list[tuple[str, RowSketch]] = []
        self.estimated = self.read = 0  # rows whose propensities are estimates, and all rows, once they were read
        require_known(first, trust_estimates)

    def refuse_rows_of(self, argument: str, learned_from: LogSource | RowSketch) -> None:
        """When all rows have come, they are refused if `learned_from` has some of them."""
        if not isinstance(learned_from, RowSketch):
            require_log(learned_from, argument)
        self._used.append((argument, sketch_of(learned_from)))

    def summaries(self, policy: Policy | Given, declared: Declared, largest_reward: float, seed: int) -> Summaries:
        """All rows, for all bounds that were declared."""
        rows = self._reader.rows if isinstance(self._reader, Divided) else row_count(self.log)
        if rows is None and declared(2) != declared(3):  # otherwise nothing follows from the number of rows
            if isinstance(policy, MixedLogitPolicy) or any(one.needs_logging_policy for one in declared(2)[0]):
                rows = sum(len(part) for part in self.log.chunks(CHUNK))
            else:
                return self._deferred(policy, declared, largest_reward)
        value, gain = declared(rows or 2)
        wanted = _Collecting(policy, value, gain, seed, largest_reward, self._trusted, sketched=bool(self._used))
        if isinstance(self._reader, Divided):
            found = self._reader.read(wanted, self.log)
        else:
            found = wanted.over(chain([self.first], self._parts))
        if isinstance(policy, Given):
            policy.require_rows(found.read)
        self._seen(found)
        return found.plan.read()

    def grouped(
        self, policy: Policy | Given, declared: Declared, largest_reward: float, largest_group: int | None
    ) -> tuple[Summaries, Array, int]:
        """The same with groups in place of rows; the groups' sizes in units of the largest possible, and that size."""
        if isinstance(self._reader, Divided):
            raise InvalidInput(
                "on", "one of several processes with rows in groups",
                '"local", since a group may have rows in several shards; or independent=True, where rows are independent',
            )  # fmt: skip
        sums = GroupSums(policy.action_count, largest_group)
        for rows in log_rows(policy, self._all(), largest_reward):
            sums.add(*rows)
        sizes = sums.sizes
        value, gain = (statistics_of(bounds) for bounds in declared(len(sizes)))
        whole = sums.summary([*value, *gain])
        summaries = Summaries({False: whole.only(value)}, whole.only(gain), whole.rows, whole.logged, simulated=False)
        return summaries, sizes, sums.largest_group

    def _deferred(self, policy: Policy | Given, declared: Declared, largest_reward: float) -> Summaries:
        kept: list[tuple[Array, Array, Array]] = []
        for part, p, rewards, here in log_rows(policy, self._all(), largest_reward):
            kept.append((logged_probabilities(here, part), p, rewards))
        plan = _Plan(policy, *declared(sum(len(p) for _, p, _ in kept)))
        for rows in kept:
            plan.usual.add_logged(*rows)
        return plan.read()

    def _all(self) -> Iterator[LoggedData]:
        seen = _Seen()
        for part in chain([self.first], self._parts):
            seen.add(part, self._trusted, sketched=bool(self._used))
            yield part
        self._seen(seen)

    def _seen(self, seen: _Seen) -> None:
        """When all rows have come."""
        self.estimated, self.read = seen.estimated, seen.read
        seen.sketch.end_of_log()
        for argument, used in self._used:
            refuse(argument, seen.sketch.overlap(used, by_group=self._by_group))


def require_known(part: LoggedData, trusted: bool) -> None:
    """Refuse propensities that are estimates, unless they are trusted."""
    if part.propensities_are_estimates and not trusted:
        some = "propensities that are estimates" if part.estimated is None else "some propensities that are estimates"
        raise InvalidInput(
            "log", f"{some}, whose weights are too large on average (by their relative error squared, where they were drawn)",
            "propensities as the logger knew them; trust_estimates=True takes these "
            "for exact, and says so",
        )  # fmt: skip


class _Seen:
    """What is noted of rows, whatever is read of them: how many, which, and how many of their propensities are estimates."""

    def __init__(self, first_row: int = 0) -> None:
        self.sketch = RowSketch(first_row)
        self.estimated = self.read = 0

    def add(self, part: LoggedData, trusted: bool, *, sketched: bool) -> None:
        """More rows."""
        require_known(part, trusted)
        if sketched:
            self.sketch.add(part)
        self.estimated += int(part.estimated_rows.sum()) if part.propensities_are_estimates else 0
        self.read += len(part)


class _Collected(_Seen):
    """The averages of a plan over some rows."""

    def __init__(self, plan: _Plan, first_row: int) -> None:
        super().__init__(first_row)
        self.plan = plan

    def merge(self, later: _Collected) -> None:
        """The rows of another one, which come after these."""
        self.sketch.join(later.sketch)
        self.estimated, self.read = self.estimated + later.estimated, self.read + later.read
        self.plan.merge(later.plan)


@dataclass(frozen=True)
class _Collecting(Pass[_Collected]):
    """All averages that some bounds read."""

    policy: Policy | Given
    value: list[Bound]
    gain: list[Bound]
    seed: int
    largest_reward: float
    trusted: bool
    sketched: bool

    def start(self, first_row: int) -> _Collected:
        return _Collected(_Plan(self.policy, self.value, self.gain, self.seed), first_row)

    def add(self, sums: _Collected, part: LoggedData, row: int) -> None:
        seen = rows_seen(self.policy, part, self.largest_reward, row)
        sums.add(part, self.trusted, sketched=self.sketched)
        for collector in sums.plan.collectors:
            collector.add(*seen)

    def sent(self) -> list[tuple[str, object]]:
        return [("policy", self.policy), ("bound", [self.value, self.gain])]


class _Plan:
    """Which averages are collected, and which bounds read them."""

    def __init__(self, policy: Policy | Given, value: list[Bound], gain: list[Bound], seed: int = 0) -> None:
        self.simulated = isinstance(policy, MixedLogitPolicy)
        usual = [one for one in value if not _is_drawn(one, self.simulated)]
        drawn = [one for one in value if _is_drawn(one, self.simulated)]
        self._value, self._gain = statistics_of(usual), statistics_of(gain)
        self.usual = Collector(
            policy, [*self._value, *self._gain], all_actions=any(one.needs_logging_policy for one in usual),
            mixture=isinstance(policy, Randomised),
        )  # fmt: skip
        self.collectors: list[Collector | DrawnCollector] = [self.usual] if self._value or self._gain else []
        self._drawn: DrawnCollector | None = None
        if drawn and isinstance(policy, MixedLogitPolicy):
            self._drawn = DrawnCollector(policy, statistics_of(drawn), PARAMETERS, seed + 2)
            self.collectors.append(self._drawn)

    def merge(self, later: _Plan) -> None:
        """What the same plan has collected of later rows."""
        self.usual.merge(later.usual)
        if self._drawn is not None and later._drawn is not None:
            self._drawn.merge(later._drawn)

    def read(self) -> Summaries:
        """When all rows have come."""
        summaries = [one.summary() for one in self.collectors]
        of_value = {True: summaries[-1]} if self._drawn is not None else {}
        if self._value:
            of_value[False] = summaries[0].only(self._value)
        return Summaries(
            of_value, summaries[0].only(self._gain), summaries[0].rows, summaries[0].logged, self.simulated
        )


def row_count(log: LogSource) -> int | None:
    """How many rows a log has, where it can tell without being read."""
    if isinstance(log, LoggedData):
        return len(log)
    count = None if getattr(log, "drop_missing", False) else getattr(log, "row_count", None)
    return None if count is None else int(count)


def statistics_of(bounds: Iterable[Bound]) -> list[Statistic]:
    """What some bounds read, each once."""
    return list(dict.fromkeys(one for bound in bounds for one in bound.statistics))


def _is_drawn(bound: Bound, simulated: bool) -> bool:
    return simulated and (bound.over_draws or not bound.mixture)


__all__ = ["Reading", "Summaries", "row_count", "statistics_of"]
