"""What every part must satisfy, as checks that anybody can run on their own.

    from manyarms import checks
    checks.check_agent(lambda seed: MyAgent(prior, seed=seed))
    checks.check_belief(lambda: my_belief())
    checks.check_likelihood(MyLikelihood(), rewards=[0.0, 1.0, 2.0], impossible=[-1.0])
    checks.check_policy(lambda: MyPolicy(parameters))
    checks.check_correction(MyCorrection(0.1))
    checks.check_objective(lambda problem: MyObjective())
    checks.check_estimator(lambda problem: MyEstimator(problem.model))
    checks.check_bound(MyBound(0.1))

Agents, beliefs and policies are given as makers, so that every check starts from a fresh object. A check that fails raises
`CheckFailed`, which says what must hold and what was seen. The project's own tests run them over everything that it ships.
"""

from manyarms.checks.agents import AGENT_CHECKS, MakeAgent, check_agent
from manyarms.checks.base import CheckFailed, require, require_close
from manyarms.checks.beliefs import BELIEF_CHECKS, MakeBelief, check_belief, no_data_gives_the_prior
from manyarms.checks.bounds import check_bound
from manyarms.checks.estimators import OfflineProblem, a_problem, check_correction, check_estimator, check_objective
from manyarms.checks.likelihoods import LIKELIHOOD_CHECKS, check_likelihood
from manyarms.checks.policies import POLICY_CHECKS, MakePolicy, check_policy

__all__ = [
    "AGENT_CHECKS",
    "BELIEF_CHECKS",
    "LIKELIHOOD_CHECKS",
    "POLICY_CHECKS",
    "CheckFailed",
    "MakeAgent",
    "MakeBelief",
    "MakePolicy",
    "OfflineProblem",
    "a_problem",
    "check_agent",
    "check_belief",
    "check_bound",
    "check_correction",
    "check_estimator",
    "check_likelihood",
    "check_objective",
    "check_policy",
    "no_data_gives_the_prior",
    "require",
    "require_close",
]
