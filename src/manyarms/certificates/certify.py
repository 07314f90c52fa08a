"""Certificates: a lower and an upper end for a policy's value that hold with probability at least 1 - delta.

    certificate = certify(policy, log, prior=Prior.of(policy0, learned_from=other_log), delta=0.05)
    certificate.lower, certificate.upper, certificate.terms
    improvement(policy, log, prior=...).certified

With a prior the policy is a `GaussianPolicy` or a `MixedLogitPolicy` and may have been learned from the rows of the log.
Without one it must have been fixed before the log was seen, and can be any policy.

How delta is spent: a tenth on Monte Carlo, where the policy's probabilities come from it; the rest in equal parts on the
families of bounds that were asked for; in each family on both sides, and on the points of a grid that is declared beforehand.
Everything that was declared then holds at once, so that the best lower and the best upper end may be read off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from manyarms._base import validate
from manyarms.certificates.bounds import Bound, Budget, Gain, Side
from manyarms.certificates.bounds.base import confidence
from manyarms.certificates.certificate import SEAL, Certificate, Ends, Improvement
from manyarms.certificates.draws import averaged, drawn_policies, reach_of
from manyarms.certificates.grids import BELOW_ONE, FAMILIES, NAMES, Family, Grid
from manyarms.certificates.needed import rows_needed
from manyarms.certificates.passes import summarise
from manyarms.certificates.prior import Prior, Randomised, require_other_rows
from manyarms.certificates.summaries import Summary
from manyarms.errors import InvalidInput
from manyarms.estimators.logging_policy import full_propensities as whole_logging
from manyarms.estimators.logging_policy import require_full_propensities as require_whole
from manyarms.evaluation.passes import survey
from manyarms.logs.data import LoggedData, LogSource
from manyarms.policies.base import Policy
from manyarms.policies.randomised import MixedLogitPolicy
from manyarms.weights import Correction

MONTE_CARLO = 0.1  # the share of delta that simulated probabilities cost
DRAWS = 4096
PARAMETERS = 64  # draws of all parameters, each a pass over the log, for corrections that are not linear
SEED = 715_517  # of the certificate's own draws, which learning must not have seen


@dataclass(frozen=True)
class Case:
    """A policy, a log and a prior that were checked, and what one statement about them may cost."""

    policy: Policy
    log: LogSource
    first: LoggedData
    rows: int
    kl: float
    learned: bool
    linear: bool
    delta: float
    largest_reward: float
    notes: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        """Whether the policy's probabilities come from Monte Carlo."""
        return isinstance(self.policy, MixedLogitPolicy)


