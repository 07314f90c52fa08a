"""The book's chapters on logs: sDM, objectives that can be optimised, pessimism with guarantees."""

from __future__ import annotations

from manyarms._base.palette import PALETTE
from manyarms_thesis.book.chapter import SCALED, BookChapter
from manyarms_thesis.book.pictures import Against, Bars

SDM = BookChapter(
    3,
    "Direct methods with latent structure: sDM",
    "A log has few rows for most items. Does a reward model with a shared latent vector give better policies than models "
    "that learn every item alone, and than importance weighting?",
    "Linear-Gaussian worlds with a latent vector (Section 6.5.1) logged by a uniform policy, MovieLens with a learned "
    "structure, binary rewards, wrong priors, pessimism, and the bounds on Bayesian suboptimality. Policies are valued "
    "exactly. Estimators on the Open Bandit sample stand here too; the thesis states nothing about it.",
    "In the worlds of the thesis sDM is ahead of all seven baselines at every size of the log{~[held]sdm-synthetic: sDM "
    "consistently outperforms | *} (by {sdm-synthetic: sDM consistently outperforms | uniform logging, K=100, d'=10} of "
    "the best reward at K = 100, d' = 10, and {sdm-synthetic: sDM consistently outperforms | uniform logging, K=1,000, "
    "d'=10} at K = 1,000, each in the least clear of its comparisons). DM (Bayes) is the nearest of them in most "
    "comparisons ({~[held in part]sdm-synthetic: DM (Bayes) is the most competitive | *}held in part). That the gap is "
    "larger on smaller logs holds against most baselines and not against all ({~[held in part]sdm-synthetic: The gap to "
    "the baselines | *}held in part): with 1,000 actions the lead over snIPS is smaller on the smallest log ({[held in "
    "part]sdm-synthetic: The gap to the baselines | uniform logging, K=1,000, d'=10} at d' = 10). The lead over a model "
    "without structure grows with the catalogue: {[held]sdm-actions: sDM has improved scalability | K=100,000} at 100,000 "
    "actions.\n\n"
    "sDM stays ahead of all methods where its likelihood is wrong ({[held]sdm-likelihood: sDM still outperforms all "
    "methods | K=1,000} of the best reward in the least clear comparison at K = 1,000), and ahead of DM (Bayes) where its prior "
    "is, at the thesis's sizes{~[held]sdm-prior: sDM with misspecification still outperforms | *} ({sdm-prior: sDM with "
    "misspecification still outperforms | K=1,000, d'=10} at K = 1,000, d' = 10). On MovieLens it is "
    "decidedly ahead in {#[held in part]sdm-movielens: On MovieLens | *} comparisons. Deciding "
    "greedily is better "
    "on average than pessimism{~[held]sdm-pessimism: The greedy policy has better average performance than the pessimistic "
    "one | *} (by {sdm-pessimism: The greedy policy has better average performance than the pessimistic one | K=1,000, "
    "d'=10} at K = 1,000, d' = 10). Both bounds on its suboptimality lie above what was measured wherever they say "
    "something{~[held]sdm-bound: The Bayesian suboptimality of sDM is at most the covariance-dependent "
    "bound}{~[held]sdm-bound: The Bayesian suboptimality of sDM is at most the explicit bound}, which they do in a part of "
    "the sizes, the explicit one in few. On Open Bandit's samples, of which the thesis states nothing, IPS, snIPS and DR "
    "are off by less than what the valued policy earned{~[held]ope-obd: Pipeline: IPS | *}{~[held]ope-obd: Pipeline: snIPS "
    "| *}{~[held]ope-obd: Pipeline: DR | *}, which with a few dozen clicks is all that can be said.",
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
    "all methods in the worlds that sDM assumes, after logs of 1,000 rows. Right: the same where rewards are binary and "
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
    "That landscapes are the obstacle is right where it can be proved, and can be seen at a million actions. That "
    "policy-weighted log-likelihoods therefore learn better policies than estimates was not seen here once every "
    "objective had settings of its own. None of these experiments on real catalogues is of the thesis's sizes (whole "
    "logs, ten epochs), so that what goes the other way decides nothing about those, and is undecided.\n\n**The "
    "mechanism.** At a uniform policy the gradient of cIPS is that of cLPI divided by K ({~[held]pwll-escape: At the "
    "uniform policy}exactly, a statement of ours). Gradient ascent at a rate that suits cLPI does not leave such a start "
    "within 5,000 steps with 100,000 actions or more ({~[held]pwll-escape: With SGD at the rate}held); Adam cancels the "
    "factor unless gradients sink below its ε ({~[held]pwll-escape: Unless gradients}held). So whether IPS-like "
    "objectives collapse depends on the optimiser, the start and the scale of the scores.\n\n**What is proved holds on "
    "exact problems.** On the proof's instance the plateau lasts in proportion to K{~[held]pwll-plateau: There are "
    "instances}, IPS can have exponentially many local maxima{~[held]pwll-maxima: An IPS-based objective of one "
    "context}, and PWLL has one, which is reached from almost any start{~[held]pwll-maxima: PWLL is "
    "concave}{~[held]pwll-landscape: On PWLL, trajectories converge | *}. That one maximum need not be a good one: on "
    "the instances with many maxima it is worth less than the worst of them ({~[held]pwll-maxima: One maximum need "
    "not}held, a statement of ours). The bound on stochastic ascent without ℓ2 holds{~[held]pwll-convergence: Without "
    "ℓ2, U* - U}; that with ℓ2 is above what the start has all along and says nothing ({~[undecided]pwll-convergence: "
    "With ℓ2, the squared distance}undecided), and the rate 1/√T is decided for one batch size of three and missed by "
    "another within 5,000 steps ({~[held in part]pwll-convergence: With η ∝ 1/√T one recovers}held in part).\n\n**One "
    "rate for all, on all of Gowalla's 40,981 places.** With the authors' pipeline and Adam at 0.1, cLPI leads cIPS by "
    "{[held]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over cIPS with Adam at 0.1 (value of "
    "the most probable | gowalla} in the value of the most probable action; by drawn actions both end below the logging "
    "policy and have collapsed{~[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over "
    "cIPS with Adam at 0.1 (value of drawn | gowalla}. With scaled scores and a zero start the order reverses "
    "({[refuted]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over cIPS with Adam at 0.1 (value "
    "of the most probable | gowalla, scores scaled, zero start} by the most probable action and "
    "{[refuted]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over cIPS with Adam at 0.1 (value "
    "of drawn | gowalla, scores scaled, zero start} by drawn ones). At the "
    "authors' own 5e-5 both end below the logging policy by either count after the one epoch that was run"
    "{~[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI over cIPS with Adam at the "
    "authors' rate and batch (value of the most probable | gowalla}{~[undecided]pwll-catalogues: PWLL "
    "objectives outperform IPS-based objectives: cLPI over "
    "cIPS with Adam at the authors' rate and batch (value of drawn | gowalla}.\n\n**A rate for each, chosen on "
    "validation users.** That lead is gone, since a large enough rate frees the estimates, too: on 30,000 rows of "
    "Gowalla cLPI stands at {[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value of "
    "the most probable | gowalla} by the most probable action and {[undecided]pwll-catalogues: PWLL objectives "
    "outperform IPS-based objectives: cLPI (value of drawn | gowalla} by drawn ones, beside the estimate that is "
    "farthest ahead of it. On all of Amazon-Book and of Epinions (89,578 and 262,614 items) nothing is decided between "
    "cLPI and cIPS{~[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value of drawn | "
    "amazon-book}{~[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value of the most "
    "probable | amazon-book}{~[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value "
    "of drawn | epinions}{~[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value of "
    "the most probable | epinions}; in a generated catalogue of a million actions cLPI stands at "
    "{[undecided]pwll-catalogues: PWLL objectives outperform IPS-based objectives: cLPI (value of the most probable | "
    "catalogue} by the most probable action and at {[undecided]pwll-catalogues: PWLL objectives outperform IPS-based "
    "objectives: cLPI (value of drawn | catalogue} by drawn ones beside cIPS.\n\n**The ablations**, on 5,000 or on all "
    "places of Gowalla, say the same. In each pair the first figure is by the most probable action, the second by drawn "
    "ones; each is of the least clear comparison, so that "
    "the statement holds throughout where it is above zero by two standard errors; 0 ± 0 is the lead of what has "
    "collapsed.\n\n- The best PWLL objective over the best estimate, both chosen on validation users and other "
    "runs: {pwll-optimisation: PWLL objectives outperform IPS-based ones, each family's best in its best configuration "
    "(value of the most probable | gowalla} and {pwll-optimisation: PWLL objectives outperform IPS-based ones, each "
    "family's best in its best configuration (value of drawn | gowalla}. After these three epochs the drawn actions of "
    "every policy earn less than the logging policy's, so that all have collapsed by that count.\n- cLPI over POTEC in "
    "every configuration: {pwll-optimisation: POTEC is surpassed by cLPI, in every configuration (value of the most "
    "probable | gowalla} and {pwll-optimisation: POTEC is surpassed by cLPI, in every configuration (value of drawn | "
    "gowalla}; with the number of clusters that suits POTEC best: {pwll-clusters: cLPI outperforms POTEC even with the "
    "best number of clusters (value of the most probable | gowalla} and {pwll-clusters: cLPI outperforms POTEC even with "
    "the best number of clusters (value of drawn | gowalla}. What MIPS and POTEC lose "
    "between the best and the worst number of clusters, of which cLPI knows nothing: {[held]pwll-clusters: MIPS and POTEC are "
    "unstable across numbers of clusters, cLPI is not (value of the most probable | gowalla} and {[held]pwll-clusters: MIPS and "
    "POTEC are unstable across numbers of clusters, cLPI is not (value of drawn | gowalla} of their best value more "
    "than cLPI. POTEC over OffCEM in every configuration: "
    "{pwll-optimisation: There is a consistent gap between POTEC and OffCEM, in every configuration (value of the most "
    "probable | gowalla} and {pwll-optimisation: There is a consistent gap between POTEC and OffCEM, in every "
    "configuration (value of drawn | gowalla}; heavy policies with tuned rates: {pwll-potec: POTEC's optimisation of "
    "clusters is more effective than OffCEM's of actions (heavyweight) (value of the most probable | gowalla} and "
    "{pwll-potec: POTEC's optimisation of clusters is more effective than OffCEM's of actions (heavyweight) (value of "
    "drawn | gowalla}.\n- The logarithm alone, cLPI over its linear twin cIPS at every τ: {pwll-log: cLPI dominates cIPS "
    "for every tau (value of the most probable | gowalla} and {pwll-log: cLPI dominates cIPS for every tau (value of "
    "drawn | gowalla}; RegKL over its own at every β: {pwll-log: RegKL dominates RegKL-LIN for every beta (value of the "
    "most probable | gowalla} and {pwll-log: RegKL dominates RegKL-LIN for every beta (value of drawn | gowalla}.\n- "
    "cLPI over the estimates under noise: {pwll-noise: PWLL objectives maintain a clear advantage under noise: cLPI over "
    "IPS-based methods (value of the most probable | gowalla} and {pwll-noise: PWLL objectives maintain a clear "
    "advantage under noise: cLPI over IPS-based methods (value of drawn | gowalla}; over cIPS in catalogues of 500 "
    "actions and more: {pwll-small: Where K >= 500, cLPI outperforms cIPS (value of the most probable | *} and "
    "{pwll-small: Where K >= 500, cLPI outperforms cIPS (value of drawn | *}; over the estimates whatever the size of "
    "the logging support: {pwll-logging: PWLL is better than IPS-based approaches for every size of the logging support "
    "(value of the most probable | gowalla} and {pwll-logging: PWLL is better than IPS-based approaches for every size "
    "of the logging support (value of drawn | gowalla}; over seeds: {pwll-seeds: IPS-based methods reach inferior "
    "performance to cLPI (value of the most probable | gowalla} and {pwll-seeds: IPS-based methods reach inferior "
    "performance to cLPI (value of drawn | gowalla}.\n- Policies over the logging support in place of all actions, IPS: "
    "{pwll-support: IPS restricted to the logging support achieves higher reward than IPS over all actions, in every "
    "configuration (value of the most probable | gowalla} and {pwll-support: IPS restricted to the logging support "
    "achieves higher reward than IPS over all actions, in every configuration (value of drawn | gowalla}; cLPI: "
    "{pwll-support: cLPI achieves even better performance with the restricted support, in every configuration (value of "
    "the most probable | gowalla} and {pwll-support: cLPI achieves even better performance with the restricted support, "
    "in every configuration (value of drawn | gowalla}. By drawn actions they are better in {#pwll-support: IPS "
    "restricted to the logging support achieves higher reward than IPS over all actions, in every configuration (value "
    "of drawn | gowalla} and {#pwll-support: cLPI achieves even better performance with the restricted support, in every "
    "configuration (value of drawn | gowalla} configurations, since they start near the logging policy.\n- Steadiness of "
    "PWLL objectives over batch sizes and schedules, beside the estimates': {pwll-optimisation: IPS-based objectives are "
    "sensitive to batch size and learning rate schedule, PWLL objectives are robust (value of the most probable | "
    "gowalla} and {pwll-optimisation: IPS-based objectives are sensitive to batch size and learning rate schedule, PWLL "
    "objectives are robust (value of drawn | gowalla}. With SGD in "
    "place of Adam, as the mechanism has it, they are steadier over rates by the most probable action "
    "({[held]pwll-optimisation: With SGD in place of Adam, IPS-based objectives are sensitive to the rate, PWLL objectives are "
    "robust (value of the most probable | gowalla}, a statement of ours). Variances over seeds cannot be compared with four of "
    "them{~[undecided]pwll-seeds: IPS-based methods suffer from considerably higher variance over seeds than cLPI (value "
    "of the most probable | *}{~[undecided]pwll-seeds: IPS-based methods suffer from considerably higher variance over "
    "seeds than cLPI (value of drawn | *}.\n- cLPI over IPS with a variance penalty, whatever its weight: "
    "{pwll-pessimism: cLPI outperforms pessimistic SVP, whatever lambda (value of the most probable | gowalla} and "
    "{pwll-pessimism: cLPI outperforms pessimistic SVP, whatever lambda (value of drawn | gowalla}; over cIPS with a "
    "penalty on distance: {pwll-pessimism: cLPI outperforms pessimistic cIPS, whatever lambda (value of the most "
    "probable | gowalla} and {pwll-pessimism: cLPI outperforms pessimistic cIPS, whatever lambda (value of drawn | "
    "gowalla}. With the "
    "authors' pipeline the last one stays where it starts at every weight tried (from 0.01 on); it would on a plateau, too, "
    "so that this says little of pessimism.\n- The MSE of PWLL objectives as estimates, in powers of ten above what "
    "estimates have on average: "
    "{pwll-mse: PWLL objectives are poor value estimators | gowalla}. The better policy of the two kinds, all the same: "
    "{pwll-mse: A low MSE does not yield a better policy: PWLL learns a better one than the most accurate estimate "
    "(value of the most probable | gowalla} and {pwll-mse: A low MSE does not yield a better policy: PWLL learns a "
    "better one than the most accurate estimate (value of drawn | gowalla}.",
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
    "Top left: how many steps pass before cIPS and cLPI leave a uniform start, against the number of actions. Then what is "
    "learned on all 40,981 places of Gowalla: by cLPI and cIPS with Adam at 0.1, in the two worlds (top right, bottom left), "
    "and by five objectives at the rates that validation users like best (bottom right). Bars are one standard error over "
    "runs on each side.",
)

