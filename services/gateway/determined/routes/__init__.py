"""One file per REST noun. Each has a `router`."""
