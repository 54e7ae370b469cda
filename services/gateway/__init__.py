"""The gateway: the REST API, access control, and a catalogue of everything that can be listed."""
