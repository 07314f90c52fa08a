"""Certificates: a lower and an upper end for a policy's value that hold with probability at least 1 - delta.

    certificate = certify(policy, log, prior=PolicyPrior.of(policy0, learned_from=other_log), delta=0.05)
    certificate.lower, certificate.upper, certificate.terms
    improvement(policy, log, prior=...).certified

With a prior the policy is a `GaussianPolicy` or a `MixedLogitPolicy` and may have been learned from the rows of the log.
Without one it must have been fixed before the log was seen, and can be any policy.

How delta is spent: a tenth on Monte Carlo, where the policy's probabilities come from it; the rest in equal parts on the
families of bounds that were asked for; in each family on both sides, and on the points of a grid that is declared beforehand.
Everything that was declared then holds at once, so that the best lower and the best upper end may be read off.

The log is read once, for a certificate and an improvement together (`certify_with_improvement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from manyarms._base import validate
from manyarms._base.text import counted
from manyarms._base.typing import Array
from manyarms.bounds import BOUNDS, Bound, Budget, Gain, Grid, LogSmoothingBound, Side, Summary
from manyarms.bounds.concentration import confidence
from manyarms.bounds.grid import BELOW_ONE
from manyarms.certificates.certificate import TOKEN, Certificate, Ends, Improvement
from manyarms.certificates.families import Declared, Family, families_of, grid_values, listed
from manyarms.certificates.groups import share_of, size_limits
from manyarms.certificates.prior import PolicyPrior, Randomised
from manyarms.certificates.reading import Reading, Summaries
from manyarms.certificates.sample_size import rows_needed
from manyarms.engine import On
from manyarms.errors import Contradiction, InvalidInput
from manyarms.estimators.logging_policy import full_propensities, require_full_propensities
from manyarms.evaluation.given import Given
from manyarms.evaluation.policy_like import PolicyLike, given_for
from manyarms.evaluation.readers import Reader, reader_of
from manyarms.logs.data import LogSource
from manyarms.logs.original import with_original_columns
from manyarms.logs.row_sketch import RowSketch
from manyarms.policies.base import Policy
from manyarms.policies.randomised import MixedLogitPolicy

MONTE_CARLO = 0.1  # the share of delta that simulated probabilities cost
DRAWS = 4096
SEED = 715_517  # of the certificate's own draws, which learning must not have seen


def certify(
    policy: PolicyLike,
    log: LogSource,
    *,
    prior: PolicyPrior | None = None,
    delta: float = 0.05,
    bound: Declared | Sequence[Declared] | None = None,
    grid: Grid | None = None,
    largest_reward: float = 1.0,
    two_sided: bool = True,
    learned_from: LogSource | RowSketch | None = None,
    largest_group: int | None = None,
    independent: bool = False,
    trust_estimates: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
    on: On = "local",
) -> Certificate:
    """A certificate for the value of a policy, from the rows of a log.

    policy: whatever `evaluate` takes, but an agent whose probabilities are estimates.
    prior: for a policy that was learned from these rows; without it the policy must have been fixed before, and a log that has
    rows in common with those that the policy was learned from is refused (`learned_from`, or what the policy carries).
    bound: one or several names of
    `manyarms.bounds.BOUNDS`, bounds, corrections or estimators of the IPS family, decided on before the log is looked at; by
    default exponential smoothing and logarithmic smoothing, or the latter alone where pi0 of all actions is not known.
    largest_reward: the largest that there can be; the smallest is 0. two_sided=False spends all of delta on the lower end.
    largest_group: for rows that come in groups, the most rows that one can have, known beforehand; the certificate is for the
    value per group, and of the number of groups (`manyarms.certificates.groups`). Without it, the value is that of the first M
    rows of a group, for the first power of 2 that no group exceeds, at the price of a part of delta.
    independent: rows of a group are independent all the same.
    trust_estimates: take propensities that are estimates for exact; refused otherwise.
    draws, seed: of the Monte Carlo
    for mixed-logit policies, drawn anew for the certificate.
    on: who reads the log, as in `evaluate`; rows in groups are read in this process alone.
    """
    two_sided = validate.flag("two_sided", two_sided)
    with reader_of(log, on) as reader:
        case = _Case(
            policy, log, prior, delta, largest_reward, learned_from, largest_group, independent, draws, seed,
            trust_estimates, reader,
        )  # fmt: skip
        read = case.read(case.declared(bound), _grid(grid), gain=False)
        return case.certificate(read, two_sided)


def improvement(
    policy: PolicyLike,
    log: LogSource,
    *,
    prior: PolicyPrior | None = None,
    delta: float = 0.05,
    grid: Grid | None = None,
    largest_reward: float = 1.0,
    learned_from: LogSource | RowSketch | None = None,
    largest_group: int | None = None,
    independent: bool = False,
    trust_estimates: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
    on: On = "local",
) -> Improvement:
    """A lower end for V(policy) - V(logging policy), both on the same rows (`bounds.Gain`), over the grid's smoothings below 1.

    A statement of its own: it and a certificate hold with probability 1 - delta each, not together.
    """
    with reader_of(log, on) as reader:
        case = _Case(
            policy, log, prior, delta, largest_reward, learned_from, largest_group, independent, draws, seed,
            trust_estimates, reader,
        )  # fmt: skip
        return case.improvement(case.read((), _grid(grid), gain=True))


def certify_with_improvement(
    policy: PolicyLike,
    log: LogSource,
    *,
    prior: PolicyPrior | None = None,
    delta: float = 0.05,
    bound: Declared | Sequence[Declared] | None = None,
    grid: Grid | None = None,
    largest_reward: float = 1.0,
    two_sided: bool = True,
    learned_from: LogSource | RowSketch | None = None,
    largest_group: int | None = None,
    independent: bool = False,
    trust_estimates: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
    on: On = "local",
) -> tuple[Certificate, Improvement]:
    """`certify` and `improvement`, each with its own delta, from one reading of the log."""
    two_sided = validate.flag("two_sided", two_sided)
    with reader_of(log, on) as reader:
        case = _Case(
            policy, log, prior, delta, largest_reward, learned_from, largest_group, independent, draws, seed,
            trust_estimates, reader,
        )  # fmt: skip
        read = case.read(case.declared(bound), _grid(grid), gain=True)
        return case.certificate(read, two_sided), case.improvement(read)


def _grid(grid: Grid | None) -> Grid:
    return Grid() if grid is None else validate.instance("grid", grid, Grid, "a Grid")


def gains(grid: Grid, rows: int) -> list[Gain]:
    """The bounds of the gain over a grid's smoothings below 1."""
    smoothings = [one for one in grid.resolved(rows).values("smoothings") if one < 1] or [BELOW_ONE]
    return [Gain(one) for one in smoothings]


