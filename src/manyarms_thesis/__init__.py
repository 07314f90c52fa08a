"""The experiments of the thesis behind manyarms, run and checked against what it states (`manyarms reproduce`).

catalogue   the experiments by name, and how to run one
harness     what they share: spec, runner, results, claims, figures, pages
mets        the chapter on mixed-effect Thompson sampling
dts         diffusion Thompson sampling
sdm         the structured direct method, and off-policy estimates on real logs
pwll        learning policies over large action spaces
es          exponential smoothing, pessimism and certificates

A module of a chapter is an experiment, or is shared by several: agents, learners, claims, figures. A new experiment is
one new module, found by itself.
"""
