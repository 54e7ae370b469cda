"""Submitting an experiment: everything is checked before anything is stored (REST spec, section 3.1)."""

from services.gateway.submit.submit import Checked, Code, check_room, checked, received

__all__ = ["Checked", "Code", "check_room", "checked", "received"]
