"""What the scheduler knows: pools, workers, jobs, allocations; and how each event changes that."""

from services.scheduler.domain.fold import evolve
from services.scheduler.domain.records import Allocation, Job, Member, Pool, Worker
from services.scheduler.domain.state import State

__all__ = ["Allocation", "Job", "Member", "Pool", "State", "Worker", "evolve"]
