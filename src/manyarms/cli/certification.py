"""`manyarms certify POLICY LOG`: a saved policy, a file of rounds, a certificate, and a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from manyarms._base import storage
from manyarms.certificates import page, text
from manyarms.certificates.certificate import Certificate, Improvement
from manyarms.certificates.certify import certify_with_improvement
from manyarms.certificates.prior import PolicyPrior
from manyarms.cli.evaluation import open_for
from manyarms.errors import InvalidInput
from manyarms.evaluation.saved import Saved, open_policy
from manyarms.logs import Columns, LogSource
from manyarms.logs.data import LoggedData, collect
from manyarms.policies.base import Policy


def run(
    policy: Path | str,
    log: Path | str,
    *,
    out: Path | str,
    delta: float = 0.05,
    prior: Path | str | None = None,
    prior_log: Path | str | None = None,
    logging: Path | str | None = None,
    bound: Sequence[str] | None = None,
    largest_reward: float = 1.0,
    two_sided: bool = True,
    independent: bool = False,
    columns: Columns | None = None,
    drop_missing: bool = False,
) -> tuple[Certificate, Improvement, Path]:
    """Certify the policy in a folder on the rounds in a file; report.html and certificate.json are written to the folder `out`.

    prior: a folder with the policy that the prior stands around; prior_log: the rounds that it was learned from. logging: a
    folder with the policy that wrote the log, for bounds that need its probabilities of all actions.
    """
    saved = open_policy(policy)
    source = _with_logging(open_for(log, saved, columns, drop_missing=drop_missing), logging)
    if prior is None and prior_log is not None:
        raise InvalidInput("--prior-log", str(prior_log), "--prior beside it, the policy that was learned from it")
    around = None if prior is None else _prior(prior, prior_log, saved, columns, drop_missing)
    made, gain = certify_with_improvement(
        saved.policy, source, prior=around, delta=delta, bound=bound, largest_reward=largest_reward, two_sided=two_sided,
        independent=independent,
    )  # fmt: skip
    data = json.dumps(text.as_data(made, gain), indent=1)
    storage.write_text_atomically(Path(out) / "certificate.json", data + "\n")
    name = Path(policy).name or str(policy)
    return made, gain, page.write(made, gain, Path(out) / "report.html", name)


def _prior(
    prior: Path | str, prior_log: Path | str | None, saved: Saved, columns: Columns | None, drop_missing: bool
) -> PolicyPrior:
    known = open_policy(prior)
    # the policy's own encoder: rows are compared by their contexts
    learned_from = None if prior_log is None else open_for(prior_log, saved, columns, drop_missing=drop_missing)
    return PolicyPrior.of(known.policy, learned_from)


def _with_logging(source: LogSource, folder: Path | str | None) -> LogSource:
    if folder is None:
        return source
    logger: Policy = open_policy(folder).policy
    if logger.action_count != source.action_count:
        came = f"a policy over {logger.action_count} actions"
        raise InvalidInput("--logging", came, f"one over the log's {source.action_count}")
    log: LoggedData = collect(source)
    return replace(log, logging=logger)


__all__ = ["run"]
