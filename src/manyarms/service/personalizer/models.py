"""model, logs and configurations/policy: the agent as a file, started afresh; what is logged, and deleted."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import manyarms as ma
from manyarms.agents import Agent
from manyarms.beliefs.joint import JointBelief
from manyarms.errors import ManyArmsError
from manyarms.live import Live
from manyarms.live.agent_arm import AgentView
from manyarms.live.deployment import BASELINE
from manyarms.service.personalizer.agent import EXPLORATION, NAME, default_agent
from manyarms.service.personalizer.bodies import POLICY, an_object
from manyarms.service.personalizer.configuration import Configuration
from manyarms.service.personalizer.durations import text_of
from manyarms.service.personalizer.errors import PersonalizerError
from manyarms.service.personalizer.explaining import learns_hashed

LONGEST_NAME, LONGEST_ARGUMENTS = 256, 1024
OURS = re.compile(rf"{NAME}(-\d+)?")  # what fresh agents are called


class Models:
    """The agent that decides, as Personalizer's `model` and `policy`."""

    def __init__(self, live: Live, configuration: Configuration) -> None:
        self._live, self._configuration = live, configuration

    # ---- the model

    def file(self) -> bytes:
        """The agent that decides, saved with its ids and its encoder, as a zip file: unpacked, `manyarms.load` reads it."""
        view = self._live.view
        arm = view.arms[self._configuration.arm]
        if not isinstance(arm, AgentView):
            raise PersonalizerError(404, "ResourceNotFound", "what decides here is a policy, not an agent that learns")
        with tempfile.TemporaryDirectory() as folder:
            bare, whole = Path(folder) / "bare", Path(folder) / "agent"
            arm.snapshot.save(bare)
            agent: Agent = ma.load(bare)
            named = Agent(agent.belief, agent.decision, 0, agent.name, view.schema.catalogue, view.schema.encoder)
            named._draws = agent._draws
            named.save(whole)
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
                for path in sorted(whole.rglob("*")):
                    if path.is_file():
                        file.write(path, path.relative_to(whole).as_posix())
            return packed.getvalue()

    def properties(self) -> dict[str, Any]:
        """When the store began, and when it learned last."""
        read = self._live.database.read
        origin = read("SELECT at FROM snapshots WHERE origin = 1 ORDER BY version LIMIT 1")
        chunk = read("SELECT at FROM chunks ORDER BY version DESC LIMIT 1")
        made = origin[0][0] if origin else None
        last = chunk[0][0] if chunk else made
        return {
            "creationTime": None if made is None else text_of(made),
            "lastModifiedTime": None if last is None else text_of(last),
        }

    def reset(self) -> None:
        """A fresh agent takes over, under another name. The one before it stays in the store, and can be rolled back to."""
        live = self._live
        view = live.view
        before = self._configuration.arm
        old = view.arms[before]
        if not learns_hashed(view) or not isinstance(old, AgentView):
            text = "the agent here was brought by its owner: load a fresh one (POST /v1/agents), and promote it"
            raise PersonalizerError(400, "OperationNotAllowed", text)
        assert view.learning is not None and view.schema.catalogue is not None
        dim, _ = view.learning
        share = self._configuration.exploration
        fresh = default_agent(
            dim=dim, catalogue=list(view.schema.catalogue), exploration=EXPLORATION if share is None else share
        )
        name = _next_name(sorted(view.arms))
        live.add_arm(name, fresh)
        now = live.deployment
        if BASELINE in now.shares:
            live.deploy({BASELINE: 1.0}, shadows=[name])
        else:
            live.deploy({name: 1.0}, holdout=now.holdout, holdout_arm=now.holdout_arm)
        for other in sorted(view.arms):
            if other != before and OURS.fullmatch(other):  # two fresh starts ago
                with suppress(ManyArmsError):  # it has a part in the deployment
                    live.remove_arm(other)

    # ---- learning settings

    def policy(self) -> dict[str, str]:
        """The learning settings, as a line of options."""
        arm = self._live.view.arms[self._configuration.arm]
        return {"name": self._configuration.arm, "arguments": _arguments(arm)}

    def check_policy(self, told: Any) -> dict[str, str]:
        """Learning settings that are put in the place of these: the same ones are fine, others are refused."""
        body = an_object(told, POLICY)
        for name, longest in (("name", LONGEST_NAME), ("arguments", LONGEST_ARGUMENTS)):
            value = body.get(name)
            if not isinstance(value, str) or not 1 <= len(value) <= longest:
                raise PersonalizerError(400, POLICY, f"{name} is required, a text of 1 to {longest:,} characters", name)
        now = self.policy()
        if body["arguments"] != now["arguments"]:
            text = (
                "learning settings belong to the agent, and are not Vowpal Wabbit's: load another agent (POST /v1/agents), let "
                f"it challenge this one, or promote it. These are: {now['arguments']}"
            )
            raise PersonalizerError(400, "InvalidPolicyConfiguration", text, "arguments")
        return now

    # ---- the log

    def log_properties(self) -> dict[str, Any]:
        """The times of the first and the last event in the log."""
        [(first, last)] = self._live.database.read("SELECT MIN(at), MAX(at) FROM decisions WHERE erased = 0")
        if first is None:
            raise PersonalizerError(404, "LogsPropertiesNotFound", "nothing is logged")
        return {"dateRange": {"from": text_of(first), "to": text_of(last)}}

    def delete_logs(self) -> None:
        """Delete what has been learned from; the agent stays as it is. Events that still wait for their reward stay, too."""
        self._live.sync()
        self._live.snapshot()
        self._live.compact(0.0)


def _next_name(names: list[str]) -> str:
    number = 2
    while f"{NAME}-{number}" in names:
        number += 1
    return f"{NAME}-{number}"


def _arguments(arm: Any) -> str:
    if not isinstance(arm, AgentView):
        return "--policy"
    decision, belief = arm.snapshot.decision, arm.snapshot.belief
    options = {"belief": belief.kind, "likelihood": belief.likelihood.kind, **belief.likelihood.options()}
    if isinstance(belief, JointBelief):
        options["dim"] = belief.dim
    told = {**options, "decision": decision.kind, **decision.options()}
    return " ".join(f"--{name} {value}" for name, value in told.items() if not isinstance(value, dict))[
        :LONGEST_ARGUMENTS
    ]


__all__ = ["Models"]
