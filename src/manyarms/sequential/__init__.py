"""Statistics that may be looked at at any time: after every round, and acted on as soon as they say something.

mixture.py               the gamma–exponential mixture that the intervals rest on
confidence_sequence.py   RunningValue, ValueInterval: the value of a policy, on a log that learns and drifts
paired_gain.py           PairedGain: is a challenger better than the live policy?
lift.py                  Lift: treated traffic against a permanent hold-out
propensity_check.py      PropensityCheck: are the logged propensities right?
e_detector.py            EDetector: has a mean fallen? alarms with a stated mean time between false ones
residual_detector.py     ResidualDetector: is a Gaussian model still right?
drift_alarm.py           DriftAlarm: has the world changed? for a whole agent, overall and per action
drift_evidence.py        what a row says of a change, by a model and without
sample_ratio.py          SampleRatio: does traffic come in the shares that it should?
spending.py              spent_alpha: what challenger k may spend

Every object takes one number or many with `update`, and is then the same to the last bit however they were cut into batches;
`spec()` is its state as JSON, `restored(spec)` the object again.
"""

from __future__ import annotations

from manyarms.sequential.confidence_sequence import RunningValue, ValueInterval
from manyarms.sequential.drift_alarm import DriftAlarm
from manyarms.sequential.e_detector import EDetector
from manyarms.sequential.lift import Lift
from manyarms.sequential.paired_gain import PairedGain
from manyarms.sequential.propensity_check import PropensityCheck
from manyarms.sequential.residual_detector import ResidualDetector
from manyarms.sequential.sample_ratio import SampleRatio
from manyarms.sequential.spending import spent_alpha

__all__ = [
    "DriftAlarm", "EDetector", "Lift", "PairedGain", "PropensityCheck", "ResidualDetector", "RunningValue", "SampleRatio",
    "ValueInterval", "spent_alpha",
]  # fmt: skip
