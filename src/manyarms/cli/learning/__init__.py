"""`manyarms learn LOG`: a file of rounds in, a folder with a learned policy and a report out.

inputs.py      the log, and embeddings of actions from a file
choices.py     which objective, on which policy, from which start
pessimism.py   learning by a bound, from which prior, and the certificate
running.py     learn, judge on held-out rows, save
progress.py    how far it is: a bar in a terminal, a line now and then elsewhere
page.py        the closing report and the closing table
"""

from __future__ import annotations

from manyarms.cli.learning.choices import Choices
from manyarms.cli.learning.inputs import Embeddings, Inputs, read_embeddings
from manyarms.cli.learning.pessimism import Pessimism
from manyarms.cli.learning.running import Outcome, run

__all__ = ["Choices", "Embeddings", "Inputs", "Outcome", "Pessimism", "read_embeddings", "run"]
