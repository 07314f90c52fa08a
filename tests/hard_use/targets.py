"""What is called: every public callable with correct arguments, and methods of agents, policies, worlds, logs, statistics."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from hard_use import hostile, public, serving
from hard_use.material import Argument, D, K, Material, arguments_of, reason_not_to_call

# what others implement and the library calls, with arguments that it has checked
PROTOCOL_METHODS = {
    "arrays",
    "spec",
    "rows",
    "expectation",
    "total_expectations",
    "over",
    "usual",
    "copy",
    "restored",
    "from_arrays",
    "from_json",
    "from_state",
    "require",
    "with_notes",
    "support_block",
}
# methods that refuse every call: their class says why
REFUSING = {"agents.jointTS().add_actions", "policies.DeterministicPolicy.save", "policies.FunctionPolicy.save"}
CHANGING = {"observe", "advance", "replace_reward", "add_actions", "update_actions", "retire", "reinstate", "reseed"}


@dataclass
class Target:
    """Something to call: where it came from, its arguments, and what it is called on."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Argument]
    maker: Callable[[], Any] | None = None  # of the object whose method it is
    stateful: bool = False  # the object is an agent
    changes: bool = False  # success changes the agent


@dataclass
class Targets:
    """Everything that can be called, and what cannot."""

    calls: list[Target] = field(default_factory=list)
    uncovered: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


def targets(material: Material) -> Targets:
    """All public callables with their arguments; then the methods of agents, policies, worlds and logs."""
    found = Targets()
    made_here = public.results(material.public)
    for name, value in material.public.items():
        if public.is_alias(value) or public.is_protocol(value):
            continue
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        if reason := reason_not_to_call(name):
            found.left_out[name] = reason
            continue
        try:
            arguments, missing = arguments_of(material, name, value)
        except ValueError:  # no signature: nothing that could be wrong
            continue
        if missing and name.rpartition(".")[2] in made_here:
            found.left_out[name] = "a result"
        elif missing:
            found.uncovered[name] = ", ".join(missing)
        elif arguments:
            found.calls.append(Target(name, value, arguments))
        if inspect.isclass(value) and not missing:
            _add_class_methods(material, name, value, found)
    _add_methods(material, found)
    return found


def _add_class_methods(material: Material, name: str, value: type, found: Targets) -> None:
    """Other ways to make one: `MixedEffectPrior.isotropic`, `PolicyPrior.of`."""
    for method, bound in public.methods_of(value).items():
        full = f"{name}.{method}"
        if not inspect.ismethod(bound) or method in PROTOCOL_METHODS or reason_not_to_call(full):
            continue
        arguments, missing = arguments_of(material, full, bound)
        if missing:
            found.uncovered[full] = ", ".join(missing)
        elif arguments:
            found.calls.append(Target(full, bound, arguments))


def is_agent_maker(value: Any) -> bool:
    """A function that gives an agent."""
    return inspect.isfunction(value) and str(inspect.signature(value).return_annotation).strip("'") == "Agent"


def call_correctly(target: Target) -> Any:
    """The call with nothing replaced."""
    return target.function(**{name: a.value for name, a in target.arguments.items()})


def _add_methods(material: Material, found: Targets) -> None:
    owners: list[tuple[str, Callable[[], Any], bool]] = [
        ("LoggedData", lambda: material.log, False),
        ("Live", lambda: _a_live(material), False),
        ("Catalogue", lambda: material.make("Catalogue", material.items), False),
    ]
    for target in list(found.calls):
        value = target.function
        if is_agent_maker(value) and target.name != "load":
            owners.append((f"{target.name}()", lambda t=target: call_correctly(t), True))
            for label, changes in variants(material, target).items():
                owners.append((f"{target.name}({label})", lambda t=target, c=changes: _with(t, **c), True))
        elif inspect.isclass(value) and any(hasattr(value, one) for one in ("probabilities_of", "regret", "update")):
            owners.append((target.name, lambda t=target: call_correctly(t), False))
    around = serving.owners(material)
    found.calls.append(_upload(material))
    for owner, maker, stateful in [*owners, *((name, maker, False) for name, maker in around)]:
        try:
            thing = maker()
        except Exception:  # reported by `broken`
            continue
        for name, method in public.methods_of(type(thing)).items():
            if name in PROTOCOL_METHODS or not inspect.isfunction(method) or _refuses(thing, name):
                continue
            full = f"{owner}.{name}"
            arguments, missing = arguments_of(material, f"{type(thing).__name__}.{name}", method)
            if missing:
                found.uncovered[full] = ", ".join(missing)
            elif arguments:
                arguments = arguments if owner in dict(around) else _fitted(thing, name, arguments)
                changes = name in CHANGING
                if name == "reinstate":  # of an agent of its own, some of whose actions are retired
                    own = f"{owner}(retired).{name}"
                    found.calls.append(Target(own, method, arguments, _with_retired(maker), stateful, changes))
                    continue
                if name == "update_actions" and owner == "Live":  # of a store whose agent has weights
                    own = partial(_a_live_with_weights, material)
                    found.calls.append(
                        Target("Live(weights).update_actions", method, arguments, own, stateful, changes)
                    )
                    continue
                if name == "replace_reward":  # of an agent of its own, which has rewards that can be replaced
                    for own, given in {
                        f"{owner}(taught).{name}": arguments,
                        **{f"{owner}(taught, {k}).{name}": v for k, v in _in_batches(thing, name, arguments).items()},
                    }.items():
                        found.calls.append(Target(own, method, given, _with_rewards(maker), stateful, changes))
                    continue
                found.calls.append(Target(full, method, arguments, maker=maker, stateful=stateful, changes=changes))
                for label, varied in {
                    **_in_batches(thing, name, arguments),
                    **_with_action_contexts(thing, arguments),
                }.items():
                    full = f"{owner}({label}).{name}"
                    found.calls.append(Target(full, method, varied, maker=maker, stateful=stateful, changes=changes))


