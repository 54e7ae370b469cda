"""What the scheduler knows: workers, allocations, the queue; and how each event changes that."""

from services.scheduler.domain.fold import evolve
from services.scheduler.domain.state import Allocation, Member, State, Worker

__all__ = ["Allocation", "Member", "State", "Worker", "evolve"]
