"""Long series of reports in columns: kept small, cut to what a chart can show. Pure, on numpy arrays."""