class _Case:
    """A policy, a log and a prior that were checked, and what statements about them may cost."""

    def __init__(
        self,
        what: PolicyLike,
        log: LogSource,
        prior: PolicyPrior | None,
        delta: float,
        largest_reward: float,
        learned_from: LogSource | RowSketch | None,
        largest_group: int | None,
        independent: bool,
        draws: int,
        seed: int,
        trust_estimates: bool,
        reader: Reader,
    ) -> None:
        self.delta, independent = confidence("delta", delta), validate.flag("independent", independent)
        self.largest_reward = validate.positive("largest_reward", largest_reward)
        draws, seed = validate.count("draws", draws, least=2), validate.seed(seed)
        given = given_for(what, log)
        if given.estimated:
            raise InvalidInput(
                "policy", f"{given.name}, whose probabilities are estimates", "one whose probabilities are known, such as "
                "Agent(agent.belief, Greedy())",
            )  # fmt: skip
        # a policy that can be asked anywhere is one; what is known row by row answers when the rows come
        policy: Policy | Given = given if given.policy is None else given.policy
        if isinstance(what, Randomised) and policy is not what:
            raise InvalidInput(
                "policy", "a randomised policy over other ids or contexts than the log's",
                "a log in its own words: open it with the catalogue and the encoder of policy.schema",
            )  # fmt: skip
        if prior is not None:
            validate.instance("prior", prior, PolicyPrior, "a PolicyPrior, such as PolicyPrior.of(policy0)")
        trusted = validate.flag("trust_estimates", trust_estimates)
        log = with_original_columns(log, given.columns_for) if given.columns_for else log
        self.reading = Reading(log, by_group=not independent, trust_estimates=trusted, reader=reader)
        first = self.reading.first
        given.look(first)
        self.logged_only = given.logged_only
        self.notes = [*first.notes, *given.notes]
        if largest_group is not None and (first.groups is None or independent):
            largest_group = validate.count("largest_group", largest_group)
            came = "a log without groups" if first.groups is None else "independent=True"
            expected = "a log with groups (columns.group) whose rows need not be independent"
            raise InvalidInput("largest_group", f"{largest_group}, and {came}", expected)
        self.grouped, self.largest_group = first.groups is not None and not independent, largest_group
        self.share = 1.0  # of delta, that is left for what was read off the log
        if self.grouped:
            self._require_groups(policy, prior)
        else:
            said = "rows are taken to be independent" + ("" if first.groups is None else ", also those of one group")
            self.notes.append(f"{said}: rounds of the same user or session are not")
        self.kl, self.learned, self.randomised = 0.0, prior is not None, isinstance(policy, Randomised)
        if prior is not None:
            if not isinstance(policy, Randomised):
                raise InvalidInput(
                    "policy", validate.describe(policy), "a GaussianPolicy or a MixedLogitPolicy, with a prior"
                )
            if prior.learned_from is not None:
                self.reading.refuse_rows_of("prior.learned_from", prior.learned_from)
            else:
                self.notes.append(
                    "the prior is taken not to depend on these rows: nothing was said about where it came from"
                )
            self.kl = prior.divergence(policy)
        else:
            carried = getattr(policy, "training_rows", None)
            if learned_from is not None:
                self.reading.refuse_rows_of("learned_from", learned_from)
            if carried is not None:
                self.reading.refuse_rows_of("policy", carried)
            self.notes.append(
                "holds for a policy that was fixed before these rows were seen; one learned from them would need a prior"
            )
        self.simulated = isinstance(policy, MixedLogitPolicy)
        if isinstance(policy, MixedLogitPolicy):
            # numbers of the certificate's own: a policy learned with some draws looks too good on the same ones
            policy = MixedLogitPolicy(
                policy.actions, policy.sigma, policy.encoder, draws, seed + 1 if seed == policy.seed else seed
            )
            self.notes.append(
                f"the policy's probabilities are means of {draws:,} draws; their error is paid for with a tenth of delta"
            )
        elif (tolerance := float(getattr(policy, "tolerance", 0.0))) > 0:
            self.notes.append(
                f"the policy's probabilities come from quadrature, within {tolerance:.0e}, which is reckoned in"
            )
        self.policy, self.seed = policy, seed

    def _require_groups(self, policy: Policy | Given, prior: PolicyPrior | None) -> None:
        """What groups need: a policy with exact probabilities that was fixed before."""
        if prior is not None or isinstance(policy, MixedLogitPolicy):
            came = "a mixed-logit policy" if prior is None else "a prior"
            raise InvalidInput(
                "policy" if prior is None else "prior", f"{came}, with rows in groups",
                "a policy with exact probabilities that was not learned from these groups (log.split keeps groups together)",
            )  # fmt: skip
        if self.largest_group is not None:
            self.largest_group = most = validate.count("largest_group", self.largest_group)
            self.notes.append(f"groups of at most {most:,} rows are independent of each other, their rows need not be")

    def _settle(self, most: int, sizes: Array) -> None:
        """The number of rows that the value of a group counts, read off the log, and what that costs."""
        self.largest_group, self.share = most, share_of(most)
        self.notes.append(
            "groups are independent of each other, their rows need not be. Nobody said how many rows one can have, and none has "
            f"more than {round(float(sizes.max()) * most):,}: values are those of a group's first {counted(most, 'row')}, a "
            f"number chosen among 1, 2, 4, ..., which leaves {self.share:.3g} of delta (largest_group= costs nothing)"
        )

    @property
    def level(self) -> float:
        """The part of delta that is left."""
        return self.delta * self.share

    @property
    def unit(self) -> str:
        """What the value is per."""
        return "group" if self.grouped else "row"

    @property
    def top(self) -> float:
        """The largest reward of a unit."""
        return self.largest_reward * (self.largest_group or 1)

    @property
    def simulation(self) -> float:
        """The part of delta that Monte Carlo takes."""
        return self.delta * MONTE_CARLO if self.simulated else 0.0

    def declared(self, bound: Declared | Sequence[Declared] | None) -> Sequence[Declared]:
        """The bounds that were asked for, or the usual ones."""
        if bound is not None:
            given = listed(bound)
            if not given:
                raise InvalidInput("bound", "none", f"one or more of {', '.join(BOUNDS)}")
            return given
        if self.grouped:
            return ("ls",)
        return ("es", "ls") if not self.logged_only and full_propensities(self.reading.first) is not None else ("ls",)

    def read(self, declared: Sequence[Declared], grid: Grid, *, gain: bool) -> _Read:
        """Read the log for bounds of the value and, where wanted, of the gain."""

        def families(rows: int) -> list[Family]:
            return families_of(declared, grid, rows) if declared else []

        for family in families(2):
            self._require_fit(family)

        def bounds(rows: int) -> tuple[list[Bound], list[Bound]]:
            return [one for family in families(rows) for one in family.bounds], [*gains(grid, rows)] if gain else []

        sizes = None
        if not self.grouped:
            summaries = self.reading.summaries(self.policy, bounds, self.largest_reward, self.seed)
        else:
            given = self.largest_group
            summaries, sizes, most = self.reading.grouped(self.policy, bounds, self.largest_reward, given)
            if given is None:
                self._settle(most, sizes)
        rows = summaries.rows
        if self.reading.estimated:
            share = self.reading.estimated / self.reading.read
            self.notes.append(
                f"propensities are estimates{'' if share == 1 else f' in {share:.1%} of the rows'}, and the certificate takes "
                "them for exact: it holds only as far as they do"
            )
        return _Read(families(rows), gains(grid, rows), summaries, grid_values(families(rows), grid, rows), sizes)

    def certificate(self, read: _Read, two_sided: bool) -> Certificate:
        """The best ends of all families, each with its share of delta; where rows come in groups, also the value per row."""
        made = self._certificate(read, two_sided, self.level)
        if read.sizes is None:
            return made
        half = self._certificate(read, two_sided, self.level / 2)
        low, high = size_limits(read.sizes, self.level / 2, two_sided=two_sided)
        top = self.largest_reward * float(self.largest_group or 1)
        upper = min(1.0, half.upper / top / low) if low > 0 else 1.0
        lower = half.lower / top / high
        if lower > upper:
            raise Contradiction(f"a value per row of at least {lower:.6g} and of at most {upper:.6g}", self.delta)
        per_row = (lower * self.largest_reward, upper * self.largest_reward)
        return replace(made, delta=self.delta, per_row=per_row, token=TOKEN)

    def _certificate(self, read: _Read, two_sided: bool, delta: float) -> Certificate:
        share = (delta - self.simulation) / len(read.families)
        moved = read.summaries.with_margins(self.simulation)
        candidates, limit = [], self.top
        for family in read.families:
            drawn = read.summaries.is_drawn(family.bounds[0])
            below, above = moved[drawn]
            budget = Budget(share, 2 if two_sided else 1, family.points)
            chosen, lower = _best(family.bounds, below, self.kl, budget)
            upper = min((one.upper(above, self.kl, budget) for one in family.bounds), key=lambda side: side.end)
            limit = min(limit, self.top * upper.end)
            own = read.summaries.of_value[drawn]
            candidates.append(self._ends(family, chosen, lower, upper if two_sided else None, own))
        best, top = max(candidates, key=lambda ends: ends.lower), self.top
        if best.lower > limit or limit < 0:  # also where nobody asked for the upper end: it is no claim, but a check
            raise Contradiction(f"a value of at least {best.lower:.6g} and of at most {limit:.6g}", self.delta)
        upper_end = min(top, *(one.upper for one in candidates))
        return Certificate(
            max(0.0, best.lower), upper_end, best.value, best.terms,
            best.label, delta, read.grid, self.kl, read.summaries.rows, self.policy.action_count, read.summaries.logged * top,
            top, two_sided, self.learned, tuple(candidates), tuple(self.notes), self.unit, token=TOKEN,
        )  # fmt: skip

    def improvement(self, read: _Read) -> Improvement:
        """The best lower end of the gain, with all of delta."""
        summary, spent, top = read.summaries.of_gain, self.level - self.simulation, self.top
        below, _ = summary.with_margins(self.delta * MONTE_CARLO)
        chosen, side = _best(read.gains, below, self.kl, Budget(spent, 1, len(read.gains)))
        loss = max(one.opposite(below, self.kl, Budget(spent, 1, len(read.gains))) for one in read.gains)
        if side.end > min(1.0, -loss):
            came = f"a gain of at least {side.end * top:.6g} and of at most {-loss * top:.6g}"
            raise Contradiction(came, self.delta)
        needed = rows_needed(below, self.kl, 0.0, spent, read.gains)
        return Improvement(
            side.end * top, side.start * top, summary.logged * top, self.delta, chosen.settings["smoothing"],
            summary.rows, needed, tuple(self.notes), self.unit, token=TOKEN,
        )  # fmt: skip

    def _require_fit(self, family: Family) -> None:
        """Refuse a bound that does not hold for this policy, or cannot be had from this log, with the reason."""
        for one in family.bounds:
            if self.grouped and not isinstance(one, LogSmoothingBound):
                raise InvalidInput("bound", repr(family.name), "'ls', where rows come in groups")
            if one.needs_logging_policy:
                purpose = f"the bound {family.name!r} (its bias and variance sum over all actions; ls, london, sakhi-1 do not)"
                require_full_propensities(self.reading.first, purpose)
                if self.logged_only:
                    came = f"{family.name!r}, and a policy of which the probabilities of the logged actions alone are known"
                    raise InvalidInput("bound", came, "'ls', 'london' or 'sakhi-1', which need no others")
            if one.for_fixed_only and (self.learned or self.randomised):
                raise InvalidInput(
                    "bound", repr(family.name),
                    "another one: this is for a policy that is not randomised, and was fixed beforehand",
                )  # fmt: skip
            if self.randomised and not self.simulated and (one.over_draws or not one.mixture):
                raise InvalidInput(
                    "bound", repr(family.name),
                    "another one: weights that are not linear in the policy need the general bound, and softmax parameters "
                    "to draw",
                )  # fmt: skip

    def _ends(self, family: Family, bound: Bound, lower: Side, upper: Side | None, summary: Summary) -> Ends:
        """Ends in the rewards' units; what the policy's own inexactness costs is whatever the other terms leave."""
        top = self.top
        exact = bound.lower(summary, self.kl, Budget(0.5)).start  # where the bound starts does not depend on the budget
        terms = {key: top * cost for key, cost in lower.costs.items()}
        if not summary.is_exact:
            terms["simulation" if summary.draws is not None else "quadrature"] = top * (exact - lower.start)
        above = {} if upper is None else {key: top * cost for key, cost in upper.costs.items()}
        end = top if upper is None else top * upper.end
        return Ends(family.name, bound.label, top * exact, top * lower.end, end, terms, above, bound.settings)


class _Read(NamedTuple):
    """What was declared, for the number of rows that there are, and the summaries of it."""

    families: list[Family]
    gains: list[Gain]
    summaries: Summaries
    grid: dict[str, tuple[float, ...]]
    sizes: Array | None  # of the groups, in units of the largest possible


def _best(bounds: Sequence[Bound], summary: Summary, kl: float, budget: Budget) -> tuple[Bound, Side]:
    """The bound with the largest lower end."""
    return max(((one, one.lower(summary, kl, budget)) for one in bounds), key=lambda pair: pair[1].end)


__all__ = ["DRAWS", "MONTE_CARLO", "SEED", "certify", "certify_with_improvement", "improvement"]
