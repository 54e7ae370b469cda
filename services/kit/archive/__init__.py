"""What was moved out of CONTROL, and how it is read: segments in a directory or bucket, chained."""
