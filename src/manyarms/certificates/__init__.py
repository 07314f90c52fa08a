"""Certificates: is a new policy safe to ship? Bounds on its value that hold with probability 1 - delta.

certify(policy, log, prior=..., delta=0.05)        lower, upper, what each term costs
improvement(policy, log, prior=..., delta=0.05)    a lower end for the gain over the logging policy
rows_needed(summary, kl, x, delta, bounds)         how many rows would certify an improvement of x
bounds, tuned                                      the bounds with their arguments; what is tuned
                                                   on data, and is therefore no certificate
"""

from __future__ import annotations

from manyarms.certificates import bounds, tuned
from manyarms.certificates.bounds import Bound, Budget, Side
from manyarms.certificates.certificate import Certificate, Ends, Improvement
from manyarms.certificates.certify import certify, improvement
from manyarms.certificates.grids import FAMILIES, NAMES, Grid
from manyarms.certificates.needed import rows_needed
from manyarms.certificates.passes import summarise
from manyarms.certificates.prior import Prior
from manyarms.certificates.summaries import Averages, Smoothed, Summary

__all__ = [
    "FAMILIES", "NAMES", "Averages", "Bound", "Budget", "Certificate", "Ends", "Grid", "Improvement", "Prior", "Side", "Smoothed",
    "Summary", "bounds", "certify", "improvement", "rows_needed", "summarise", "tuned",
]  # fmt: skip
