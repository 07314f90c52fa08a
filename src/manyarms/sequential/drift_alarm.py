"""Has the world changed? An alarm for a whole agent: over all its rows, for each action by itself, with a model and without.

Each learned row brings its action, its standardised one-step residual z = (r − mean)/sd, and the mean that was predicted for it,
all from what was known before its reward r. Let w be how far that mean is from the usual ones, in standard deviations, and no
more than 2. What is multiplied (`drift_evidence.py`) has the mean 1, given the past:

    model        exp(δz − δ²/2),  exp(δwz − (δw)²/2)      z has another mean, or one that goes with w: N(δ, 1), N(δw, 1)
                 exp(z²(1 − 1/s²)/2)/s                    z is wider: N(0, s²) against N(0, 1)
    model-free   1 + tanh(δz),  1 + tanh(δwz)             z leans to one side: for every law that is symmetric around 0
                 1 + b(r − mean)/c,  …bw/2…               the same, for every law on a known range of rewards

*Why slopes.* Where θ changes to θ', residuals are xᵀ(θ' − θ): on average 0, if contexts are as often x as −x. But what was
learned is less true than before: high predictions turn out too high, and low ones too low ("flatter"). *Why width.* Leaves that
wander make the residuals of a static agent wider, in whichever direction. *Why without a model.* A noise that is set too small
makes residuals wider, too: the model's alarm then comes again and again, and cannot say which of the two it is. 1 + tanh(δz) =
exp(δz)/cosh(δz) averages to 1 over the sign of z alone, given |z|: no width, no tails have a part in it. For small δz it is
exp(δz − δ²z²/2), so that against small shifts next to nothing is lost.

**Rate of false alarms.** M ← (1 + M) E, for each kind of change and in rows of its own: M_all moves with every row, M_a with the
rows of action a only. As E[M_new | past] ≤ 1 + M, the expected growth in a row is at most 1 for M_all, and at most 1 for *the
sum* of all M_a, of which one moves. There are G = 2 × families such sums (overall and per action, with a model and without), so

    Φ_t = Σ of all of them,    E[Φ_t | past] ≤ Φ_{t−1} + G

An alarm comes where one of the M, averaged over its family, reaches C = G × mean_time; it then begins anew at 0, which takes at
least C from Φ. So C × (alarms up to t) + Φ_t − G t is a supermartingale, and as Φ ≥ 0, for every t and every stopping time,

    E[alarms up to t] ≤ G t / C = t / mean_time:    at most one false alarm in mean_time rows, all kinds and all actions together

and the first one comes after mean_time rows or more, on average. The number of actions has no part in it: those that nobody plays
grow no evidence. Under a wrong noise, as long as residuals lie symmetrically around 0 (or means are right, where rewards have a
range), the model-free ones among the alarms keep half of that rate for themselves.

**Memory.** M_a is kept for so many actions. Where another one comes, that with the least evidence goes (of equals, the one that
was played longest ago), and begins at 0 should it come again. Evidence that is thrown away makes Φ smaller: the rate above
stands, by whatever rule. What it costs is delay, where more actions than that are played in turn.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.tables import Shown, Table
from manyarms._base.text import counted, number
from manyarms._base.typing import Array, Spec
from manyarms.errors import InvalidInput
from manyarms.sequential import inputs
from manyarms.sequential.drift_evidence import (
    LARGEST_RESIDUAL,
    LARGEST_WEIGHT,
    SIDES,
    Factors,
    Family,
    Judged,
    families,
)
from manyarms.sequential.e_detector import CAP, MOST_TIME

ACTIONS = 256  # whose evidence is kept
MOST_ACTIONS = 1_000_000
NOTICES = 8  # alarms of a family that are told: the first, and the last ones
LARGEST_ACTION = 2**62


class Notice(NamedTuple):
    """An alarm: in which row (from 1 on), by "model" or "model-free", what rewards are than predicted (`SIDES`), and of which
    action; None: over all rows."""

    row: int
    by: str
    side: str
    action: int | None


class _Kept:
    """The evidence M of one stream of rows, a list for each family; how many rows have moved it, and which one last."""

    __slots__ = ("averages", "evidence", "last", "rows")

    def __init__(self, evidence: list[list[float]], rows: int = 0, last: int = 0) -> None:
        self.evidence = evidence
        self.rows = rows
        self.last = last
        self.averages = [math.fsum(own) / len(own) for own in evidence]

    def take(self, row: int, factors: Sequence[Factors]) -> None:
        """A row."""
        self.rows += 1
        self.last = row
        self.evidence = [
            [m if e is None else min((1 + m) * e, CAP) for m, e in zip(own, some, strict=True)]
            for own, some in zip(self.evidence, factors, strict=True)
        ]
        self.averages = [math.fsum(own) / len(own) for own in self.evidence]

    def begin_anew(self, place: int) -> None:
        """No evidence of a family any more."""
        self.evidence[place] = [0.0] * len(self.evidence[place])
        self.averages[place] = 0.0

    @property
    def worth(self) -> tuple[float, int]:
        """The average of M of the family that has most, and the last row: what is least goes first."""
        return max(self.averages), self.last


@dataclass
class Rung:
    """Alarms of one family: how many over all rows, and of single actions; the first of them, and the last ones."""

    overall: int = 0
    of_actions: int = 0
    notices: list[Notice] = field(default_factory=list)

    def add(self, notice: Notice) -> None:
        if notice.action is None:
            self.overall += 1
        else:
            self.of_actions += 1
        self.notices.append(notice)
        if len(self.notices) > NOTICES:
            del self.notices[1]


class DriftAlarm(Shown):
    """An alarm when rewards are no longer what an agent predicts: over all rows and per action, with the model and without.

    mean_time: rows for one false alarm, of whatever kind, on average, at least. gaussian: whether residuals of a right model are
    standard normal; where not (clicks), there is no evidence by the model. reward_range: of rewards of any law in a range;
    without one, model-free evidence is of residuals that lie symmetrically around 0. actions: of how many the evidence is kept.

    >>> alarm = DriftAlarm(mean_time=1_000)
    >>> alarm.update([0, 1] * 100, residual=[1.0, -1.0, -1.0, 1.0] * 50, mean=[0.5, 0.2] * 100)
    >>> alarm.update([0, 1] * 100, residual=[2.0, 1.0, 0.0, -1.0] * 50, mean=[0.5, 0.2] * 100)
    >>> alarm.notices[0]
    Notice(row=233, by='model', side='steeper', action=0)
    """

    kind = "drift_alarm"

    def __init__(
        self,
        mean_time: float = 10_000,
        gaussian: bool = True,
        reward_range: tuple[float, float] | None = None,
        actions: int = ACTIONS,
    ) -> None:
        self.mean_time = validate.number("mean_time", mean_time, least=1, most=MOST_TIME)
        self.gaussian = validate.flag("gaussian", gaussian)
        self.rewards = None if reward_range is None else inputs.RewardRange(reward_range)
        self.actions = validate.count("actions", actions, least=0, most=MOST_ACTIONS)
        self.families: tuple[Family, ...] = families(self.gaussian, self.rewards)
        # C: what the average evidence of a family has to reach, over all rows and of every action
        self.threshold = 2 * len(self.families) * self.mean_time
        self.count = 0
        self.alarms = {family.name: Rung() for family in self.families}
        self.forgotten = 0
        self._means = [0.0, 0.0]  # of predicted means: their average, and the sum of squares around it
        self._overall = self._new()
        self._of_actions: dict[int, _Kept] = {}
        self._order: list[tuple[tuple[float, int], int]] = []  # a heap of (worth, action), some of them of earlier rows

    def _new(self) -> _Kept:
        return _Kept([[0.0] * family.parts for family in self.families])

    @property
    def total(self) -> int:
        """How many alarms there have been."""
        return sum(one.overall + one.of_actions for one in self.alarms.values())

    @property
    def notices(self) -> list[Notice]:
        """Alarms in the order in which they came: of each family the first, and the last ones."""
        return sorted((one for rung in self.alarms.values() for one in rung.notices), key=lambda one: one.row)

    # ---- rows

    def update(
        self,
        action: npt.ArrayLike,
        residual: npt.ArrayLike,
        mean: npt.ArrayLike,
        reward: npt.ArrayLike | None = None,
    ) -> None:
        """One row, or several in order: actions, standardised residuals, the means that were predicted for rewards (outside the
        range of rewards they count as its ends) and, where rewards have a range, rewards."""
        residuals = inputs.batch("residual", residual, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        actions = validate.integers("action", action if np.ndim(action) else cast(npt.ArrayLike, [action]))
        if len(actions) and not 0 <= actions.min() <= actions.max() <= LARGEST_ACTION:
            raise InvalidInput("action", f"{actions.min()} to {actions.max()}", "actions: integers of at least 0")
        means = inputs.batch("mean", mean, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        inputs.same_length(residual=residuals, action=actions)
        inputs.same_length(residual=residuals, mean=means)
        off, scale = self._off(means, reward)
        rows = zip(actions.tolist(), residuals.tolist(), means.tolist(), off.tolist(), scale.tolist(), strict=True)
        for one, z, predicted, away, largest in rows:
            self.count += 1
            judged = Judged(z, self._weight(predicted), away, largest)
            self._take(int(one), [family.factors(judged) for family in self.families])

    def _off(self, means: Array, reward: npt.ArrayLike | None) -> tuple[Array, Array]:
        """r − mean in units of the range, and how far it can be from 0; nothing where there is no range."""
        if self.rewards is None:
            if reward is not None:  # not needed, and no less checked
                inputs.same_length(
                    mean=means, reward=inputs.batch("reward", reward, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
                )
            return np.zeros(len(means)), np.ones(len(means))
        if reward is None:
            raise InvalidInput("reward", None, "the reward of every row, as rewards have a range")
        rewards = self.rewards.unit("reward", reward)
        inputs.same_length(mean=means, reward=rewards)
        p = np.clip((means - self.rewards.least) / self.rewards.span, 0.0, 1.0)
        return rewards - p, np.maximum(p, 1 - p)

    def _weight(self, predicted: float) -> float:
        """w: how far a prediction is from the average one so far, in standard deviations; 0 where all are the same."""
        average, squares = self._means
        away = predicted - average
        average += away / self.count
        squares += away * (predicted - average)
        self._means = [average, squares]
        if not squares > 0:
            return 0.0
        return max(-LARGEST_WEIGHT, min(LARGEST_WEIGHT, (predicted - average) / math.sqrt(squares / self.count)))

    def _take(self, action: int, factors: Sequence[Factors]) -> None:
        self._overall.take(self.count, factors)
        self._ring(self._overall, None)
        if not self.actions:
            return
        kept = self._of_actions.get(action)
        if kept is None:
            if len(self._of_actions) >= self.actions:
                del self._of_actions[self._least()]
                self.forgotten += 1
            kept = self._of_actions[action] = self._new()
        kept.take(self.count, factors)
        self._ring(kept, action)
        heapq.heappush(self._order, (kept.worth, action))
        if len(self._order) > 8 * self.actions:  # mostly of earlier rows
            self._put_in_order()

    def _put_in_order(self) -> None:
        self._order = [(kept.worth, action) for action, kept in self._of_actions.items()]
        heapq.heapify(self._order)

    def _least(self) -> int:
        """The action that goes first."""
        while True:
            worth, action = heapq.heappop(self._order)
            kept = self._of_actions.get(action)
            if kept is not None and kept.last == worth[1]:
                return action

    def _ring(self, kept: _Kept, action: int | None) -> None:
        """Alarms of those families whose evidence is enough, which begin anew."""
        for place, average in enumerate(kept.averages):
            if average >= self.threshold:
                family = self.families[place]
                side = family.side(kept.evidence[place])
                self.alarms[family.name].add(Notice(self.count, family.name, side, action))
                kept.begin_anew(place)

    def evidence(self, action: int | None = None) -> dict[str, float]:
        """The average of M of each family, to be compared with `threshold`: over all rows, or of an action."""
        kept = self._overall
        if action is not None:
            number_of = validate.count("action", action, least=0, most=LARGEST_ACTION)
            kept = self._of_actions.get(number_of, self._new())
        return {family.name: average for family, average in zip(self.families, kept.averages, strict=True)}

    @property
    def watched(self) -> list[int]:
        """The actions whose evidence is kept, most evidence first."""
        return sorted(self._of_actions, key=lambda action: self._of_actions[action].worth, reverse=True)

    # ---- state

    def spec(self) -> Spec:
        """The state as JSON holds it."""
        kept = [[action, *_plain(one)] for action, one in self._of_actions.items()]
        return {
            "kind": self.kind, "mean_time": self.mean_time, "gaussian": self.gaussian,
            "reward_range": None if self.rewards is None else self.rewards.spec(), "actions": self.actions,
            "count": self.count, "alarms": {name: _plain_rung(one) for name, one in self.alarms.items()},
            "forgotten": self.forgotten, "means": list(self._means),
            "overall": _plain(self._overall), "of_actions": kept,
        }  # fmt: skip

    @classmethod
    def restored(cls, spec: Spec) -> Self:
        """The object that `spec` is of."""
        names = ("mean_time", "gaussian", "reward_range", "actions")
        state = ("count", "alarms", "forgotten", "means", "overall", "of_actions")
        *declared, count, alarms, forgotten, means, overall, of_actions = inputs.saved(spec, cls.kind, *names, *state)
        made = cls(*declared)
        made.count = validate.count("spec", count, least=0)
        made.forgotten = validate.count("spec", forgotten, least=0, most=made.count)
        if not isinstance(alarms, dict) or set(alarms) != set(made.alarms):
            raise InvalidInput("spec", validate.describe(alarms), f"alarms of {', '.join(made.alarms)}")
        for name, rung in alarms.items():
            overall_of, actions_of, notices = _listed(rung, 3)
            made.alarms[name] = Rung(
                validate.count("spec", overall_of, least=0),
                validate.count("spec", actions_of, least=0),
                [made._notice(name, one) for one in _listed(notices, None)],
            )
        average, squares = _listed(means, 2)
        made._means = [
            validate.number("spec", average, least=-LARGEST_RESIDUAL, most=LARGEST_RESIDUAL),
            inputs.finite("spec", squares),
        ]
        made._overall = made._restored(overall)
        rows = _listed(of_actions, None)
        if len(rows) > made.actions:
            raise InvalidInput("spec", f"{len(rows)} actions", f"at most {made.actions}")
        for one in rows:
            action, *saved = _listed(one, 4)
            made._of_actions[validate.count("spec", action, least=0, most=LARGEST_ACTION)] = made._restored(saved)
        made._put_in_order()
        return made

    def _restored(self, body: object) -> _Kept:
        evidence, rows, last = _listed(body, 3)
        lists = _listed(evidence, len(self.families))
        checked = [
            [validate.number("spec", m, least=0, most=CAP) for m in _listed(own, family.parts)]
            for own, family in zip(lists, self.families, strict=True)
        ]
        number_of = validate.count("spec", rows, least=0, most=self.count)
        return _Kept(checked, number_of, validate.count("spec", last, least=0, most=self.count))

    def _notice(self, by: str, body: object) -> Notice:
        row, side, action = _listed(body, 3)
        return Notice(
            validate.count("spec", row, most=self.count),
            by,
            validate.one_of("spec", side, SIDES),
            None if action is None else validate.count("spec", action, least=0, most=LARGEST_ACTION),
        )

    # ---- shown

    def __repr__(self) -> str:
        last = f", the last in row {self.notices[-1].row:,}" if self.notices else ""
        return f"DriftAlarm: {self.count:,} rows, {counted(self.total, 'alarm')}{last}"

    def _table(self) -> Table:
        rows: list[tuple[Any, ...]] = []
        now = self.evidence()
        for name, one in self.alarms.items():
            found = counted(one.overall, "alarm") + f" over all rows, {one.of_actions:,} of single actions"
            rows.append((name, f"{found}; evidence {number(now[name])}, alarm at {number(self.threshold)}"))
        rows.append(("rows for a false alarm", f"at least {number(self.mean_time)} on average, all kinds together"))
        kept = f"{len(self._of_actions):,} kept (at most {self.actions:,}), {self.forgotten:,} forgotten"
        rows.append(("evidence of actions", kept))
        told = [notice_text(one) for one in self.notices]
        return Table(
            f"DriftAlarm after {counted(self.count, 'row')}: {counted(self.total, 'alarm')}", rows=rows, notes=told
        )


_WORDS = {
    "higher": "are higher", "lower": "are lower", "wider": "scatter more",
    "steeper": "differ more", "flatter": "differ less",
}  # fmt: skip


def notice_text(notice: Notice, action: object = None) -> str:
    """An alarm in words. action: what the action is called, its number unless said."""
    name = notice.action if action is None else action
    whose = "rewards" if notice.action is None else f"rewards of action {name}"
    return f"{whose} {_WORDS[notice.side]} than predicted ({notice.by}), noticed in row {notice.row:,}"


def _plain_rung(rung: Rung) -> list[Any]:
    return [rung.overall, rung.of_actions, [[one.row, one.side, one.action] for one in rung.notices]]


def _plain(kept: _Kept) -> list[Any]:
    return [[list(own) for own in kept.evidence], kept.rows, kept.last]


def _listed(value: object, length: int | None) -> list[Any]:
    if not isinstance(value, list | tuple) or (length is not None and len(value) != length):
        expected = "a list" if length is None else f"a list of {length}"
        raise InvalidInput("spec", validate.describe(value), expected)
    return list(value)


__all__ = ["DriftAlarm", "Notice", "notice_text"]
