"""Regret, suboptimality and PAC-Bayes bounds as formulas."""
