"""The HTTP server with all routes, and the index that finds the route of a request."""
