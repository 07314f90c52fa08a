"""The settings of a service as keyword arguments: the fields of `Config`, each as it may be given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict


class Options(TypedDict, total=False):
    """What `create_app` and `read_config` take beside a configuration; `manyarms.service.config.SETTINGS` says what each is.

    None leaves a setting as it is. Times are seconds, or texts with a unit.
    """

    store: str | None
    agent: str | Path | None
    agent_name: str | None
    agents_folder: str | Path | None
    aggregate: str | None
    default: float | None
    wait: float | str | None
    reward_range: Sequence[float] | None
    host: str | None
    port: int | None
    hosts: Sequence[str] | None
    tls_certificate: str | Path | None
    tls_key: str | Path | None
    threads: int | None
    shutdown: float | str | None
    dashboard: bool | None
    keys: str | Path | None
    most_body: int | None
    rate: float | None
    burst: int | None
    most_batch: int | None
    most_waiting: int | None
    gather: float | None
    fold_every: float | str | None
    snapshot_every: int | None
    learner: bool | None
    propensities: bool | None
    propensity_share: float | None
    without_store: str | None
    log_format: str | None
    log_level: str | None
    log_requests: bool | None
    log_contexts: bool | None
    keep: float | str | None
    keep_every: float | str | None
    backups: str | Path | None
    edge: str | Path | None
    edge_every: float | str | None
    edge_keep: float | str | None
    edge_draws: int | None
    edge_epsilon: float | None
    edge_bytes: int | None
    personalizer: bool | None


__all__ = ["Options"]
