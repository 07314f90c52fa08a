"""The chapters of the book: what each asks, of what, what came out, and which picture shows it.

Answers name the claims that they rest on (`book.answers`): where a stored verdict is no longer the one that a sentence was
written for, the page is not made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from manyarms._base.palette import PALETTE
from manyarms_thesis.book.pictures import Against, Bars, Drawing, Over
from manyarms_thesis.harness.experiments import slug

EACH = "a context for each action"
SCALED = "scores scaled, zero start"


@dataclass(frozen=True)
class BookChapter:
    """A chapter: `number` is the first part of the place of its experiments."""

    number: int
    title: str
    question: str
    setting: str
    answer: str
    drawings: Sequence[Drawing] = field(default_factory=list)
    caption: str = ""

    @property
    def anchor(self) -> str:
        """Where links lead."""
        return slug(self.title)


METS = BookChapter(
    1,
    "Structured beliefs: meTS",
    "Many items are mixtures of a few shared effects. Does Thompson sampling that learns the effects lose less than agents "
    "that learn every item alone, and does the lead grow with the catalogue?",
    "Worlds drawn from the mixed-effect model itself (Section 3.4), MovieLens with a structure learned from other users, "
    "and worlds in which the prior is wrong. Regret is the expected one. One context is shared by all actions, as the "
    "thesis's text says; a context for each action, as its authors' public code has it, stands beside.",
    "In the worlds that it assumes, at the thesis's sizes, meTS outperforms every baseline: with linear rewards by "
    "{[held]mets-synthetic: meTS-Lin outperforms all baselines | linear, K=100, L=3, d=2} of regret over the nearest of "
    "them, with clicks by {[held]mets-synthetic: meTS-GLM outperforms all baselines | logistic, K=100, L=3, d=2}. Expanding "
    "a click's likelihood at a mode in place of its maximum, which the thesis does not do, saves another "
    "{[held]mets-synthetic: meTS-GLM has less regret expanded at a mode | logistic, K=100, L=3, d=2}. Where actions are "
    "more uncertain than effects the lead over LinTS shrinks, as stated ({[held]mets-uncertain: The gap to LinTS shrinks | "
    "K=100} at K = 100), and meTS is no longer ahead of every baseline ({~[held in part]mets-uncertain: meTS-Lin still "
    "outperforms}held in part). With a wrong prior it stays ahead at K = 100 ({[held]mets-misspecified: Misspecified "
    "meTS-Lin still performs better | linear, K=100, L=3, d=2}); with fewer actions that is decided against some baselines "
    "only{~[held in part]mets-misspecified: Misspecified meTS-Lin still performs better | linear, K=50, L=3, d=2}.",
    [
        Over("linear rewards, one context for all", "mets-synthetic", "linear, K=100, L=3, d=2"),
        Over("linear rewards, a context each", "mets-synthetic", "linear, K=100, L=3, d=2", variant=EACH),
        Over("clicks, one context for all", "mets-synthetic", "logistic, K=100, L=3, d=2"),
    ],
    "Cumulative expected regret in the worlds that meTS assumes (K = 100 actions, L = 3 effects, d = 2), beside the same "
    "with a context for each action; lower is better. Lines are means over runs, bands one standard error on each side.",
)

DTS = BookChapter(
    2,
    "Diffusion priors: dTS",
    "Can a diffusion model, given or pre-trained, be the prior of Thompson sampling, and what does it gain over learning "
    "every item alone?",
    "Chains of linear and of non-linear links as the thesis prints them (Section 4.4.1), a Swiss roll, MovieLens and tasks "
    "of pictures with pre-trained priors. LinTS knows the exact marginal prior of an item. With non-linear links the "
    "thesis's rule leaves the links out on the way up; a Gaussian with the chain's moments stands beside it everywhere.",
    "With linear links dTS loses less than LinTS from a hundred items on ({[held]dts-actions: dTS-LL has lower regret than "
    "LinTS | as printed, K=100} at K = 100); with ten items, and where items outnumber rounds, nothing is "
    "decided{~[undecided]dts-actions: dTS-LL has lower regret than LinTS | as printed, K=10}{~[undecided]dts-actions: "
    "dTS-LL has lower regret than LinTS | as printed, K=10,000}. The gap widens from 10 to 100 items; it does not go on "
    "widening for ever, as most of 10,000 items can never be tried ({[held in part]dts-actions: The gap between dTS-LL and "
    "LinTS widens}). With one context for all actions, what items have in common decides nothing between them, and the lead "
    "is small; with a context for each action it is large: at d = 20, L = 4 LinTS's regret over dTS's grows by "
    "{[held]dts-action-contexts: LinTS's regret over that of dTS-LL | K=100, d=20, L=4}. On tasks of pictures a pre-trained "
    "prior helps where rewards follow its model ({[held]dts-images: dTS improves on LinTS | cifar100, rewards by model, 50 "
    "% offline} per cent on CIFAR-100 at half the offline data), and the improvements that the thesis prints were not "
    "reached at the sizes run{~[undecided]dts-images: With 50 % of the offline data dTS improves on LinTS "
    "by}{~[undecided]dts-images: With 1 % of the offline data dTS improves on HierTS by}.",
    [
        Against("one context for all", "dts-actions", r"K=([\d,]+)"),
        Against("a context for each action", "dts-actions", r"K=([\d,]+)", variant=EACH),
        Over(
            "d = 20, L = 4, a context each",
            "dts-action-contexts",
            "K=100, d=20, L=4, a context for each action",
        ),
    ],
    "Left and middle: final regret of dTS-LL and LinTS against the number of actions, in linear diffusion worlds with d = "
    "5, L = 2. Right: cumulative regret in a larger world, with a context for each action. Means over runs; bars and bands "
    "are one standard error on each side.",
)

SDM = BookChapter(
    3,
    "Direct methods with latent structure: sDM",
    "A log has few rows for most items. Does a reward model with a shared latent vector give better policies than models "
    "that learn every item alone, and than importance weighting?",
    "Linear-Gaussian worlds with a latent vector (Section 6.5.1) logged by a uniform policy, MovieLens with a learned "
    "structure, binary rewards, wrong priors, pessimism, and the bounds on Bayesian suboptimality. Policies are valued "
    "exactly. Estimators on the Open Bandit sample stand here too; the thesis states nothing about it.",
    "sDM stays ahead of all methods even where its likelihood is wrong ({[held]sdm-likelihood: sDM still outperforms all "
    "methods | K=1,000} of the best reward over the nearest of them at K = 1,000), and its lead over a model without "
    "structure grows with the catalogue: {[held]sdm-actions: sDM has improved scalability | K=100,000} at 100,000 actions. "
    "On MovieLens it is ahead of most baselines and not of all ({~[held in part]sdm-movielens: On MovieLens | K=100}held in "
    "part). Both bounds on its suboptimality lie above what was measured wherever they say something{~[held]sdm-bound: The "
    "Bayesian suboptimality of sDM is at most the covariance-dependent bound}{~[held]sdm-bound: The Bayesian suboptimality "
    "of sDM is at most the explicit bound}, which they do in a part of the sizes, the explicit one in few.",
    [
        Against(
            "sDM and DM (Bayes)",
            "sdm-actions",
            r"K=([\d,]+)",
            column="relative_reward",
            ylabel="relative reward",
        ),
        Bars(
            "binary rewards, K = 1,000",
            "sdm-likelihood",
            "binary rewards, K=1,000, d'=10",
            {"relative_reward": "relative reward of the learned policy, largest log"},
            ylabel="relative reward",
        ),
    ],
    "Left: reward of the learned policy relative to the best one, against the number of actions. Right: all methods where "
    "rewards are binary and sDM-Lin takes them for linear. Bars are one standard error on each side.",
)

PWLL = BookChapter(
    4,
    "Objectives that can be optimised: PWLL",
    "Learning a policy over a large catalogue from a log: is the objective's landscape a greater obstacle than its accuracy "
    "as an estimate, and do policy-weighted log-likelihoods (cLPI, LPI, RegKL) therefore learn better policies than IPS?",
    "Propositions on plateaus and local maxima on exact small problems; the mechanism at up to a million actions; and "
    "policies learned on Gowalla, Amazon-Book and MovieLens, in two worlds: the authors' pipeline (unscaled singular "
    "vectors, random start) and scores scaled by √(K/d) with a zero start. Every objective has its parameters chosen on "
    "validation users; errors include the sampling of 3,000 test users; the value of the most probable action and that of "
    "drawn actions both count.",
    "The mechanism is as stated, and simple: at a uniform policy the gradient of cIPS is that of cLPI divided by K "
    "({~[held]pwll-escape: At the uniform policy}exactly). Gradient ascent at a rate that suits cLPI does not leave such a "
    "start within 5,000 steps with 100,000 actions or more ({~[held]pwll-escape: With SGD at the rate}held); Adam cancels "
    "the factor unless gradients sink below its ε ({~[held]pwll-escape: Unless gradients}held). So whether IPS-like "
    "objectives collapse depends on the optimiser, the start and the scale of the scores. On all of Gowalla's 40,981 "
    "places, with the authors' pipeline and Adam at 0.1, cLPI leads cIPS by {[held]pwll-catalogues: PWLL objectives "
    "outperform IPS-based objectives: cLPI over cIPS with Adam at 0.1 (value of the most probable | gowalla} in the value "
    "of the most probable action, and by {[held]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over "
    "cIPS with Adam at 0.1 (value of drawn | gowalla} in that of drawn actions; with scaled scores and a zero start the "
    "order reverses ({[refuted]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over cIPS with Adam "
    "at 0.1 (value of the most probable | gowalla, scores scaled, zero start} and {[refuted]pwll-catalogues: PWLL "
    "objectives outperform IPS-based objectives: cLPI over cIPS with Adam at 0.1 (value of drawn | gowalla, scores scaled, "
    "zero start}). Where every objective has the rate that validation users like best, that lead is gone: on 30,000 rows "
    "cLPI is {[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value of drawn | gowalla} "
    "ahead of the nearest estimate with drawn actions, since a large enough rate frees the estimates, too. Most learning "
    "experiments have not been run at the thesis's sizes yet.",
    [
        Against(
            "steps to leave a zero start",
            "pwll-escape",
            r"K=([\d,]+)",
            words="zero start",
            column="waited",
            ylabel="steps (5,000: the budget)",
            log_y=True,
            looks={
                "cIPS, SGD": (PALETTE[1], "-"),
                "cIPS, Adam ε=1e-6": (PALETTE[3], "--"),
                "cIPS, Adam ε=1e-8": (PALETTE[6], "-."),
                "cIPS, Adam ε=1e-14": (PALETTE[4], ":"),
                "cLPI, SGD": (PALETTE[0], "-"),
                "cLPI, Adam ε=1e-8": (PALETTE[2], "--"),
            },
            methods=(
                "cIPS, SGD",
                "cIPS, Adam ε=1e-6",
                "cIPS, Adam ε=1e-8",
                "cIPS, Adam ε=1e-14",
                "cLPI, SGD",
                "cLPI, Adam ε=1e-8",
            ),
        ),
        Bars(
            "Gowalla, the authors' pipeline",
            "pwll-catalogues",
            "gowalla, rate 0.1",
            {"mode_value": "value of the most probable action", "value": "value of drawn actions"},
        ),
        Bars(
            "Gowalla, scores scaled",
            "pwll-catalogues",
            "gowalla, rate 0.1",
            {"mode_value": "value of the most probable action", "value": "value of drawn actions"},
            variant=SCALED,
        ),
    ],
    "Left: how many steps pass before cIPS and cLPI leave a uniform start, against the number of actions. Middle and right: "
    "what cLPI and cIPS learn on all 40,981 places of Gowalla with Adam at 0.1, in the two worlds. Bars are one standard "
    "error over runs on each side.",
)

ES = BookChapter(
    5,
    "Pessimism with guarantees: exponential smoothing",
    "Do smoothly regularised importance weights, and the PAC-Bayes bounds on them, estimate, certify and learn better than "
    "clipping?",
    "Labelled data sets turned into bandit logs (FashionMNIST and others), logged by softmax policies of various qualities; "
    "bounds as objectives and as certificates, over repeated logs of known worlds. A bound that says nothing does not "
    "count as covering.",
    "Every bound that says something covered the truth in at least 95 % of repeated logs, also for learned policies "
    "({~[held]es-coverage: The bound 'es' covers}{~[held]es-coverage: The bound 'ips' covers}{~[held]es-coverage: The bound "
    "'clip' covers}{~[held]es-coverage: The bound 'ix' covers}{~[held]es-coverage: The bound 'harmonic' "
    "covers}{~[held]es-coverage: The bound 'any-lambda' covers}{~[held]es-coverage: The bound 'any-alpha' "
    "covers}{~[held]es-coverage: The bound 'sakhi-2' covers}held for eight of the nine of the thesis; London's said "
    "nothing{~[undecided]es-coverage: The bound 'london' covers}). Clipping is misled as stated: its estimate is largest "
    "for the logging policy's favourite, however bad that is ({~[held]es-clipping: IPS-min's estimate is maximised}held). "
    "Logarithmic smoothing is tighter than ES for a fixed policy by {[held]ls-bounds: Logarithmic smoothing is tighter than "
    "ES}. As an objective our bound is ahead of some baselines and behind others ({~[held in part]es-bounds: Our bound "
    "outperforms the baselines with Gaussian}held in part), and Gaussian policies do better than mixed-logit ones for all "
    "baselines ({[held]es-bounds: Gaussian policies behave better}).",
    [
        Against(
            "lower ends, FashionMNIST",
            "ls-bounds",
            r"n=([\d,]+)",
            words="0 to 0.5",
            column="lower",
            xlabel="rows in the log",
            ylabel="lower end of the bound",
        ),
    ],
    "Lower ends of 95 % bounds on the value of a fixed policy, against the size of the log; higher is tighter, and the "
    "truth is 0.447. Means over logs; bars are one standard error on each side.",
)

DRIFT = BookChapter(
    10,
    "Rewards that drift",
    "Where tastes change, what does a model of drift gain over forgetting, restarting and doing nothing?",
    "Worlds that change suddenly, gradually, with the seasons and by turnover, and one that does not; dynamic regret after "
    "a burn-in. The thesis has no such experiment: all statements are this project's.",
    "A model of drift that decides by the knowledge gradient has less regret a round than a static belief in every world "
    "that drifts: {[held]drift: The model with the knowledge gradient has less regret than a static belief | AR(1) arms, "
    "K=1,000} with a thousand arms that wander, {[held]drift: The model with the knowledge gradient has less regret than a "
    "static belief | wandering, d=5} with five features, {[held]drift: The model with the knowledge gradient has less "
    "regret than a static belief | sudden change} after sudden changes. The same model with plain Thompson sampling does "
    "not: it explores for ever ({~[refuted]drift: The model has less regret than a static belief | AR(1) arms, K=1,000}with "
    "a thousand arms it loses). Where nothing drifts, choosing the half-life from the log costs less than a twentieth of "
    "the regret ({~[held]drift: Where nothing drifts}held).",
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

CHAPTERS: tuple[BookChapter, ...] = (METS, DTS, SDM, PWLL, ES, DRIFT)

__all__ = ["CHAPTERS", "BookChapter"]
