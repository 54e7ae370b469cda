"""The cluster: agents, resource pools, the job queue, use, health and metrics."""
