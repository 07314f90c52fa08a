"""Certificates: is a new policy safe to ship? Bounds on its value that hold with probability 1 - delta.

certify(policy, log, prior=..., delta=0.05)        lower, upper, what each term costs
improvement(policy, log, prior=..., delta=0.05)    a lower end for the gain over the logging policy
certify_with_improvement(...)                      both from one reading of the log
rows_needed(summary, kl, x, delta, bounds)         how many rows would certify an improvement of x
manyarms.bounds                                    the bounds with their arguments
"""

from __future__ import annotations

from manyarms.certificates.certificate import Certificate, Ends, Improvement
from manyarms.certificates.certify import certify, certify_with_improvement, improvement
from manyarms.certificates.prior import PolicyPrior
from manyarms.certificates.sample_size import rows_needed
from manyarms.certificates.summarise import summarise

__all__ = [
    "Certificate", "Ends", "Improvement", "PolicyPrior", "certify", "certify_with_improvement", "improvement", "rows_needed",
    "summarise",
]  # fmt: skip
