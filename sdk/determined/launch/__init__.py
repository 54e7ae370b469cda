"""Launchers: turn one command per node into one process per slot (launchers spec)."""
