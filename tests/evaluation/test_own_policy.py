"""One's own policy, however it is said: the same numbers as the policy itself, and refusals that say what would do."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import manyarms as ma
from manyarms import evaluation
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.estimators import DM, DR, IPS, MIPS, PC, SNDR, SWITCH, OffCEM
from manyarms.evaluation import InColumn, OfColumns, Ranked, functions
from manyarms.logs import Actions, Columns, from_frame, open_log, read_log
from manyarms.logs.schema import Schema
from manyarms.policies import DeterministicPolicy, EpsilonMixture, FunctionPolicy, SoftmaxPolicy, UniformPolicy
from manyarms.policies.row_policy import Renumbered

K, ROWS = 7, 300
NAMES = ["fig", "pear", "plum", "kiwi", "lime", "date", "nut"]
FAR = 4.9  # standard errors that chance exceeds once in a million times


def table_of(policy, X):
    """All probabilities, (n, K)."""
    return policy.probabilities_of_many(X, np.tile(np.arange(policy.action_count), (len(X), 1)))


def estimators_of(problem):
    labels = np.arange(K) % 3
    model = problem.model
    return ["ips", "snips", "es", "ls", DM(model), DR(model), SNDR(model), SWITCH(model, 3.0), MIPS(labels),
            OffCEM(labels, model), PC(problem.embeddings, k=2)]  # fmt: skip


def assert_same(found, wanted):
    assert [one.name for one in found.estimates] == [one.name for one in wanted.estimates]
    for one, other in zip(found.estimates, wanted.estimates, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-10), one.name
        assert one.standard_error == pytest.approx(other.standard_error, rel=1e-8), one.name
        assert (one.interval.low, one.interval.high) == pytest.approx(
            (other.interval.low, other.interval.high), rel=1e-8
        )
        assert one.gain.value == pytest.approx(other.gain.value, abs=1e-10)


class Proba:
    """A classifier by its table, with classes in an order of their own."""

    def __init__(self, policy, order=None, classes=None):
        self.policy, self.order = policy, order
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, X):
        found = table_of(self.policy, X)
        return found if self.order is None else found[:, self.order]


ORDER = np.array([3, 0, 6, 2, 5, 1, 4])
ALL = {
    "matrix": lambda policy, X: table_of(policy, X),
    "single precision": lambda policy, X: table_of(policy, X).astype(np.float32).astype(np.float64),
    "nested lists": lambda policy, X: table_of(policy, X).tolist(),
    "function": lambda policy, X: lambda some: table_of(policy, some),
    "ranked by a function": lambda policy, X: (
        lambda some: Ranked(np.argsort(-table_of(policy, some), axis=1)[:, :1], [1.0])
    ),
    "classifier": lambda policy, X: Proba(policy),
    "classes": lambda policy, X: Proba(policy, ORDER, ORDER),
    "renumbered": lambda policy, X: Renumbered(Renumbered(policy, ORDER), np.argsort(ORDER)),
    "the policy's method": lambda policy, X: lambda some: table_of(policy, some),
}


@pytest.mark.parametrize("form", ALL)
@pytest.mark.parametrize("listed", [False, True])
def test_whatever_knows_all_probabilities_says_what_the_policy_says(problem, form, listed):
    rng = np.random.default_rng(1)
    log = problem.with_support(ROWS, rng)[1] if listed else problem.log(ROWS, rng, logging=problem.logging)
    policy = problem.policy
    if form == "ranked by a function":
        policy = DeterministicPolicy(lambda X: table_of(problem.policy, X).argmax(axis=1), K)
    elif form == "single precision":
        table = table_of(policy, problem.contexts).astype(np.float32).astype(np.float64)
        key = {tuple(x): i for i, x in enumerate(problem.contexts.tolist())}
        table /= table.sum(axis=1, keepdims=True)
        policy = FunctionPolicy(lambda X, ids: table[[key[tuple(x)] for x in X.tolist()], ids], K)
    what = ALL[form](problem.policy, log.contexts)
    found = evaluation.evaluate(what, log, estimators_of(problem), chunk=130, replicates=50)
    assert_same(found, evaluation.evaluate(policy, log, estimators_of(problem), replicates=50))


def test_actions_for_each_row_are_a_deterministic_policy(problem):
    log = problem.log(ROWS, np.random.default_rng(2), logging=problem.logging)
    best = table_of(problem.policy, log.contexts).argmax(axis=1)
    policy = DeterministicPolicy(lambda X: table_of(problem.policy, X).argmax(axis=1), K)
    wanted = evaluation.evaluate(policy, log, estimators_of(problem), replicates=0)
    for what in (best, best.tolist(), best.astype(np.uint8), lambda X: table_of(problem.policy, X).argmax(axis=1),
                 Ranked(best[:, None], [1.0]), Ranked([[a] for a in best.tolist()], [0.7, 0.3])):  # fmt: skip
        assert_same(evaluation.evaluate(what, log, estimators_of(problem), chunk=77, replicates=0), wanted)


def test_ranked_lists_are_the_marginal_of_their_positions(problem):
    rng = np.random.default_rng(3)
    log = problem.log(ROWS, rng, logging=problem.logging)
    weights = np.array([0.5, 0.3, 0.2])
    lists = [rng.permutation(K)[: rng.integers(1, 5)].tolist() for _ in range(ROWS)]
    table = np.zeros((ROWS, K))
    for row, ids in enumerate(lists):
        shown = weights[: len(ids)] / weights[: len(ids)].sum()
        table[row, ids[: len(shown)]] = shown
    wanted = evaluation.evaluate(table, log, estimators_of(problem), replicates=0)
    assert_same(
        evaluation.evaluate(Ranked(lists, weights), log, estimators_of(problem), chunk=64, replicates=0), wanted
    )
    square = np.array([rng.permutation(K) for _ in range(ROWS)])
    table = np.zeros((ROWS, K))
    np.put_along_axis(table, square[:, :3], np.broadcast_to(weights, (ROWS, 3)), axis=1)
    wanted = evaluation.evaluate(table, log, estimators_of(problem), replicates=0)
    assert_same(evaluation.evaluate(Ranked(square, weights), log, estimators_of(problem), replicates=0), wanted)


def test_probabilities_of_the_logged_actions_are_enough_for_weights(problem):
    log = problem.log(ROWS, np.random.default_rng(4), logging=problem.logging)
    p = problem.policy.probabilities_of(log.contexts, log.actions)
    wanted = evaluation.evaluate(problem.policy, log, bias=False, replicates=50)
    for what in (p, p.tolist(), lambda X, actions: problem.policy.probabilities_of(X, actions)):
        found = evaluation.evaluate(what, log, chunk=77, replicates=50)
        assert_same(found, wanted)
        assert found.overlap.effective_sample_size == pytest.approx(wanted.overlap.effective_sample_size)
        assert str(found.verdict()) == str(wanted.verdict())


def test_uniform_and_logging_are_words(problem, tmp_path):
    rng = np.random.default_rng(5)
    for log in (
        problem.log(ROWS, rng),
        problem.log(ROWS, rng, logging=problem.logging),
        problem.with_support(ROWS, rng)[1],
    ):
        same = evaluation.evaluate("logging", log, ["ips", "snips", "ls"], chunk=64, replicates=0)
        assert same["ips"].value == pytest.approx(log.rewards.mean(), rel=1e-14) == same["snips"].value
        assert same["ips"].gain.value == pytest.approx(0, abs=1e-15)
        uniform = evaluation.evaluate("uniform", log, ["ips"], replicates=0)
        assert uniform.policy == "uniform"
        assert_same(uniform, evaluation.evaluate(UniformPolicy(K), log, ["ips"], replicates=0))
    assert "uniform" in evaluation.evaluate("uniform", log).report(tmp_path / "page.html").read_text()


# ---- everything else that compares policies


def test_differences_choices_tuning_and_terms_take_the_same_forms(problem):
    log = problem.log(ROWS, np.random.default_rng(6), logging=problem.logging)
    policy, other = problem.policy, EpsilonMixture(problem.policy, 0.5)
    p = policy.probabilities_of(log.contexts, log.actions)
    table = table_of(other, log.contexts)
    wanted = evaluation.difference(policy, other, log, bias=False, replicates=0)
    found = evaluation.difference(p, table, log, chunk=50, replicates=0)
    assert (found.value, found.standard_error) == pytest.approx((wanted.value, wanted.standard_error), rel=1e-10)
    assert evaluation.difference("logging", None, log, "ips").value == pytest.approx(0, abs=1e-15)
    named = evaluation.choose({"mine": p, "theirs": table, "none": "uniform"}, log)
    plain = evaluation.choose({"mine": policy, "theirs": other, "none": UniformPolicy(K)}, log)
    assert (named.best, named.lower) == (plain.best, pytest.approx(plain.lower, rel=1e-10))
    found, wanted = evaluation.tune(table, log, chunk=64), evaluation.tune(other, log)
    assert found.parameter == wanted.parameter
    assert [one.value for one in found.trials] == pytest.approx([one.value for one in wanted.trials], rel=1e-10)
    assert evaluation.tune(p, log).parameter == evaluation.tune(policy, log, bias=False).parameter
    terms = evaluation.row_terms(table, log, "ips").values
    assert terms == pytest.approx(evaluation.row_terms(other, log, "ips").values, rel=1e-12)


def test_certificates_take_the_same_forms(problem):
    log = problem.log(ROWS, np.random.default_rng(7), logging=problem.logging)
    wanted = ma.certify(problem.policy, log)
    p = problem.policy.probabilities_of(log.contexts, log.actions)
    for what in (table_of(problem.policy, log.contexts), lambda X: table_of(problem.policy, X)):
        found = ma.certify(what, log)
        assert (found.lower, found.upper) == pytest.approx((wanted.lower, wanted.upper), rel=1e-10)
    bare, wanted = ma.certify(p, log), ma.certify(problem.policy, log, bound="ls")
    assert (bare.lower, bare.upper) == pytest.approx((wanted.lower, wanted.upper), rel=1e-10)
    with pytest.raises(InvalidInput, match=r"bound: expected 'ls'.*logged actions alone"):
        ma.certify(p, log, bound="es")
    with pytest.raises(InvalidInput, match="300 rows"):
        ma.certify(p[:-1], log)
    assert ma.certify("uniform", log).lower >= 0


# ---- ids and original columns


def shop(problem, rows=ROWS, seed=8):
    """A frame of a log with ids, whose contexts can be found again from two columns; and its policy's matrix."""
    i, a, r = problem.draw(rows, np.random.default_rng(seed))
    frame = {
        "town": np.array(["Ulm", "Bonn", "Rome", "Oslo", "Nice"])[i],
        "age": 20.0 + i,
        "item": np.array(NAMES)[a],
        "click": r,
        "propensity": problem.pi0[i, a],
        "p_new": problem.pi[i, a],
        "new_item": np.array(NAMES)[problem.pi[i].argmax(axis=1)],
    }
    return frame, problem.pi[i]


