"""Samples the CPU, memory and GPU use of trials' processes into the trials' metrics.

Training never waits for this and nothing depends on it. What cannot be measured or reported is left out.
"""

from worker.utilisation.reporting import watch

__all__ = ["watch"]
