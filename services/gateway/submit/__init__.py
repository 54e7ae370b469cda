"""Submitting an experiment: everything is checked before anything is stored (REST spec, section 3.1)."""

from services.gateway.submit.submit import Submitted, store_context, submit

__all__ = ["Submitted", "store_context", "submit"]