COLUMNS = Columns(context=["age", "town"], action="item", reward="click", propensity="propensity")


@pytest.fixture
def catalogue():
    return Actions(NAMES)


def test_columns_and_functions_of_columns_say_what_arrays_say(problem, catalogue, tmp_path):
    frame, table = shop(problem)
    log = from_frame(frame, COLUMNS, catalogue=catalogue)
    path = tmp_path / "log.csv"
    lines = [",".join(frame), *(",".join(map(str, row)) for row in zip(*frame.values(), strict=True))]
    path.write_text("\n".join(lines))
    opened = open_log(path, COLUMNS, catalogue=catalogue)
    read = read_log(path, COLUMNS, catalogue=catalogue)
    part, rest = log.split(0.5, seed=3)
    ages = {age: row for age, row in zip(frame["age"], table, strict=True)}

    def by_age(columns):
        return np.array([ages[age] for age in columns["age"]])

    def named(columns):
        return np.array(NAMES)[by_age(columns).argmax(axis=1)]

    def of_logged(columns, actions):
        return by_age(columns)[np.arange(len(actions)), [NAMES.index(a) for a in actions]]

    for one in (log, opened, read, part, rest, log.rows(np.arange(ROWS)[::-1])):
        whole = one.collect() if one is opened else one
        here = np.array([ages[age] for age in whole.contexts[:, 0]]) if one is not opened else table
        p = here[np.arange(len(here)), whole.actions]
        wanted = evaluation.evaluate(p, whole, ["ips", "snips"], replicates=0)
        for what in (InColumn("p_new"), OfColumns(lambda c: c["p_new"]), OfColumns(of_logged)):
            assert_same(evaluation.evaluate(what, one, ["ips", "snips"], chunk=41, replicates=0), wanted)
        wanted = evaluation.evaluate(here, whole, ["ips", "snips"], replicates=0)
        assert_same(evaluation.evaluate(OfColumns(by_age), one, ["ips", "snips"], chunk=41, replicates=0), wanted)
        wanted = evaluation.evaluate(here.argmax(axis=1) if whole.catalogue is None else np.array(NAMES)[here.argmax(axis=1)],
                                     whole, ["ips", "snips"], replicates=0)  # fmt: skip
        for what in (InColumn("new_item"), InColumn("new_item", "actions"), OfColumns(named)):
            assert_same(evaluation.evaluate(what, one, ["ips", "snips"], chunk=41, replicates=0), wanted)
    assert ma.certify(InColumn("p_new"), opened).lower == pytest.approx(ma.certify(InColumn("p_new"), log).lower)


