"""The `det` command: one file per noun, each with a table of its verbs."""
