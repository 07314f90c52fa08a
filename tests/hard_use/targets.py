"""What is called: every public callable with correct arguments, and the methods of agents, policies, worlds and logs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hard_use import hostile, public
from hard_use.material import BEHIND_KWARGS, Argument, D, Material, arguments_of, reason_not_to_call

# what others implement and the library calls, with arguments that it has checked
PROTOCOL_METHODS = {
    "arrays",
    "spec",
    "rows",
    "expectation",
    "copy",
    "restore",
    "require",
    "with_notes",
    "support_block",
}
CHANGING = {"observe", "add_actions", "retire"}


@dataclass
class Target:
    """Something to call: where it came from, its arguments, and what it is called on."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Argument]
    extra: dict[str, Any] = field(default_factory=dict)
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
        if missing and name.rpartition(".")[2] in made_here and dataclasses.is_dataclass(value):
            found.left_out[name] = "a result"
        elif missing:
            found.uncovered[name] = ", ".join(missing)
        elif arguments:
            found.calls.append(Target(name, value, arguments, BEHIND_KWARGS.get(name.rpartition(".")[2], {})))
        if inspect.isclass(value) and not missing:
            found.calls += list(_class_methods(material, name, value))
    found.calls += list(_methods(material, found))
    return found


def _class_methods(material: Material, name: str, value: type) -> Iterator[Target]:
    """Other ways to make one: `MixedEffectPrior.isotropic`, `Prior.of`."""
    for method, bound in public.methods_of(value).items():
        if inspect.ismethod(bound) and method not in PROTOCOL_METHODS:
            arguments, missing = arguments_of(material, f"{name}.{method}", bound)
            if arguments and not missing and not reason_not_to_call(f"{name}.{method}"):
                yield Target(f"{name}.{method}", bound, arguments)


def is_agent_maker(value: Any) -> bool:
    """A function that gives an agent."""
    return inspect.isfunction(value) and str(inspect.signature(value).return_annotation).strip("'") == "Agent"


def call_correctly(target: Target) -> Any:
    """The call with nothing replaced."""
    return target.function(**{name: a.value for name, a in target.arguments.items()}, **target.extra)


def _methods(material: Material, found: Targets) -> Iterator[Target]:
    owners: list[tuple[str, Callable[[], Any], bool]] = [("LoggedData", lambda: material.log, False)]
    for target in list(found.calls):
        value = target.function
        if is_agent_maker(value) and target.name != "load":
            owners.append((f"{target.name}()", lambda t=target: call_correctly(t), True))
            if "factored" in target.arguments:
                owners.append((f"{target.name}(factored)", lambda t=target: _with(t, factored=True), True))
        elif inspect.isclass(value) and (hasattr(value, "probabilities_of") or hasattr(value, "regret")):
            owners.append((target.name, lambda t=target: call_correctly(t), False))
    for owner, maker, stateful in owners:
        try:
            thing = maker()
        except Exception:  # reported by `broken`
            continue
        for name, method in public.methods_of(type(thing)).items():
            if name in PROTOCOL_METHODS or not inspect.isfunction(method):
                continue
            arguments, missing = arguments_of(material, f"{type(thing).__name__}.{name}", method)
            if missing or not arguments:
                continue
            arguments = _fitted(thing, name, arguments)
            yield Target(f"{owner}.{name}", method, arguments, maker=maker, stateful=stateful, changes=name in CHANGING)


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
    if "action" in out:
        out["action"] = Argument(1, hostile.integers)
    if "x" in out and hasattr(thing, "regret"):
        contexts = thing.contexts(5)
        out["x"] = Argument(np.asarray(contexts[0]), hostile.arrays)
        if "contexts" in out:
            out["contexts"] = Argument(np.asarray(contexts), hostile.arrays)
    if "X" in out and hasattr(thing, "probabilities_of"):
        out["X"] = Argument(np.stack([context_of(thing)] * 4), hostile.arrays)
        out = {
            name: a if name not in ("actions", "ids") else Argument(np.arange(4), hostile.ids)
            for name, a in out.items()
        }
    if method == "retire":
        out["actions"] = Argument([1], hostile.ids)
    if method == "add_actions":
        mixing = getattr(getattr(getattr(thing, "belief", None), "leaves", None), "mixing", None)
        features = getattr(mixing, "features", None)
        if features is not None:
            row = np.ones((1, *np.shape(features)[1:]))
            row = (
                row
                if np.ndim(features) == 3 or getattr(mixing, "kind", "") == "weights"
                else np.ones((1, mixing.dim, mixing.root))
            )
            out["number"], out["weights"] = Argument(None, hostile.integers), Argument(row, hostile.arrays)
    return out
