"""The folded state behind the gateway's answers: records, and lists of them."""
