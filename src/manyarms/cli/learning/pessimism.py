"""`--pessimism`: a randomised policy learned by a lower bound on its value, and the certificate that goes with it.

What is declared, is declared by the command line alone, before a row is read: which bounds the certificate looks at, and any
parameter that was given. What was not given is left to learning, and the certificate pays for the grid that it comes from.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from manyarms.bounds import BOUNDS, Grid
from manyarms.bounds.concentration import confidence
from manyarms.certificates import Certificate, Improvement, PolicyPrior, certify, improvement
from manyarms.certificates.prior import require_other_rows
from manyarms.cli.learning.inputs import Inputs
from manyarms.errors import InvalidInput
from manyarms.estimators import ES, LS, Heuristic, Objective, PACBayes, cIPS
from manyarms.estimators.logging_policy import whole_logging
from manyarms.learning.settings import one_of
from manyarms.logs import LoggedData
from manyarms.policies import GaussianPolicy, MixedLogitPolicy
from manyarms.policies.base import Policy

TAKES = {
    "es-bound": "alpha", "london": "tau", "sakhi1": "tau", "sakhi2": "tau", "ls": "smoothing", "heuristic": "alpha",
}  # fmt: skip
"""What a policy can be learned by, and the parameter that it takes."""

ALL_ACTIONS = ("es-bound", "sakhi2", "heuristic")
CERTIFIED_BY = {"london": ("london", "ls"), "sakhi1": ("sakhi-1", "ls"), "sakhi2": ("sakhi-2", "ls"), "ls": ("ls",)}
FAMILIES = ("gaussian", "mixed-logit")
SUBFOLDER = "prior"
MOST_SMOOTHING = 0.9

Randomised = GaussianPolicy | MixedLogitPolicy


@dataclass(frozen=True)
class Certified:
    """The certificate of a learned policy, and what is certified of its improvement."""

    certificate: Certificate
    gain: Improvement


@dataclass(frozen=True)
class Pessimism:
    """What to learn by, and how sure the certificate must be.

    parameters: alpha, tau or smoothing, where given; the certificate then looks at no other. family: of the randomised policy.
    independent: rows of a group are independent of each other all the same.
    """

    kind: str
    delta: float = 0.05
    family: str = "gaussian"
    parameters: dict[str, float | int] = field(default_factory=dict)
    independent: bool = False

    def __post_init__(self) -> None:
        learnable = [name for name in BOUNDS if not BOUNDS[name].for_fixed_only]
        if self.kind not in BOUNDS or BOUNDS[self.kind].for_fixed_only:
            one_of("--pessimism", self.kind, tuple(dict.fromkeys((*TAKES, *learnable))))
        one_of("--family", self.family, FAMILIES)
        confidence("delta", self.delta)
        for name in self.parameters:
            if name != (takes := TAKES.get(self.kind)):
                raise InvalidInput(
                    f"--{name}", f"it for {self.kind}", f"none: what {self.kind} takes is {takes and f'--{takes}'}"
                )
        self.objective(2)  # refuses a parameter out of range

    def objective(self, rows: int) -> Objective:
        """What is maximised on so many rows; a parameter that was not given follows from their number, or from batches."""
        if self.kind not in TAKES:
            return PACBayes.by_bound(self.kind, rows, self.delta)
        given = self.parameters.get(TAKES[self.kind])
        if self.kind == "es-bound":
            return PACBayes(ES("adaptive" if given is None else given), self.delta)
        if self.kind == "heuristic":
            return Heuristic(ES(1 - rows**-0.25 if given is None else given))
        if self.kind == "ls":
            return PACBayes(LS(min(MOST_SMOOTHING, 2 * rows**-0.5) if given is None else given), self.delta)
        return PACBayes(cIPS(rows**-0.25 if given is None else given), self.delta, bound=self.kind)

    def checked(self, log: LoggedData, inputs: Inputs) -> LoggedData:
        """The log, with a note on what its certificate takes for granted; refused before anything is learned, if at all."""
        log.require("propensities", purpose="a certificate")
        log.require("unit_rewards", purpose="a certificate")
        if log.groups is not None and not self.independent:
            expected = "independent rows for a certificate, or --independent where rows of a group are so all the same"
            raise InvalidInput("LOG", "rows in groups", expected)
        needed = self.kind in ALL_ACTIONS or (self.kind in BOUNDS and BOUNDS[self.kind].needs_logging_policy)
        if needed and (whole_logging(log) is None or not isinstance(log.logging, Policy)):
            raise InvalidInput(
                "--logging", "none", f"a folder with the policy that wrote the log: --pessimism {self.kind} needs its "
                "probabilities of all actions, for bias and variance; ls, london and sakhi1 do without",
            )  # fmt: skip

        if not inputs.encoding_is_the_logs_own(log):
            return log
        note = "contexts are encoded by categories, means and scales of these rows; the certificate takes them for fixed before"
        return replace(log, notes=(*log.notes, note))

    def start(self, log: LoggedData, inputs: Inputs) -> tuple[Randomised, PolicyPrior]:
        """What learning starts from, and the same as a prior: around the policy of --prior, else around 0 (or --actions)."""
        learned_from = inputs.prior_rows(log)
        if learned_from is not None:
            require_other_rows("--prior-log", learned_from, log)
        known = inputs.prior_policy()
        if known is not None:
            prior = PolicyPrior.of(known.policy, learned_from)
            width = prior.mean.shape[1] if prior.encoder is None else prior.encoder.dim
            if len(prior.mean) != log.action_count or width != log.dim:
                came = f"a policy over {len(prior.mean)} actions and contexts of length {width}"
                raise InvalidInput("--prior", came, f"one over the log's {log.action_count} and {log.dim}")
        elif inputs.embeddings is None:
            prior = PolicyPrior(np.zeros((log.action_count, log.dim)))
        else:
            vectors = inputs.embeddings.vectors
            if vectors.shape[1] != log.dim:
                came = f"embeddings of length {vectors.shape[1]}"
                raise InvalidInput("--actions", came, f"the contexts' length, {log.dim}: they are the prior's mean")
            prior = PolicyPrior(vectors)
        if self.family == "gaussian":
            return GaussianPolicy(prior.mean, prior.sigma, prior.encoder), prior
        return MixedLogitPolicy(prior.mean, prior.sigma, prior.encoder), prior

    def certified(self, policy: Policy, log: LoggedData, prior: PolicyPrior) -> Certified:
        """The certificate on the rows that were learned from, by the bounds that `kind` declares."""
        plural = {"alpha": "alphas", "tau": "taus", "smoothing": "smoothings"}
        grid = Grid(**{plural[name]: (float(value),) for name, value in self.parameters.items()})
        declared = CERTIFIED_BY.get(self.kind, None if self.kind in TAKES else (self.kind, "ls"))
        made = certify(
            policy, log, prior=prior, delta=self.delta, bound=declared, grid=grid,
            independent=self.independent,
        )  # fmt: skip
        gain = improvement(policy, log, prior=prior, delta=self.delta, independent=self.independent)
        return Certified(made, gain)


__all__ = ["SUBFOLDER", "Certified", "Pessimism"]
