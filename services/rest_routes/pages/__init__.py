"""The web UI, the live channel that it listens to, and the OpenAPI document with a page to read it."""
