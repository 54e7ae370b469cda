"""Registers the tables of the metrics service."""

from __future__ import annotations

import sqlalchemy as sa

TABLES = sa.MetaData()
