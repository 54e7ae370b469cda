"""The webhooks service's state, and how each event changes it."""

from services.webhooks.domain.fold import evolve
from services.webhooks.domain.state import Delivery, State

__all__ = ["Delivery", "State", "evolve"]