def certify(
    policy: Policy,
    log: LogSource,
    *,
    prior: Prior | None = None,
    delta: float = 0.05,
    bound: str | Sequence[str] | None = None,
    grid: Grid | None = None,
    largest_reward: float = 1.0,
    two_sided: bool = True,
    learned_from: LogSource | None = None,
    independent: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Certificate:
    """A certificate for the value of a policy, from the rows of a log.

    prior: for a policy that was learned from these rows; without it the policy must have been fixed before, and
    `learned_from`, if given, is refused where it has rows in common with the log. bound: one or several of `NAMES`, decided
    on before the log is looked at; by default exponential smoothing and logarithmic smoothing, or the latter alone where pi0
    of all actions is not known. largest_reward: the largest that there can be; the smallest is 0. two_sided=False spends all
    of delta on the lower end. independent: rows that come in groups are refused unless they are independent all the same.
    draws, seed: of the Monte Carlo for mixed-logit policies, drawn anew for the certificate.
    """
    case = _case(policy, log, prior, delta, largest_reward, learned_from, independent, draws, seed)
    names = _names(bound, case)
    grid = (grid or Grid()).resolved(case.rows)
    families = {name: FAMILIES[name].points(grid, case.rows) for name in names}
    for name, (bounds, _) in families.items():
        _fits(name, bounds, case)
    summaries = _summaries(case, families, seed)
    share = case.delta * (1 - MONTE_CARLO if case.simulated else 1) / len(families)
    moved = {kind: one.worst(case.delta * MONTE_CARLO / len(summaries)) for kind, one in summaries.items()}
    candidates = []
    for name, (bounds, points) in families.items():
        below, above = moved[_kind(name, case)]
        budget = Budget(share, 2 if two_sided else 1, points)
        lower = max(((one, one.lower(below, case.kl, budget)) for one in bounds), key=lambda pair: pair[1].end)
        upper = (
            min((one.upper(above, case.kl, budget) for one in bounds), key=lambda side: side.end) if two_sided else None
        )
        candidates.append(_ends(name, lower, upper, summaries[_kind(name, case)], case))
    best = max(candidates, key=lambda ends: ends.lower)
    top = case.largest_reward
    any_summary = next(iter(summaries.values()))
    return Certificate(
        min(max(0.0, best.lower), top), max(0.0, min(top, *(one.upper for one in candidates))), best.value, best.terms,
        best.label, case.delta, {name: grid.values(name) for name in _used(families)}, case.kl, case.rows,
        policy.action_count, any_summary.logged * top, top, two_sided, case.learned, tuple(candidates), case.notes,
        seal=SEAL,
    )  # fmt: skip


def improvement(
    policy: Policy,
    log: LogSource,
    *,
    prior: Prior | None = None,
    delta: float = 0.05,
    grid: Grid | None = None,
    largest_reward: float = 1.0,
    learned_from: LogSource | None = None,
    independent: bool = False,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Improvement:
    """A lower end for V(policy) - V(logging policy), both on the same rows (`bounds.Gain`), over the grid's smoothings below 1.

    A statement of its own: it and a certificate hold with probability 1 - delta each, not together.
    """
    case = _case(policy, log, prior, delta, largest_reward, learned_from, independent, draws, seed)
    smoothings = [one for one in (grid or Grid()).resolved(case.rows).values("smoothings") if one < 1] or [BELOW_ONE]
    bounds = [Gain(one) for one in smoothings]
    summary = summarise(
        case.policy, log, (), smoothings, whole=False, linear=case.linear, largest_reward=case.largest_reward
    )
    spent = case.delta * (1 - MONTE_CARLO if case.simulated else 1)
    below, _ = summary.worst(case.delta * MONTE_CARLO)
    budget = Budget(spent, 1, len(bounds))
    chosen, side = max(((one, one.lower(below, case.kl, budget)) for one in bounds), key=lambda pair: pair[1].end)
    needed = rows_needed(below, case.kl, 0.0, spent, bounds)
    top = case.largest_reward
    return Improvement(
        side.end * top, side.start * top, summary.logged * top, case.delta, chosen.smoothing, case.rows, needed, case.notes,
        seal=SEAL,
    )  # fmt: skip


def _case(
    policy: Policy,
    log: LogSource,
    prior: Prior | None,
    delta: float,
    largest_reward: float,
    learned_from: LogSource | None,
    independent: bool,
    draws: int,
    seed: int,
) -> Case:
    confidence(delta)
    validate.positive("largest_reward", largest_reward)
    known = survey(log)
    first = known.first
    if first.groups is not None and not independent:
        raise InvalidInput(
            "log", "rows in groups", "independent rows: a certificate is for those (independent=True, on the command line "
            "--independent, where rows of a group have nothing to do with each other)",
        )  # fmt: skip
    notes = list(first.notes)
    if first.propensities_are_estimates:
        notes.append(
            "propensities are estimates, and the certificate takes them for exact: it holds only as far as they do"
        )
    randomised = isinstance(policy, Randomised)
    kl = 0.0
    if prior is not None:
        if not isinstance(policy, Randomised):
            raise InvalidInput(
                "policy", validate.describe(policy), "a GaussianPolicy or a MixedLogitPolicy, with a prior"
            )
        if prior.learned_from is not None:
            require_other_rows("prior.learned_from", prior.learned_from, log)
        else:
            notes.append("the prior is taken not to depend on these rows: nothing was said about where it came from")
        kl = prior.divergence(policy)
    else:
        if learned_from is not None:
            require_other_rows("learned_from", learned_from, log)
        notes.append("holds for a policy that was fixed before these rows were seen; a learned one needs a prior")
    if isinstance(policy, MixedLogitPolicy):
        # numbers of the certificate's own: a policy learned with some draws looks too good on the same ones
        policy = MixedLogitPolicy(
            policy.actions, policy.sigma, policy.encoder, draws, seed + 1 if seed == policy.seed else seed
        )
        notes.append(
            f"the policy's probabilities are means of {draws:,} draws; their error is paid for with a tenth of delta"
        )
    elif (tolerance := float(getattr(policy, "tolerance", 0.0))) > 0:
        notes.append(f"the policy's probabilities come from quadrature, within {tolerance:.0e}, which is reckoned in")
    return Case(
        policy,
        log,
        first,
        known.rows,
        kl,
        prior is not None,
        randomised,
        float(delta),
        float(largest_reward),
        tuple(notes),
    )


def _names(bound: str | Sequence[str] | None, case: Case) -> tuple[str, ...]:
    if bound is None:
        return ("es", "ls") if whole_logging(case.first) is not None else ("ls",)
    names = tuple(dict.fromkeys([bound] if isinstance(bound, str) else bound))
    unknown = [name for name in names if name not in FAMILIES]
    if unknown or not names:
        raise InvalidInput("bound", ", ".join(map(repr, unknown)) or "none", f"one or more of {', '.join(NAMES)}")
    return names


def _fits(name: str, bounds: Sequence[Bound], case: Case) -> None:
    """Refuse a bound that does not hold for this policy, or cannot be had from this log, with the reason."""
    if bounds[0].needs_logging:
        require_whole(
            case.first, f"the bound {name!r} (its bias and variance sum over all actions; ls, london, sakhi-1 do not)"
        )
    if bounds[0].for_fixed_only and (case.learned or case.linear):
        raise InvalidInput(
            "bound", repr(name), "another one: this is for a policy that is not randomised, and was fixed beforehand"
        )
    if name == "harmonic" and case.linear and not case.simulated:
        raise InvalidInput("bound", repr(name), "another one: the general bound needs softmax parameters to draw")


def _kind(name: str, case: Case) -> str:
    """Which summary a family reads: the general bound's draws of parameters, or the usual one."""
    return "drawn" if name == "harmonic" and case.simulated else "usual"


def _summaries(case: Case, families: Mapping[str, tuple[list[Bound], int]], seed: int) -> dict[str, Summary]:
    found = {}
    for kind in dict.fromkeys(_kind(name, case) for name in families):
        bounds = [one for name, (some, _) in families.items() if _kind(name, case) == kind for one in some]
        corrections: list[Correction] = list(dict.fromkeys(c for one in bounds for c in one.corrections))
        if kind == "drawn":
            assert isinstance(case.policy, MixedLogitPolicy)
            each = [
                summarise(one, case.log, corrections, linear=False, largest_reward=case.largest_reward)
                for one in drawn_policies(case.policy, PARAMETERS, seed + 2)
            ]
            found[kind] = averaged(each, reach_of(case.log, corrections, case.largest_reward))
            continue
        found[kind] = summarise(
            case.policy, case.log, corrections, list(dict.fromkeys(s for one in bounds for s in one.smoothings)),
            whole=any(one.needs_logging for one in bounds), linear=case.linear, largest_reward=case.largest_reward,
        )  # fmt: skip
    return found


def _ends(name: str, lower: tuple[Bound, Side], upper: Side | None, summary: Summary, case: Case) -> Ends:
    """Ends in the rewards' units; what the policy's own inexactness costs is whatever the other terms leave."""
    bound, side = lower
    top = case.largest_reward
    exact = bound.lower(summary, case.kl, Budget(0.5)).start  # where the bound starts does not depend on the budget
    terms = {key: top * cost for key, cost in side.costs.items()}
    lost = exact - side.start
    if not summary.is_exact:
        terms["simulation" if summary.draws is not None else "quadrature"] = top * lost
    above = {} if upper is None else {key: top * cost for key, cost in upper.costs.items()}
    end = top if upper is None else top * upper.end
    return Ends(name, bound.label, top * exact, top * side.end, end, terms, above, bound.settings)


def _used(families: Mapping[str, object]) -> list[str]:
    """The names of the grids that some family looks at."""
    read = {
        "lambdas": ("es", "ips", "clip", "ix", "harmonic", "any-alpha", "sakhi-2"),
        "alphas": ("es", "any-lambda", "any-alpha"),
        "taus": ("clip", "london", "sakhi-1", "sakhi-2", "bernstein"),
        "gammas": ("ix", "ix-tail"),
        "smoothings": ("ls",),
        "strengths": ("harmonic",),
    }
    return [name for name, users in read.items() if any(user in families for user in users)]


__all__ = ["DRAWS", "MONTE_CARLO", "SEED", "Family", "certify", "improvement"]
