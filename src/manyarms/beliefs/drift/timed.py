"""What a belief has to do with time: nothing, unless it has a memory (memory.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from manyarms._base.typing import Array, Ints
from manyarms.beliefs.drift.clock import as_times
from manyarms.beliefs.drift.memory import Memory
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.beliefs.belief import Belief
    from manyarms.beliefs.correcting import Corrections


class Timed:
    """The part of a belief that knows what time it is."""

    memory: Memory | None = None
    """How it forgets; None: it does not."""

    @property
    def now(self) -> float | None:
        """The time; None where nothing changes with it."""
        return None if self.memory is None else self.memory.clock.now

    @property
    def horizon(self) -> float | None:
        """For how many rounds what is learned now counts; None where nothing is forgotten, or that is not known yet."""
        return None if self.memory is None else self.memory.horizon

    def at(self, time: object) -> Belief:
        """The belief as it is at a time, to be read: itself where it is `now`, or where nothing changes with time alone."""
        belief = cast("Belief", self)
        if self.memory is None:
            if time is not None:
                as_times("at", time)
            return belief
        return self.memory.at(belief, self.memory.clock.moment(time))

    def times(self, at: object, number: int) -> Array | None:
        """The times of so many rows that are to be learned, checked; None where nothing changes with time."""
        if self.memory is not None:
            return self.memory.clock.times(at, number)
        if at is not None and as_times("at", at).shape not in ((), (number,)):
            raise InvalidInput(
                "at", f"shape {as_times('at', at).shape}", f"one time, or one for each of the {number} rows"
            )
        return None

    def learn_at(self, X: Array, actions: Ints, rewards: Array, times: Array | None) -> None:
        """Learn what `evidence` gave, at what `times` gave."""
        belief = cast("Belief", self)
        if self.memory is None or times is None:
            belief.learn(X, actions, rewards)
        else:
            self.memory.learn(belief, X, actions, rewards, times)

    def correct_at(self, rows: Corrections, times: Array | None) -> None:
        """Be as if rows of these times had had other rewards, of what `correction` gave; None: of the last ones."""
        belief = cast("Belief", self)
        if self.memory is None:
            belief.correct(*rows)
        else:
            self.memory.correct(belief, rows, times)

    def pass_to(self, time: float) -> None:
        """It is that late now, though no row came."""
        if self.memory is not None:
            self.memory.pass_to(cast("Belief", self), time)


__all__ = ["Timed"]
