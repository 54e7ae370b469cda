"""HTTP as it comes over the wire, whatever is asked: see README.md."""
