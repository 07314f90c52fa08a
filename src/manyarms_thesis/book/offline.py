"""The book's chapters on logs: sDM, objectives that can be optimised, pessimism with guarantees."""

from __future__ import annotations

from manyarms._base.palette import PALETTE
from manyarms_thesis.book.chapter import SCALED, BookChapter, answer_of
from manyarms_thesis.book.pictures import Against, Bars

SDM = BookChapter(
    3,
    "Direct methods with latent structure: sDM",
    "A log has few rows for most items. Does a reward model with a shared latent vector give better policies than models "
    "that learn every item alone, and than importance weighting?",
    "Linear-Gaussian worlds with a latent vector (Section 6.5.1) logged by a uniform policy, MovieLens with a learned "
    "structure, binary rewards, wrong priors, pessimism, and the bounds on Bayesian suboptimality. Policies are valued "
    "exactly. Estimators on the Open Bandit sample stand here too; the thesis states nothing about it.",
    answer_of("sdm"),
    [
        Against(
            "sDM and DM (Bayes)",
            "sdm-actions",
            r"K=([\d,]+)",
            column="relative_reward",
            ylabel="relative reward",
        ),
        Bars(
            "linear rewards, K = 1,000",
            "sdm-synthetic",
            "uniform logging, K=1,000, d'=10",
            {"relative_reward": "relative reward of the learned policy, largest log"},
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
    "Reward of the learned policy relative to the best one; higher is better. Left: against the number of actions. Middle: "
    "all methods in the worlds that sDM assumes, after logs of 10,000 rows. Right: the same where rewards are binary and "
    "sDM-Lin takes them for linear. Thin bars are one standard error on each side.",
)

PWLL = BookChapter(
    4,
    "Objectives that can be optimised: PWLL",
    "Learning a policy over a large catalogue from a log: is the objective's landscape a greater obstacle than its accuracy "
    "as an estimate, and do policy-weighted log-likelihoods (cLPI, LPI, RegKL) therefore learn better policies than IPS?",
    "Propositions on plateaus and local maxima on exact small problems; the mechanism at up to a million actions; and "
    "policies learned on Gowalla, Amazon-Book, Epinions, MovieLens and a generated catalogue, in two worlds: the "
    "authors' pipeline (unscaled singular "
    "vectors, random start) and scores scaled by √(K/d) with a zero start. Every objective has its parameters chosen on "
    "validation users, but for those that a panel sets; errors include the sampling of 3,000 test users (1,500 in the smallest "
    "catalogues); the value of the most probable action and that of drawn actions both count. A policy that never left its start "
    "or ended below the logging policy has collapsed, and is ahead of nothing.",
    answer_of("pwll"),
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
        Bars(
            "Gowalla, the authors' pipeline, chosen rates",
            "pwll-catalogues",
            "gowalla, chosen rate",
            {"mode_value": "value of the most probable action", "value": "value of drawn actions"},
        ),
    ],
    "Top left: how many steps pass before cIPS and cLPI leave a uniform start, against the number of actions. Then what they "
    "learn on all 40,981 places of Gowalla from 400,000 rounds of log: with Adam at 0.1, in the two worlds (top right, bottom "
    "left), and at the rates that validation users like best (bottom right). Bars are one standard error over runs on each side.",
)

ES = BookChapter(
    5,
    "Pessimism with guarantees: exponential smoothing",
    "Do smoothly regularised importance weights, and the PAC-Bayes bounds on them, estimate, certify and learn better than "
    "clipping?",
    "Labelled data sets turned into bandit logs (FashionMNIST and others), logged by softmax policies of various qualities; "
    "bounds as objectives and as certificates, over repeated logs of known worlds. A bound that says nothing does not "
    "count as covering.",
    answer_of("es"),
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
        Against(
            "learned policies, FashionMNIST",
            "es-corrections",
            r"eta0=([\d.]+)",
            column="value",
            methods=("Ours, bound", "Ours, LP", "Su et al., lambda=100", "Metelli et al., lambda=0.1"),
            xlabel="inverse temperature of the logging policy",
            ylabel="value of drawn actions",
            looks={"Su et al., lambda=100": (PALETTE[5], "--"), "Metelli et al., lambda=0.1": (PALETTE[7], ":")},
        ),
    ],
    "Left: lower ends of 95 % bounds on the value of a fixed policy, against the size of the log; higher is tighter, and the "
    "truth is 0.447. Right: what policies earn that were learned from 20,000 rows, by our bound, our learning principle and "
    "two corrections without a bound, against the quality of the logging policy (0: uniform); higher is better. Means over "
    "logs; bars are one standard error on each side.",
)

__all__ = ["ES", "PWLL", "SDM"]