def _a_live(material: Material) -> Any:
    """A live store with three arms, a challenge, an event and an action that is retired."""
    options = {"background": False, "reward_range": (0.0, 1.0), "default": 0.0}
    live = material.public["live.open"](":memory:", material.sure_agent, **options)
    for name in ("second", "third"):
        live.add_arm(name, material.sure_agent)
    live.challenge("third")
    live.retire([K - 1])
    live.decide(np.linspace(-1, 1, D), candidates=[1], id="decided")
    return live


def _a_live_with_weights(material: Material) -> Any:
    """A live store whose agent knows its actions by mixing weights."""
    agent = material.make("EpsilonGreedyAgent", material.mixed, seed=1)
    return material.public["live.open"](":memory:", agent, background=False)


def _upload(material: Material) -> Target:
    """An upload of one decision, whose fields are the arguments."""
    arguments = {name: Argument(*given) for name, given in serving.upload_arguments(material).items()}
    return Target("Live.upload(one)", serving.upload_one, arguments, maker=lambda: _a_live(material))


def _in_batches(thing: Any, name: str, arguments: dict[str, Argument]) -> dict[str, dict[str, Argument]]:
    """Three rounds at once."""
    if name not in ("decide", "observe", "replace_reward") or not hasattr(thing, "belief"):
        return {}
    out = {**arguments, "x": Argument(np.stack([context_of(thing)] * 3), hostile.arrays)}
    if name == "observe":
        out["action"] = Argument(np.array([1, 2, 1]), hostile.ids)
        out["reward"] = Argument(np.array([1.0, 0.0, 1.0]), hostile.arrays)
    if name == "replace_reward":
        out["action"] = Argument(np.array([1, 2, 1]), hostile.ids)
        out["was"] = out["now"] = Argument(np.array([1.0, 0.0, 1.0]), hostile.arrays)
    return {"batch": out}


def _with_action_contexts(thing: Any, arguments: dict[str, Argument]) -> dict[str, dict[str, Argument]]:
    """The same call with a context for each action, and with a ragged batch of them where a batch is taken."""
    if "action_contexts" not in arguments or not hasattr(thing, "belief"):
        return {}
    catalogue = thing.belief.catalogue
    Z = np.linspace(-1, 1, catalogue.size * thing.belief.dim).reshape(catalogue.size, thing.belief.dim) + 0.1
    one = {**arguments, "x": Argument(None, hostile.arrays), "action_contexts": Argument(Z, hostile.arrays)}
    if "action" in arguments:  # asks about one decision
        return {"action contexts": one}
    lists = {
        "candidates": Argument([[0, 1], np.array([4, 2, 3])], hostile.things),
        "action_contexts": Argument([Z[:2], Z[:3].tolist()], hostile.things),
    }
    return {"action contexts": one, "ragged action contexts": {**one, **lists}}


def _with_rewards(maker: Callable[[], Any]) -> Callable[[], Any]:
    """The same agent with rewards that can be replaced, each by what it was."""

    def make() -> Any:
        agent = maker()
        agent.observe(np.stack([context_of(agent)] * 3), np.array([1, 2, 1]), np.array([1.0, 0.0, 1.0]))
        return agent

    return make


def _with_retired(maker: Callable[[], Any]) -> Callable[[], Any]:
    """The same agent with actions that can be reinstated."""

    def make() -> Any:
        agent = maker()
        agent.retire([1, 2])
        return agent

    return make