def test_frames_of_probabilities_go_by_the_names_of_their_columns(problem, catalogue):
    pandas = pytest.importorskip("pandas")
    frame, table = shop(problem)
    log = from_frame(pandas.DataFrame(frame), COLUMNS, catalogue=catalogue)
    mixed = pandas.DataFrame(table, columns=NAMES)[[NAMES[a] for a in ORDER]]
    wanted = evaluation.evaluate(table, log, ["ips"], replicates=0)
    assert_same(evaluation.evaluate(mixed, log, ["ips"], replicates=0), wanted)
    assert_same(evaluation.evaluate(log.original["p_new"].values, log, ["ips"], replicates=0), wanted)
    series = pandas.Series(frame["p_new"])
    assert_same(evaluation.evaluate(series, log, ["ips"], replicates=0), wanted)


def test_classifiers_of_scikit_learn_get_the_columns_that_they_were_fitted_on(problem, catalogue):
    pandas = pytest.importorskip("pandas")
    tree = pytest.importorskip("sklearn.tree")
    compose = pytest.importorskip("sklearn.compose")
    pipeline, preprocessing = pytest.importorskip("sklearn.pipeline"), pytest.importorskip("sklearn.preprocessing")
    frame = pandas.DataFrame(shop(problem)[0])
    log = from_frame(frame, COLUMNS, catalogue=catalogue)
    known = frame["item"].isin(NAMES[:4])  # classes that are missing are never played
    model = pipeline.make_pipeline(
        compose.make_column_transformer((preprocessing.OneHotEncoder(), ["town"]), ("passthrough", ["age"])),
        tree.DecisionTreeClassifier(max_depth=2),
    ).fit(frame.loc[known, ["town", "age"]], frame.loc[known, "item"])
    probabilities = np.zeros((ROWS, K))
    probabilities[:, [NAMES.index(name) for name in model.classes_]] = model.predict_proba(frame[["town", "age"]])
    wanted = evaluation.evaluate(probabilities, log, ["ips", "snips"], replicates=0)
    found = evaluation.evaluate(model, log, ["ips", "snips"], chunk=64, replicates=0)
    assert_same(found, wanted)
    assert found.policy == "Pipeline"
    plain = tree.DecisionTreeClassifier(max_depth=2).fit(log.contexts[known], frame["item"][known])
    probabilities[:, [NAMES.index(name) for name in plain.classes_]] = plain.predict_proba(log.contexts)
    wanted = evaluation.evaluate(probabilities, log, ["ips"], replicates=0)
    assert_same(evaluation.evaluate(plain, log, ["ips"], replicates=0), wanted)


