"""The documentation site: gathers the pages, writes the references from the code, and has them built."""
