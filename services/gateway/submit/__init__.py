"""Submitting an experiment: everything is checked before anything is stored (REST spec, section 3.1)."""

from services.gateway.submit.submit import Checked, checked, store_context

__all__ = ["Checked", "checked", "store_context"]
