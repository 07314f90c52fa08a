"""Objectives and estimators by name, as `evaluate`, the command line and configurations write them.

clpi, dr, mips, ...             what is registered in `OBJECTIVES`
ips, cips, es, ...              IPS with the correction that `CORRECTIONS` has under the name
snips, sn-cips, ...             the same, self-normalised
cips:0.01, dr:0.1, clpi:0.1     with a parameter; the parameter of a correction follows its rule where none is given
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.estimators.base import OBJECTIVES, Estimator, Objective
from manyarms.estimators.ips import IPS
from manyarms.weights import CORRECTIONS

SELF_NORMALISED = "sn-"
NEEDED = {"model": "a reward model", "labels": "a cluster for every action", "embeddings": "embeddings of the actions"}


def summaries(*, learnable: bool = False) -> dict[str, str]:
    """Every name with one line on what it is; learnable: those alone that `learn` can climb."""
    learnable = validate.flag("learnable", learnable)
    found = {name: kind.summary for name, kind in OBJECTIVES.items() if kind.learnable or not learnable}
    for name, correction in CORRECTIONS.items():
        found[name] = correction.summary
        if name == "ips":
            found["snips"] = "self-normalised inverse propensity scoring"
    return found


def names(*, learnable: bool = False) -> tuple[str, ...]:
    """All names; learnable: those alone that `learn` can climb."""
    return tuple(summaries(learnable=learnable))


def parameters_of(text: str) -> dict[str, Any]:
    """What goes by a name can be told this, with its defaults (`inspect.Parameter.empty` where it must be told)."""
    return _parameters(text, "objective", Objective)


def _parameters(text: str, argument: str, offered: type[Objective]) -> dict[str, Any]:
    """The same; argument: what an error calls the name. offered: of which kind the names are that it lists."""
    made, parameter = _maker(text.partition(":")[0], argument, offered)
    if isinstance(made, partial):
        return {} if parameter is None else {parameter: None}
    return {key: one.default for key, one in inspect.signature(made).parameters.items()}


def named(text: str, parameters: Mapping[str, object] | None = None, *, argument: str = "objective") -> Objective:
    """The objective or estimator that goes by a name, with its parameters; argument: what an error calls the name.

    >>> named("clpi", {"tau": 0.01})
    <objective clpi (tau=0.01)>
    >>> named("sn-cips:0.1")
    <estimator sn-cips (tau=0.1)>
    """
    argument = validate.instance("argument", argument, str, "what an error calls the name")
    name, colon, number = validate.instance(argument, text, str, "a name, such as 'snips' or 'cips:0.01'").partition(
        ":"
    )
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InvalidInput("parameters", validate.describe(parameters), "parameters by name, as a dictionary")
    made, parameter = _maker(name, argument)
    given, known = dict(parameters or {}), parameters_of(name)
    if colon:
        if parameter is None:
            raise InvalidInput(argument, validate.describe(text), f"no number: {name} has no parameter")
        try:
            given[parameter] = int(number) if number.strip().isdigit() else float(number)
        except ValueError:
            raise InvalidInput(
                argument, validate.describe(text), "a name, or a name and a number such as cips:0.01"
            ) from None
    for key in given:
        if key not in known:
            raise InvalidInput(str(key), "a parameter", f"one of {name}'s: {', '.join(known) or 'it has none'}")
    for key, default in known.items():
        if default is inspect.Parameter.empty and key not in given:
            raise InvalidInput(argument, f"{name!r} without {NEEDED.get(key, key)}", f"{key}=")
    return made(**given)


def as_estimator(one: Estimator | str, parameters: Mapping[str, object] | None = None) -> Estimator:
    """An estimator, or the one that goes by a name; what is only an objective is refused. parameters: where it takes them."""
    found: object = one
    if isinstance(one, str):
        known = _parameters(one, "estimators", Estimator)
        found = named(one, {k: v for k, v in (parameters or {}).items() if k in known}, argument="estimators")
    if isinstance(found, Estimator):
        return found
    if isinstance(found, Objective):
        came = f"{found.name}, an objective and not an estimator of a value"
        raise InvalidInput("estimators", came, "estimators, such as IPS(), DR(model), MIPS(labels), or their names")
    raise InvalidInput("estimators", validate.describe(one), "estimators, such as IPS(), or their names")


def as_estimators(
    estimators: Sequence[Estimator | str], parameters: Mapping[str, object] | None = None
) -> list[Estimator]:
    """A list of estimators or names as estimators, at least one."""
    if isinstance(estimators, str) or not isinstance(estimators, Sequence):
        raise InvalidInput("estimators", validate.describe(estimators), 'a list, such as ["snips", IPS(correction)]')
    if not estimators:
        raise InvalidInput("estimators", "none", "at least one")
    return [as_estimator(one, parameters) for one in estimators]


def _maker(
    name: str, argument: str, offered: type[Objective] = Objective
) -> tuple[Callable[..., Objective], str | None]:
    """What makes the objective of a name, and the parameter that a number stands for."""
    plain = name.strip().lower().replace("_", "-")
    if plain in OBJECTIVES:
        kind = OBJECTIVES[plain]
        return kind, kind.parameter
    normalised = plain == "snips" or plain.startswith(SELF_NORMALISED)
    family = "ips" if plain == "snips" else plain.removeprefix(SELF_NORMALISED)
    if family not in CORRECTIONS or (normalised and CORRECTIONS[family].depends_on_reward):
        listed = [one for one in names() if one not in OBJECTIVES or issubclass(OBJECTIVES[one], offered)]
        raise InvalidInput(argument, validate.describe(name), f"one of {', '.join(listed)}")
    correction = CORRECTIONS[family]
    return partial(_ips, family, normalised), correction.parameter


def _ips(family: str, self_normalised: bool, **parameters: float | None) -> IPS:
    value = next(iter(parameters.values()), None)
    correction = family if value is None else CORRECTIONS[family].make(value)
    return IPS(correction, self_normalised=self_normalised)


__all__ = ["as_estimator", "as_estimators", "named", "names", "parameters_of", "summaries"]
