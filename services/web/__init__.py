"""HTTP on the wire, independent of what is requested; see README.md."""
