"""The door for people and scripts: REST, who may ask, and a catalogue of everything that can be listed."""
