"""The book's chapters on agents that decide online: meTS, dTS, and rewards that drift."""

from __future__ import annotations

from manyarms_thesis.book.chapter import EACH, BookChapter, answer_of
from manyarms_thesis.book.pictures import Against, Bars, Over

# a part of the methods in the record, so that the picture can be read: no factored variants
LINEAR = ("meTS-Lin", "LinTS", "LinUCB", "HierTS")
CLICKS = ("meTS-GLM", "meTS-GLM, mode", "GLM-TS", "GLM-TS, mode", "UCB-GLM", "HierTS", "meTS-Lin")

METS = BookChapter(
    1,
    "Structured beliefs: meTS",
    "Many items are mixtures of a few shared effects. Does Thompson sampling that learns the effects lose less than agents "
    "that learn every item alone, and does the lead grow with the catalogue?",
    "Worlds drawn from the mixed-effect model itself (Section 3.4), MovieLens with a structure learned from a clustering "
    "of the movies' own vectors, as in the thesis, and worlds in which the prior is wrong. Regret is the expected one. One "
    "context is shared by all actions, as the thesis's text says; a context for each action, as its authors' public code "
    "has it, stands beside.",
    answer_of("mets"),
    [
        Over("linear rewards, one context for all", "mets-synthetic", "linear, K=100, L=3, d=2", methods=LINEAR),
        Over(
            "linear rewards, a context each", "mets-synthetic", "linear, K=100, L=3, d=2", variant=EACH, methods=LINEAR
        ),
        Over("clicks, one context for all", "mets-synthetic", "logistic, K=100, L=3, d=2", methods=CLICKS),
        Against("linear rewards, 5,000 rounds", "mets-actions", r"K=([\d,]+)", methods=("meTS-Lin", "LinTS")),
    ],
    "Cumulative expected regret in the worlds that meTS assumes (L = 3 effects, d = 2), of meTS and of baselines, factored "
    "variants left out; lower is better. Top, and bottom left: over the rounds with K = 100 actions, with linear rewards "
    "and one context for all, with a context for each action, and with clicks. Bottom right: after 5,000 rounds, against "
    "the number of actions. Means over runs; bands and bars are one standard error on each side.",
)

DTS = BookChapter(
    2,
    "Diffusion priors: dTS",
    "Can a diffusion model, given or pre-trained, be the prior of Thompson sampling, and what does it gain over learning "
    "every item alone?",
    "Chains of linear and of non-linear links as the thesis prints them (Section 4.4.1), a Swiss roll, MovieLens and tasks "
    "of pictures with pre-trained priors. LinTS has the marginal prior of an item: exactly in linear chains, from 100,000 "
    "draws where links are not linear, by mean and covariance on the Swiss roll, by mean and variances on MovieLens; on "
    "pictures it has N(0, I/d), without offline data. With non-linear links the thesis's rule leaves the links out on the "
    "way up; a Gaussian with the chain's moments stands beside it everywhere.",
    answer_of("dts"),
    [
        Against("one context for all", "dts-actions", r"K=([\d,]+)"),
        Against("a context for each action", "dts-actions", r"K=([\d,]+)", variant=EACH),
        Over(
            "d = 20, L = 4, a context each",
            "dts-action-contexts",
            "K=100, d=20, L=4, a context for each action",
        ),
        Over(
            "non-linear links, K = 100, d = 5, L = 2",
            "dts-synthetic",
            "non-linear links, linear rewards, K=100, d=5, L=2",
        ),
    ],
    "Top: final regret of dTS-LL and LinTS against the number of actions, in linear diffusion worlds with d = 5, L = 2. "
    "Bottom left: cumulative regret in a larger world, with a context for each action. Bottom right: with non-linear links "
    "and one context for all, dTS by the thesis's rule, with Jacobians and by moments. Lower is better. Means over runs; "
    "bars and bands are one standard error on each side.",
)

DRIFT = BookChapter(
    10,
    "Rewards that drift",
    "Where tastes change, what does a model of drift gain over forgetting, restarting and doing nothing?",
    "Worlds that change suddenly, gradually, with the seasons and by turnover, and one that does not; dynamic regret after "
    "a burn-in. The thesis has no such experiment: all statements are this project's.",
    answer_of("drift"),
    [
        Bars(
            "a thousand arms that wander",
            "drift",
            "AR(1) arms, K=1,000",
            {"after_burn_in": "regret a round, after the burn-in"},
            ylabel="regret a round",
        ),
        Bars(
            "sudden changes",
            "drift",
            "sudden change",
            {"after_burn_in": "regret a round, after the burn-in"},
            ylabel="regret a round",
        ),
    ],
    "Dynamic regret a round after the burn-in, of all methods, in two worlds that drift; lower is better. Bars are one "
    "standard error on each side.",
)

__all__ = ["DRIFT", "DTS", "METS"]
