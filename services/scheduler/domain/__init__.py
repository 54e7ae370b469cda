"""The scheduler's state: pools, workers, jobs and allocations, and how each event changes them."""

from services.scheduler.domain.fold import evolve
from services.scheduler.domain.records import Allocation, Job, Member, Pool, Worker
from services.scheduler.domain.state import State

__all__ = ["Allocation", "Job", "Member", "Pool", "State", "Worker", "evolve"]
