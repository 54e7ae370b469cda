"""Runs allocations on one host: starts, follows, stops and finds again the processes of tasks."""
