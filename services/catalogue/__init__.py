"""What the log says of everything that people look at: records, and lists of them."""
