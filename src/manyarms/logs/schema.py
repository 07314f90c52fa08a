"""Schema: how the rows of a table become contexts and actions. It travels with whatever was learned from a log."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manyarms._base import files, storage, validate
from manyarms._base.nested import prefixed, under
from manyarms._base.tables import Shown
from manyarms._base.typing import AnyArray
from manyarms.logs.actions import Actions
from manyarms.logs.data import LogSource
from manyarms.logs.encoding import TableEncoder

ENCODER, ACTIONS = "encoder", "actions"


@dataclass(frozen=True, repr=False)
class Schema(Shown):
    """The context encoder and the action ids of a log; None where the log has vectors and numbered actions already.

    Saved beside a policy, as `folder/encoder` and `folder/actions`, it turns another file into the policy's contexts and actions,
    whatever the order of columns and ids there:

        policy.save("policy", log)
        schema = Schema.load("policy")
        open_log("later.csv", encoder=schema.encoder, catalogue=schema.catalogue)
    """

    encoder: TableEncoder | None = None
    catalogue: Actions | None = None

    def __post_init__(self) -> None:
        if self.encoder is not None:
            validate.instance("encoder", self.encoder, TableEncoder, "a TableEncoder, or None")
        if self.catalogue is not None:
            validate.instance("catalogue", self.catalogue, Actions, "Actions, the ids of a catalogue, or None")

    def state(self) -> tuple[dict[str, storage.JSON], dict[str, AnyArray]]:
        """A JSON part and arrays that give it back: a part of what is saved for a policy or an agent."""
        spec: dict[str, storage.JSON] = {"encoder": None, "catalogue": self.catalogue is not None}
        arrays: dict[str, AnyArray] = {}
        if self.encoder is not None:
            spec["encoder"], made = self.encoder.state()
            arrays |= prefixed("encoder/", made)
        if self.catalogue is not None:
            arrays |= prefixed("catalogue/", self.catalogue.arrays())
        return spec, arrays

    @classmethod
    def from_state(cls, spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Schema:
        """The schema that `state` came from."""
        encoder, catalogue = under("encoder/", arrays), under("catalogue/", arrays)
        return cls(
            None if spec["encoder"] is None else TableEncoder.from_state(spec["encoder"], encoder),
            Actions.from_arrays(catalogue) if spec["catalogue"] else None,
        )

    @classmethod
    def of(cls, log: LogSource) -> Schema:
        """The schema of a log; of a source that knows of neither it is empty."""
        return cls(getattr(log, "encoder", None), getattr(log, "catalogue", None))

    def save(self, folder: Path | str) -> None:
        """Write what there is to the folders `encoder` and `actions` inside `folder`."""
        inside = files.as_path("folder", folder)
        if self.encoder is not None:
            self.encoder.save(inside / ENCODER)
        if self.catalogue is not None:
            self.catalogue.save(inside / ACTIONS)

    @classmethod
    def load(cls, folder: Path | str) -> Schema:
        """What is beside a saved policy or agent; empty where nothing is."""
        inside = files.as_path("folder", folder)
        encoder, actions = inside / ENCODER, inside / ACTIONS
        return cls(
            storage.load(encoder, TableEncoder) if files.present(encoder) else None,
            storage.load(actions, Actions) if files.present(actions) else None,
        )


__all__ = ["Schema"]