ES = BookChapter(
    5,
    "Pessimism with guarantees: exponential smoothing",
    "Do smoothly regularised importance weights, and the PAC-Bayes bounds on them, estimate, certify and learn better than "
    "clipping?",
    "Labelled data sets turned into bandit logs (FashionMNIST and others), logged by softmax policies of various qualities; "
    "bounds as objectives and as certificates, over repeated logs of known worlds. A bound that says nothing does not "
    "count as covering.",
    "In the thesis's example smoothing estimates better than clipping. Its bounds certify, though other ones are tighter. "
    "It does not learn better at the sizes run here: our bound as an objective is ahead of London's alone, and what "
    "smoothing adds under one objective is little. Where a statement has several parts, the figure is that of the part "
    "that speaks least for it.\n\n"
    "Hard clipping is misled as stated: its estimate is largest for the logging policy's favourite, however bad that is "
    "({~[held]es-clipping: IPS-min's estimate is maximised}held), and with smoothed weights the policy of the largest "
    "estimate is better than the favourite by {[held]es-clipping: Smoothing mitigates this}; so it is with plain IPS. "
    "Every bound that says something covered the truth in at least 95 % of repeated logs of known worlds: for a policy "
    "that was fixed beforehand those of ES (also for all λ or all α at once), IPS, clipping, IX, harmonic weights and "
    "Sakhi et al., and for learned ones all but the harmonic one, which then says nothing, as London's does for both "
    "(held; what is tested has a grid to choose from and a nearer lower end than the thesis prints{~[held]es-coverage: The "
    "bound 'es' covers the truth in 95% of logs or more, for a policy}{~[held]es-coverage: The bound 'es' covers the truth "
    "in 95% of logs or more, for learned}{~[held]es-coverage: The bound 'ips' covers the truth in 95% of logs or more, for "
    "a policy}{~[held]es-coverage: The bound 'ips' covers the truth in 95% of logs or more, for "
    "learned}{~[held]es-coverage: The bound 'clip' covers the truth in 95% of logs or more, for a "
    "policy}{~[held]es-coverage: The bound 'clip' covers the truth in 95% of logs or more, for "
    "learned}{~[held]es-coverage: The bound 'ix' covers the truth in 95% of logs or more, for a "
    "policy}{~[held]es-coverage: The bound 'ix' covers the truth in 95% of logs or more, for learned}{~[held]es-coverage: "
    "The bound 'any-lambda' covers the truth in 95% of logs or more, for a policy}{~[held]es-coverage: The bound "
    "'any-lambda' covers the truth in 95% of logs or more, for learned}{~[held]es-coverage: The bound 'any-alpha' covers "
    "the truth in 95% of logs or more, for a policy}{~[held]es-coverage: The bound 'any-alpha' covers the truth in 95% of "
    "logs or more, for learned}{~[held]es-coverage: The bound 'sakhi-1' covers the truth in 95% of logs or more, for a "
    "policy}{~[held]es-coverage: The bound 'sakhi-1' covers the truth in 95% of logs or more, for "
    "learned}{~[held]es-coverage: The bound 'sakhi-2' covers the truth in 95% of logs or more, for a "
    "policy}{~[held]es-coverage: The bound 'sakhi-2' covers the truth in 95% of logs or more, for "
    "learned}{~[held]es-coverage: The bound 'harmonic' covers the truth in 95% of logs or more, for a "
    "policy}{~[undecided]es-coverage: The bound 'harmonic' covers the truth in 95% of logs or more, for "
    "learned}{~[undecided]es-coverage: The bound 'london' covers the truth in 95% of logs or more, for learned}). On "
    "FashionMNIST, for a fixed policy, ES's lower end is below the true value in 95 % of logs with {ls-bounds: ES: the "
    "true value} to spare, and logarithmic smoothing is tighter by {[held]ls-bounds: Logarithmic smoothing is tighter than "
    "ES}.\n\n"
    "As an objective our bound is ahead of London's and not of Sakhi et al.'s where the logging policy is not uniform "
    "({~[held in part]es-bounds: Our bound outperforms the baselines with Gaussian}held in part), also with clipping in "
    "all bounds: ahead of London's{~[held]pac-objectives: With clipping too, our objective outperforms London}, not of "
    "Sakhi et al.'s two ({[undecided]pac-objectives: With clipping too, our objective outperforms Sakhi et al. 1} and "
    "{[undecided]pac-objectives: With clipping too, our objective outperforms Sakhi et al. 2}, undecided at these sizes). "
    "Ours at the λ of the authors' code, which bounds nothing, is ahead of every Gaussian baseline there, by {es-bounds: "
    "Ours at the code's lambda}. Gaussian policies do better than mixed-logit ones for all baselines ({[held]es-bounds: "
    "Gaussian policies behave better}) and for ours no less ({[undecided]es-bounds: The difference between the classes}; "
    "ours are not comparable, as the thesis has it: {es-bounds: Our Gaussian and mixed-logit policies are comparable}). "
    "The choice of α matters less than that of clipping's τ, by {[held]es-hyperparameters: There is no very bad choice of "
    "alpha}, and about 0.7 is best for modest logging policies ({es-hyperparameters: alpha of about 0.7}); an adaptive α "
    "is near 1 and as good as the best one only where 1 is good ({es-hyperparameters: An adaptive alpha}). With its best α "
    "our bound is ahead of Sakhi et al. 2 with its best τ in part ({es-hyperparameters: Our method with its best alpha}); "
    "on plain IPS, α = 1, it has not the stated large margin over clipping where the logging policy is good, but stays "
    "behind ({es-hyperparameters: Our bound applied to standard IPS}).\n\n"
    "Estimates without a bound do better: on 20,000 rows our bound loses to Su et al.'s and to Metelli et al.'s with a "
    "tuned parameter ({[undecided]es-corrections: Ours, bound: outperforms Su et al.} and {[undecided]es-corrections: "
    "Ours, bound: outperforms Metelli et al.}, undecided at these sizes), and more so the worse the logging policy, where "
    "the thesis has the lead growing ({[undecided]es-corrections: The gap to Su et al.} and {[undecided]es-corrections: "
    "The gap to Metelli et al.}). The learning principle, with the bound's terms and free weights, comes close to both "
    "({es-corrections: Ours, LP: outperforms Su et al.} and {es-corrections: Ours, LP: outperforms Metelli et al.}), and "
    "is ahead of London's and of sample variance penalisation with their best weights ({es-principles: Our learning "
    "principle is to be preferred}); it is sensitive to these weights, as London's is{~[held]es-principles: Ours, LP: "
    "sensitive}{~[held]es-principles: London et al., LP: sensitive}. Which objective is maximised matters more than how "
    "weights are regularised ({pac-heuristic: The choice of the objective}): under one bound clipping, IX and ES are alike "
    "and the harmonic weights gain less ({~[held]pac-bound: Clip, IX and ES achieve comparable}{~[held]pac-bound: Har "
    "shows less improvement}held), and not all improve on the logging policy: "
    "{#[held in part]pac-bound: All regularisations improve} do. With the heuristic in place of the bound all four do "
    "better ({pac-heuristic: Heuristic optimisation achieves}), ES by {[held]pac-heuristic: ES outperforms the others} "
    "more than the others, and "
    "{#[held in part]pac-heuristic: The heuristic improves} improve on the logging policy.",
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
