"""Reward models learned from logs: linear, Bayesian (DM, sDM), and the priors that fit a log."""
