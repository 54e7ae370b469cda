"""Tasks and their allocations: commands, notebooks, shells, TensorBoards, and the proxy to their pages."""
