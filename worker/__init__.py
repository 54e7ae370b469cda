"""Runs allocations on one host: starts, follows and stops the processes of tasks, and finds them again."""
