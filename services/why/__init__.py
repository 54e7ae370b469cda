"""Explains why something is in its state: the chain of causes, read from the log.

`event_descriptions` describes each event, `links` finds the causes of each event, `chain` walks back from the
present, and `reader` fetches the required parts of the log. All but the reader are pure.
"""
