"""Was the objective still rising when learning ended? A test on the history.

The objective of an epoch is a mean over all of its rows, so that it moves with the policy and not with the rows. Over the last
part of the history it is regressed on the learning done, the sum of the learning rates so far: a rate that falls to 0 makes every
history flat in epochs at the end, but not in this. It was still rising if

    the slope is above 0 by more than chance explains (one-sided t-test of its residuals, level 0.001), and
    as much learning again, at half that slope, would add more than a tenth of what has been gained.

Steps of noisy gradients make the policy wander, and the objectives of neighbouring epochs resemble each other. A long end is
therefore judged by the means of BLOCKS blocks of epochs, which hardly do: independent noise alone raises the alarm once in a
thousand runs, and noise that wanders like a random walk about three times in a hundred (epoch by epoch it were one in four).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyarms.learning.results import Epoch

LEVEL = 1e-3
LAST = 0.5  # the share of epochs that the end is judged by
LEAST = 5  # epochs for a trend
BLOCKS = 6  # of epochs, that a long end is averaged in
MATERIAL = 0.1
STILL_RISING = (
    "the objective was still rising at the end: the policy is not what this objective and log would give. Learn for more epochs, "
    "or at a larger learning rate"
)


def still_rising(history: Sequence[Epoch]) -> bool:
    """Whether more epochs would have gone further; False where there are too few to tell."""
    last = max(LEAST, round(LAST * len(history)))
    if len(history) < last:
        return False
    done = np.cumsum([one.learning_rate for one in history])
    values = np.array([one.objective for one in history])
    blocks = np.array_split(np.arange(len(history) - last, len(history)), min(BLOCKS, last))
    sizes = np.array([len(block) for block in blocks])
    x, y = (np.array([of[block].mean() for block in blocks]) for of in (done, values))
    x, y = x - np.average(x, weights=sizes), y - np.average(y, weights=sizes)
    spread = float(sizes @ x**2)
    if not spread > 0 or not np.isfinite(values).all():
        return False
    slope = float(sizes @ (x * y)) / spread
    error = float(np.sqrt(sizes @ (y - slope * x) ** 2 / (len(blocks) - 2) / spread))
    from scipy.stats import t  # slow to import

    gained = float(values[-1] - values[0])
    more = 0.5 * slope * float(done[-1])
    return bool(slope > t.isf(LEVEL, len(blocks) - 2) * error and gained > 0 and more > MATERIAL * gained)


__all__ = ["STILL_RISING", "still_rising"]