# ---- policies with words of their own


def test_a_policy_over_the_same_ids_in_another_order_goes_by_ids(problem, catalogue):
    log = problem.log(ROWS, np.random.default_rng(9), logging=problem.logging, catalogue=catalogue)
    theirs = SoftmaxPolicy(problem.policy.actions[ORDER])
    theirs.schema = Schema(catalogue=Actions([NAMES[a] for a in ORDER]))
    wanted = evaluation.evaluate(problem.policy, log, estimators_of(problem), replicates=0)
    assert_same(evaluation.evaluate(theirs, log, estimators_of(problem), replicates=0), wanted)
    assert ma.certify(theirs, log).lower == pytest.approx(ma.certify(problem.policy, log).lower)
    theirs.schema = Schema(catalogue=Actions([*NAMES[1:], "kale"]))
    with pytest.raises(
        UnknownAction, match="policy: expected a policy over the log's ids, got no probability for 'fig'"
    ):
        evaluation.evaluate(theirs, log)
    longer = SoftmaxPolicy(np.zeros((K + 1, 3)))
    longer.schema = Schema(catalogue=Actions([*NAMES, "kale"]))
    with pytest.raises(
        UnknownAction, match=r"catalogue=policy.schema.catalogue, got actions that the log does not know: 'kale'"
    ):
        evaluation.evaluate(longer, log)


