"""The experiments of the thesis."""
