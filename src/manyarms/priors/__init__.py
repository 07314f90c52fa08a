"""Priors: what is assumed about actions before any data."""
