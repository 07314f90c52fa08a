"""Internal: the catalogue of actions, exchangeable units, blocks, and the search over unplayed actions."""
