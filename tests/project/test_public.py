"""The face of the package: what is exported, and what its metadata promises."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
import types
from importlib import metadata, resources
from pathlib import Path

import numpy as np
import pytest

import manyarms


def test_every_exported_name_is_there() -> None:
    # that they are sorted is lint's business (ruff, RUF022: constants, classes, functions)
    assert len(set(manyarms.__all__)) == len(manyarms.__all__)
    missing = [name for name in manyarms.__all__ if not hasattr(manyarms, name)]
    assert not missing


def test_everything_public_in_the_namespace_is_exported() -> None:
    """Nothing that a user meets after `ma.` is there by accident; submodules come with any package, so they may."""
    public = {
        name
        for name, value in vars(manyarms).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
    }
    assert public <= set(manyarms.__all__)


@pytest.mark.parametrize("name", [name for name in manyarms.__all__ if not name.startswith("__")])
def test_every_exported_name_is_explained(name: str) -> None:
    value = getattr(manyarms, name)
    assert inspect.getdoc(value), f"manyarms.{name} has no docstring"
    if inspect.isclass(value):
        assert value.__doc__, f"manyarms.{name} only inherits a docstring"
        assert not value.__doc__.startswith(f"{name}("), f"manyarms.{name} has only the signature dataclasses make"


def test_a_policy_is_learned_in_one_line() -> None:
    """As README shows it: from a log and embeddings to decisions, everything after `ma.`."""
    world = manyarms.worlds.CatalogueWorld(40, 4, k0=10, rank=2, segments=None, click_rate=0.1, seed=0)
    log, embeddings, seen = world.log(rounds=300, seed=1), world.embeddings, [2, 3]
    ma = manyarms
    result = ma.learn(log, ma.SoftmaxPolicy(actions=embeddings), ma.cLPI(tau=0.01), seed=0)
    chosen = result.policy.decide(world.contexts(1)[0], k=10, exclude=seen)
    assert len(set(np.asarray(chosen).tolist()) - set(seen)) == 10
    assert len(result.history) == 100 and result.certificate is None  # as many passes as a log of 300 rows gets


def test_a_policy_is_learned_with_its_certificate() -> None:
    """Everything after `ma.`: learned by a bound that adapts alpha and lambda, certified by one that declares them."""
    ma, rng = manyarms, np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    logging = ma.SoftmaxPolicy(np.zeros((4, 3)))
    actions = logging.sample(X, rng)
    rewards = (X[:, 0] > 0) == (actions == 0)
    log = ma.LoggedData(
        X, actions, rewards.astype(float), 4, propensities=logging.probabilities_of(X, actions), logging=logging
    )
    start = ma.GaussianPolicy(np.zeros((4, 3)))
    result = ma.learn(
        log, start, ma.PACBayes(ma.estimators.ES(alpha="adaptive"), delta=0.05), epochs=2, learning_rate=0.1, seed=0
    )
    found = result.certificate
    assert isinstance(found, ma.certificates.Certificate) and 0 <= found.lower <= found.upper <= 1
    assert found.lower == pytest.approx(max(0.0, found.value - sum(found.terms.values())))
    again = ma.certify(result.policy, log, prior=ma.certificates.PolicyPrior.of(start), delta=0.05)
    assert (again.lower, again.upper) == (found.lower, found.upper)
    gain = ma.certificates.improvement(result.policy, log, prior=ma.certificates.PolicyPrior.of(start), delta=0.05)
    assert gain.certified == (gain.lower > 0)


WITHOUT_TORCH = """
import pydoc, sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, NoTorch())
import numpy as np
import manyarms as ma
missing = [name for name in ma.__all__ if not hasattr(ma, name)]
assert not missing, missing
assert "thousands to millions of actions" in pydoc.plain(pydoc.render_doc(ma))
assert "a policy" in pydoc.plain(pydoc.render_doc(ma.learn)).lower()
assert ma.PACBayes(ma.estimators.ES("adaptive")) and ma.cLPI(tau=0.1) and not hasattr(ma.learning, "TorchEncoder")
log = ma.LoggedData(np.ones((2, 1)), np.array([0, 1]), np.ones(2), 2, np.full(2, 0.5))
try:
    ma.learn(log, ma.SoftmaxPolicy(np.zeros((2, 1))), ma.cLPI())
