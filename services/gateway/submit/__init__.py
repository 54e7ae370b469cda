"""Submitting an experiment: everything is checked before anything is stored (REST spec, section 3.1).

Imports nothing: the processes that do `heavy` work shall not load the whole gateway for it.
"""