def test_a_policy_with_an_encoder_of_its_own_reads_the_original_columns(problem, catalogue):
    frame, _ = shop(problem)
    standard = from_frame(frame, COLUMNS, catalogue=catalogue, encoder=ma.logs.Encoding(standardise=True))
    plain = from_frame(frame, COLUMNS, catalogue=catalogue)
    theirs = SoftmaxPolicy(np.random.default_rng(0).standard_normal((K, standard.dim)))
    wanted = evaluation.evaluate(theirs, standard, ["ips", "snips"], replicates=0)
    theirs.schema = Schema.of(standard)
    found = evaluation.evaluate(theirs, plain, ["ips", "snips"], chunk=50, replicates=0)
    assert_same(found, wanted)
    assert any("own encoder" in note for note in found.notes)
    again = from_frame(frame, COLUMNS, catalogue=catalogue, encoder=ma.logs.Encoding(standardise=True))
    assert not any("own encoder" in note for note in evaluation.evaluate(theirs, again, ["ips"]).notes)


# ---- agents


def taught(problem, decision=None):
    prior = ma.ActionPrior(actions=K, mean=np.zeros(3), covariance=np.eye(3))
    train = problem.log(80, np.random.default_rng(10))
    return train, ma.rewards.warm_start(train, prior, ma.Linear(1.0), decision, seed=0)


def test_an_agent_that_has_learned_and_explores_no_more_is_a_policy(problem):
    _, agent = taught(problem)
    log = problem.log(ROWS, np.random.default_rng(11), logging=problem.logging)
    greedy = ma.Agent(agent.belief, ma.Greedy())
    policy = DeterministicPolicy(lambda X: greedy.decide(X, draw=0), K)
    wanted = evaluation.evaluate(policy, log, estimators_of(problem), replicates=0)
    assert_same(ma.evaluate(greedy, log, estimators_of(problem), replicates=0), wanted)
    assert ma.certify(greedy, log).lower == pytest.approx(ma.certify(policy, log).lower)
    assert greedy.as_policy().dim == 3


