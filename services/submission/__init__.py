"""Submitting an experiment: everything is checked before anything is stored (REST spec, section 3.1).

This file imports nothing, so that the processes that do `heavy` work need not load the whole gateway.
"""
