"""Copies of the database in an object store: a lost database continues from the newest one (decision 98)."""