def test_what_was_learned_from_a_log_says_so(problem):
    train, agent = taught(problem)
    prior = ma.ActionPrior(actions=K, mean=np.zeros(3), covariance=np.eye(3))
    model = ma.rewards.sdm(train, prior)
    fresh = problem.log(ROWS, np.random.default_rng(12), logging=problem.logging)
    for policy in (
        ma.Agent(agent.belief, ma.Greedy()),
        agent,
        model.greedy(),
        model.greedy_policy(),
        model.pessimistic(),
        ma.rewards.dm_frequentist(train).greedy_policy(),
    ):
        assert ma.evaluate(policy, train, ["ips"], replicates=0).on_training_rows
        assert not ma.evaluate(policy, fresh.rows(slice(0, 50)), ["ips"], replicates=0).on_training_rows
    with pytest.raises(InvalidInput, match="policy"):
        ma.certify(ma.Agent(agent.belief, ma.Greedy()), train)
    model.fold(fresh)
    assert ma.evaluate(model.greedy(), train, ["ips"]).on_training_rows
    assert ma.evaluate(model.greedy(), fresh, ["ips"]).on_training_rows


def test_an_agent_that_draws_is_evaluated_by_estimates_without_bias(problem):
    _, agent = taught(problem)
    rng = np.random.default_rng(13)
    log = problem.log(600, rng)
    found = ma.evaluate(agent, log, ["ips"], replicates=0, chunk=400)
    assert any("estimates without bias" in note for note in found.notes)
    first = log.rows(slice(0, 100))
    twice = [ma.evaluate(agent, first, ["ips"], replicates=0, chunk=chunk)["ips"].value for chunk in (30, 100)]
    assert twice[0] == pytest.approx(twice[1], rel=1e-12)
    draws = 4000
    values = np.empty((len(problem.contexts), draws))
    for i, x in enumerate(problem.contexts):
        values[i] = problem.means[i, agent.decide(np.tile(x, (draws, 1)), rng=rng)]
    truth, error = values.mean(), np.sqrt((values.var(axis=1) / draws).sum()) / len(values)
    assert abs(found["ips"].value - truth) < FAR * np.hypot(found["ips"].standard_error, error)
    with pytest.raises(InvalidInput, match=r"Agent\(agent.belief, Greedy\(\)\), got .*estimates"):
        ma.certify(agent, log)
    with pytest.raises(InvalidInput, match=r"estimators: expected estimators of the IPS family .* got dm"):
        ma.evaluate(agent, log, [DM(problem.model)])


def test_agents_go_by_ids_and_read_columns_with_their_own_encoder(problem, catalogue):
    frame, _ = shop(problem)
    standard = ma.logs.Encoding(standardise=True)
    theirs = from_frame(frame, COLUMNS, catalogue=Actions([NAMES[a] for a in ORDER]), encoder=standard)
    ours = from_frame(shop(problem, seed=18)[0], COLUMNS, catalogue=catalogue)
    translated = from_frame(shop(problem, seed=18)[0], COLUMNS, catalogue=theirs.catalogue, encoder=theirs.encoder)
    prior = ma.ActionPrior(actions=K, mean=np.zeros(theirs.dim), covariance=np.eye(theirs.dim))
    drawing = ma.rewards.warm_start(theirs, prior, seed=0)
    greedy = ma.rewards.warm_start(theirs, prior, decision=ma.Greedy(), seed=0)
    for agent, rows in ((greedy, ROWS), (drawing, 40)):
        here, there = ours.rows(slice(0, rows)), translated.rows(slice(0, rows))
        wanted = evaluation.evaluate(agent, there, ["ips", "snips"], replicates=0)
        assert_same(evaluation.evaluate(agent, here, ["ips", "snips"], chunk=17, replicates=0), wanted)
    with pytest.raises(UnknownAction, match="no probability for 'kale' of the log"):
        evaluation.evaluate(
            drawing, from_frame(frame, COLUMNS, catalogue=Actions(["fig", *NAMES[1:-1], "kale", "nut"]))
        )


