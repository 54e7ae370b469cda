"""Where the tables of the metrics service are listed."""

from __future__ import annotations

import sqlalchemy as sa

TABLES = sa.MetaData()