def variants(material: Material, target: Target) -> dict[str, dict[str, Any]]:
    """Agents of other parts than the usual ones: each has code of its own."""
    out: dict[str, dict[str, Any]] = {}
    if "factored" in target.arguments:
        out |= {"factored": {"factored": True}, "blockwise": {"factored": "blockwise"}}
        out |= {"Poisson": {"likelihood": material.make("Poisson")}}
    if target.name == "LinTS":
        matrices, means = np.stack([np.eye(D)] * K), np.full((K, D), 0.1)
        out |= {"own": {"prior": material.make("ActionPrior", K, means, matrices)}}
    if target.name == "dTS":
        chain = material.make("DiffusionPrior", K, D, [0.5 * np.eye(D)], [np.eye(D)] * 2, shared=False)
        out |= {"own": {"prior": chain}}
    return out | _forgetful(material, target.name)


def _forgetful(material: Material, name: str) -> dict[str, dict[str, Any]]:
    """Agents that forget, each in another way."""
    make = material.make
    by_clock = {"half_life": 20.0, "clock": "time"}
    drifts = {
        "LinTS": {
            "drift": make("Drift", **by_clock, late=5.0),
            "window": make("SlidingWindow", length=9.0, clock="time"),
        },
        "HierTS": {"drift": make("Drift", **by_clock, root_half_life=50.0), "discount": make("Discount", **by_clock)},
        "meTS": {"discount": make("Discount", **by_clock), "window": make("SlidingWindow", length=9.0, clock="time")},
        "agents.GLMTS": {"drift": make("Drift", **by_clock)},
        "agents.jointTS": {"drift": make("Drift", **by_clock)},
    }
    return {how: {"drift": drift} for how, drift in drifts.get(name, {}).items()}


def _with(target: Target, **changes: Any) -> Any:
    return target.function(**{**{name: a.value for name, a in target.arguments.items()}, **changes})


def context_of(thing: Any) -> np.ndarray:
    """A context of the right shape for an agent or a policy."""
    belief = getattr(thing, "belief", None)
    shape = getattr(belief, "context_shape", None) or (getattr(belief, "dim", D),)
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape) + 0.1


def _fitted(thing: Any, method: str, arguments: dict[str, Argument]) -> dict[str, Argument]:
    """Arguments of the thing's own shapes."""
    out = dict(arguments)
    if "x" in out:
        out["x"] = Argument(context_of(thing), hostile.arrays)
    if "action" in out and not hasattr(thing, "mean_time"):  # an alarm takes rows
        out["action"] = Argument(1, hostile.integers)
    if hasattr(thing, "regret") and not {"x", "contexts"}.isdisjoint(out):
        contexts = np.asarray(thing.contexts(5))
        own = {"x": Argument(contexts[0], hostile.arrays), "contexts": Argument(contexts, hostile.arrays)}
        out |= {name: own[name] for name in own if name in out}
    if "X" in out and hasattr(thing, "probabilities_of") and method != "probabilities_of_many":
        out |= {name: Argument(np.arange(4), hostile.ids) for name in ("actions", "ids") if name in out}
    if "X" in out and hasattr(thing, "probabilities_of"):
        out["X"] = Argument(np.stack([context_of(thing)] * 4), hostile.arrays)
    if method in ("retire", "reinstate"):
        out["actions"] = Argument([1], hostile.ids)
    if method == "update_actions" and hasattr(thing, "belief"):
        out["actions"], out["weights"] = Argument([1], hostile.ids), Argument(_row_of_features(thing), hostile.arrays)
    if method == "add_actions":
        if not getattr(getattr(getattr(thing, "belief", None), "leaves", None), "shared", True):
            out["covariance"] = Argument(np.eye(thing.belief.dim)[None], hostile.arrays)
        row = _row_of_features(thing)
        if row is not None:
            out["number"], out["weights"] = Argument(None, hostile.integers), Argument(row, hostile.arrays)
    return out


def _row_of_features(thing: Any) -> np.ndarray | None:
    """What describes one action of an agent; None where nothing does."""
    mixing = getattr(getattr(getattr(thing, "belief", None), "leaves", None), "mixing", None)
    features = getattr(mixing, "features", None)
    if features is None:
        return None
    if np.ndim(features) == 3 or getattr(mixing, "kind", "") == "weights":
        return np.ones((1, *np.shape(features)[1:]))
    return np.ones((1, mixing.dim, mixing.root))


def _refuses(thing: Any, name: str) -> bool:
    """Whether this object refuses every such call: its actions have no weights, its scores are not linear."""
    if name == "update_actions" and hasattr(thing, "belief"):
        return _row_of_features(thing) is None
    return (
        name == "explain"
        and hasattr(thing, "probabilities_of")
        and not hasattr(getattr(thing, "policy", thing), "_linear")
    )
