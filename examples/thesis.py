"""The thesis's figures, and whether what it states about them holds, from a script of one's own.

    python examples/thesis.py mets-synthetic dts-synthetic      one experiment of each online chapter, some minutes
    SCALE=paper python examples/thesis.py mets-grid             at the sizes of the thesis (hours)

`manyarms reproduce --list` names all experiments, and `manyarms reproduce NAME` runs one from the shell.
"""

import os
import sys

from manyarms_thesis import catalogue

if __name__ == "__main__":  # worker processes import this file
    scale = os.environ.get("SCALE", "quick")
    for name in sys.argv[1:] or ["mets-synthetic"]:
        outcome = catalogue.run(catalogue.find(name), scale, f"out/{name}-{scale}")
        for claim in outcome.claims:
            found = "holds" if claim.holds else "differs"
            print(f"{found:7} {claim.figure:10.3g} {claim.statement} (Section {claim.sections})")
        for figure in sorted((outcome.folder / "figures").glob("*.svg")):
            print(figure)
        print(outcome.folder / "report.html")
