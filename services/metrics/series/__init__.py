"""Long series of reports in columns: stored compactly and reduced for charts. Pure, on numpy arrays."""