def test_an_agent_that_would_take_hours_is_refused(problem, monkeypatch):
    _, agent = taught(problem)
    monkeypatch.setattr(evaluation.estimated, "MOST_SECONDS", 0.1)
    with pytest.raises(InvalidInput, match=r"fewer rows .*, got an agent that draws, on 300 rows: about 0.0 hours"):
        ma.evaluate(agent, problem.log(ROWS, np.random.default_rng(0)))


# ---- right on average, and no larger than a chunk


def test_estimates_of_every_form_hold_the_truth(problem):
    rng = np.random.default_rng(14)
    i, a, r = problem.draw(20_000, rng)
    log = problem.log_of(i, a, r)
    best = problem.pi.argmax(axis=1)
    order = np.argsort(-problem.pi, axis=1)[:, :2]
    shown = 0.6 * np.take_along_axis(problem.means, order[:, :1], 1) + 0.4 * np.take_along_axis(
        problem.means, order[:, 1:], 1
    )
    truths = {
        "probabilities": (problem.pi[i, a], problem.truth),
        "matrix": (problem.pi[i], problem.truth),
        "actions": (best[i], problem.means[np.arange(len(best)), best].mean()),
        "ranked": (Ranked(order[i], [0.6, 0.4]), shown.mean()),
        "uniform": ("uniform", problem.means.mean()),
        "logging": ("logging", (problem.pi0 * problem.means).sum(axis=1).mean()),
    }
    for what, truth in truths.values():
        found = ma.evaluate(what, log, ["ips"], replicates=0)["ips"]
        assert abs(found.value - truth) < FAR * found.standard_error


