"""Launchers: from one command per node to one process per slot (launchers spec)."""
