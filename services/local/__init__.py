"""A whole cluster on one machine without containers: broker, services and workers under one supervisor."""
