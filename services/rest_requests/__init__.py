"""What every route of the REST API is given: who asks, what they may do, the body and the backend."""