except ma.errors.MissingExtra as error:
    print(error)
try:
    ma.lern
except AttributeError as error:
    print(error)
"""


def test_without_torch_everything_is_there_and_only_learning_is_refused() -> None:
    """help(ma) and hasattr work without any extra; the refusal names what to install."""
    answer = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=True, timeout=600
    )
    missing, wrong = answer.stdout.splitlines()
    assert "pip install 'manyarms[torch]'" in missing
    assert "no attribute 'lern'" in wrong


def test_a_hall_with_few_doors() -> None:
    """Counted over everything that getattr answers after a plain import: flat names, and topics apart from them."""
    answered = {name for name in {*dir(manyarms), *manyarms._NAMES, *manyarms._TOPICS} if not name.startswith("_")}
    known = {name for name in answered if hasattr(manyarms, name)}
    flat = {name for name in known if not isinstance(getattr(manyarms, name), types.ModuleType)}
    assert len(flat) <= 45 and len(flat | set(manyarms._TOPICS)) <= 59
    assert flat | set(manyarms._TOPICS) == set(manyarms.__all__)
    readme = (Path(__file__).resolve().parents[2] / "README.md").read_text()
    assert not [name for name in flat if f"ma.{name}" not in readme], "a flat name is one that the README shows"


def _topic_exports() -> dict[str, dict[str, object]]:
    return {
        topic: {name: getattr(module, name) for name in module.__all__}
        for topic in manyarms._TOPICS
        for module in [getattr(manyarms, topic)]
    }


def test_no_class_name_has_two_owners() -> None:
    owners: dict[str, set[str]] = {}
    for exports in _topic_exports().values():
        for name, value in exports.items():
            if inspect.isclass(value):
                owners.setdefault(name, set()).add(f"{value.__module__}.{value.__qualname__}")
    for module in _modules():
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__ == module.__name__ and name in owners:
                owners[name].add(f"{value.__module__}.{value.__qualname__}")
    assert not {name: found for name, found in owners.items() if len(found) > 1}


def _modules() -> list[types.ModuleType]:
    """All modules of the library that can be imported here."""
    found = []
    for one in pkgutil.walk_packages(manyarms.__path__, "manyarms."):
        if one.name.endswith("__main__"):
            continue
        try:
            found.append(importlib.import_module(one.name))
        except ModuleNotFoundError as error:
            # it comes with builds of torch for a GPU
            if error.name is None or error.name.partition(".")[0] != "triton":
                raise
    return found


def test_what_a_topic_exports_is_explained_and_its_signature_explicit() -> None:
    """No **kwargs that an editor cannot complete, in anything public."""
    hidden = []
    for topic, exports in _topic_exports().items():
        for name, value in exports.items():
            if not (inspect.isclass(value) or inspect.isfunction(value)) or getattr(value, "_is_protocol", False):
                continue
            assert inspect.getdoc(value), f"manyarms.{topic}.{name} has no docstring"
            try:
                parameters = inspect.signature(value).parameters.values()
            except (TypeError, ValueError):
                continue
            if any(one.kind is one.VAR_KEYWORD and "Unpack[" not in str(one.annotation) for one in parameters):
                hidden.append(f"{topic}.{name}")
    assert not hidden


def test_the_metadata_is_sound() -> None:
    described = metadata.metadata("manyarms")
    assert described["Name"] == "manyarms"
    assert described["Version"] == manyarms.__version__
    assert described["License-Expression"] == "Apache-2.0"
    assert described["Requires-Python"] == ">=3.11"
    assert described["Summary"]
    assert described["Description-Content-Type"] == "text/markdown"
    assert {"all", "bench", "experiments", "faiss", "frames", "lint", "test", "torch"} <= set(
        described.get_all("Provides-Extra") or []
    )
    always = {
        requirement.split(">")[0].strip()
        for requirement in metadata.requires("manyarms") or []
        if "extra ==" not in requirement
    }
    assert always == {"narwhals", "numpy", "rich", "scipy", "typer"}


def test_the_command_is_installed() -> None:
    (command,) = metadata.entry_points(group="console_scripts", name="manyarms")
    assert command.value == "manyarms.cli.app:main"
    assert callable(command.load())


def test_types_are_shipped() -> None:
    assert resources.files("manyarms").joinpath("py.typed").is_file()
