"""What is proved of the methods, as formulas: none needs a log, and none is a certificate.

regret.py           Bayes regret of meTS, in general and simplified to rates
diffusion.py        Bayes regret of dTS and of LinTS
suboptimality.py    Bayesian suboptimality of sDM's greedy policy
pac_bayes.py        off-policy learning by PAC-Bayes bounds: oracle inequality, sample sizes
"""

from __future__ import annotations

from manyarms.theory.diffusion import (
    DiffusionRates,
    DiffusionRegretBound,
    dts_effective_actions,
    dts_rates,
    dts_regret_bound,
    dts_regret_bound_of,
    lints_frequentist_bound,
    lints_regret_bound,
    rate_scenario,
)
from manyarms.theory.pac_bayes import direct_bound_width, oracle_gap, uniform_logging_gap, uniform_logging_rows
from manyarms.theory.regret import (
    MetsRates,
    RegretBound,
    mets_effective_actions,
    mets_rates,
    mets_regret_bound,
    mets_regret_bound_of,
)
from manyarms.theory.suboptimality import SuboptimalityBound, sdm_covariance_bound, sdm_explicit_bound

__all__ = [
    "DiffusionRates",
    "DiffusionRegretBound",
    "MetsRates",
    "RegretBound",
    "SuboptimalityBound",
    "direct_bound_width",
    "dts_effective_actions",
    "dts_rates",
    "dts_regret_bound",
    "dts_regret_bound_of",
    "lints_frequentist_bound",
    "lints_regret_bound",
    "mets_effective_actions",
    "mets_rates",
    "mets_regret_bound",
    "mets_regret_bound_of",
    "oracle_gap",
    "rate_scenario",
    "sdm_covariance_bound",
    "sdm_explicit_bound",
    "uniform_logging_gap",
    "uniform_logging_rows",
]  # fmt: skip
