"""The demonstration, `manyarms demo`: the package's main jobs, a part each.

demo          the parts in order, and the report
catalogue     Thompson sampling over a catalogue of 100,000 items
diffusion     a prior pre-trained on item embeddings
learning      policies learned from a log
safe          what can be promised of a learned policy
parts         what the parts share
"""
