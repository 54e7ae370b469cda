"""Reports in the tables: written in columns, read as rows, curves and statistics."""