def test_memory_does_not_hold_rows_times_actions(monkeypatch):
    actions, rows = 400, 20_000
    monkeypatch.setattr(functions, "CELLS", 1 << 16)
    rng = np.random.default_rng(0)
    log = ma.LoggedData(
        rng.standard_normal((rows, 2)), rng.integers(actions, size=rows), rng.random(rows), actions,
        propensities=np.full(rows, 1 / actions),
    )  # fmt: skip
    policy = SoftmaxPolicy(rng.standard_normal((actions, 2)))
    tracemalloc.start()
    found = ma.evaluate(lambda X: table_of(policy, X), log, ["ips"], replicates=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows * actions * 8 / 4
    assert found["ips"].value == pytest.approx(ma.evaluate(policy, log, ["ips"], replicates=0)["ips"].value)


# ---- refusals


def test_wrong_things_get_the_list_of_right_ones(problem):
    log = problem.log(ROWS, np.random.default_rng(15))
    p = problem.policy.probabilities_of(log.contexts, log.actions)
    for wrong in (None, 3, object(), SoftmaxPolicy, {"a": 1}, "softmax", b"uniform"):
        with pytest.raises(InvalidInput, match=r"policy: expected a policy or an agent, .* with predict_proba|floats"):
            ma.evaluate(wrong, log)
    with pytest.raises(InvalidInput, match=r"InColumn\('p_new'\)"):
        ma.evaluate("p_new", log)
    with pytest.raises(
        InvalidInput, match="expected the log's 300 rows, got probabilities of the logged actions, 299 rows"
    ):
        ma.evaluate(p[:-1], log)
    with pytest.raises(InvalidInput, match=r"1.5 at row 7"):
        ma.evaluate(np.where(np.arange(ROWS) == 7, 1.5, p), log)
    with pytest.raises(InvalidInput, match="nan"):
        ma.evaluate(np.where(np.arange(ROWS) == 7, np.nan, p), log)
    with pytest.raises(InvalidInput, match=r"row 120 with sum 0.5"):
        ma.evaluate(np.where(np.arange(ROWS)[:, None] == 120, 0.5, 1.0) / K * np.ones((1, K)), log, chunk=50)
    with pytest.raises(InvalidInput, match="a column for each of the log's 7 actions"):
        ma.evaluate(np.full((ROWS, 2), 0.5), log)
    with pytest.raises(UnknownAction, match="action 7"):
        ma.evaluate(np.full(ROWS, 7), log)
    with pytest.raises(InvalidInput, match=r"Ranked\(lists, weights\)"):
        ma.evaluate(np.zeros((ROWS, 2), dtype=int), log)
    with pytest.raises(InvalidInput, match=r"Ranked\(lists, weights\)"):
        ma.evaluate([[0], [1, 2]], log)
    with pytest.raises(InvalidInput, match="at most 10,000 columns"):
        ma.evaluate(np.zeros((ROWS, 10_001)), log)
    with pytest.raises(InvalidInput, match="twice at row 1"):
        ma.evaluate(Ranked([[0, 1], [2, 2]] * 150, [0.5, 0.5]), log)
    with pytest.raises(InvalidInput, match="original columns"):
        ma.evaluate(InColumn("p_new"), log)
    with pytest.raises(InvalidInput, match="original columns"):
        ma.evaluate(OfColumns(lambda columns: columns["a"]), log)
    with pytest.raises(InvalidInput, match="a function of 3 arguments"):
        ma.evaluate(lambda a, b, c: a, log)
    with pytest.raises(InvalidInput, match="two arguments"):
        ma.evaluate(lambda X, a: np.full((len(X), K), 1 / K), log)
    for argument, call in (
        ("other", lambda: evaluation.difference("uniform", object(), log)),
        ("policies", lambda: evaluation.choose({"a": object()}, log)),
        ("policy", lambda: ma.certify(object(), log)),
    ):
        with pytest.raises(InvalidInput, match=f"{argument}: expected a policy or an agent"):
            call()


def test_ids_and_columns_that_are_not_there_are_named(problem, catalogue):
    frame, _ = shop(problem)
    log = from_frame(frame, COLUMNS, catalogue=catalogue)
    with pytest.raises(UnknownAction, match="'kale' at row 250"):
        ma.evaluate(np.where(np.arange(ROWS) == 250, "kale", frame["item"]), log, chunk=100)
    with pytest.raises(InvalidInput, match=r"one of .*'p_new'.*, got no column 'p_old' in the log"):
        ma.evaluate(InColumn("p_old"), log)
    with pytest.raises(UnknownAction, match="'kale'"):
        ma.evaluate(Proba(problem.policy, classes=np.array([*NAMES[1:], "kale"])), log)
    frame["p_new"] = np.where(np.arange(ROWS) == 4, np.nan, frame["p_new"])
    with pytest.raises(InvalidInput, match="a missing entry in the column 'p_new' at row 4"):
        ma.evaluate(InColumn("p_new"), from_frame(frame, COLUMNS, catalogue=catalogue))


def test_estimators_that_need_all_actions_are_refused_by_name(problem):
    log = problem.log(ROWS, np.random.default_rng(16), logging=problem.logging)
    p = problem.policy.probabilities_of(log.contexts, log.actions)
    labels = np.arange(K) % 3
    for one, name in (
        (DM(problem.model), "dm"),
        (DR(problem.model), "dr"),
        (MIPS(labels), "mips"),
        (SWITCH(problem.model, 3.0), "switch"),
        (PC(problem.embeddings, k=3), "pc"),
    ):
        with pytest.raises(InvalidInput, match=f"estimators: expected .* got {name}, and a policy of which"):
            ma.evaluate(p, log, ["ips", one])
    with pytest.raises(InvalidInput, match="bias=True"):
        ma.evaluate(p, log, bias=True)
    found = ma.evaluate(p, log, model=problem.model)
    assert {one.name for one in found.estimates}.isdisjoint({"dm", "dr", "switch-dr"})
    assert any("nothing can be said of it by the model" in note for note in found.notes)
    bare = ma.LoggedData(log.contexts, log.actions, log.rewards, K)
    with pytest.raises(InvalidInput, match="propensities"):
        ma.evaluate(p, bare, model=problem.model)
    assert ma.evaluate(table_of(problem.policy, log.contexts), bare, model=problem.model)["dm"].value > 0
    with pytest.raises(InvalidInput, match="propensities"):
        ma.evaluate("logging", bare)
    assert IPS().unbiased
