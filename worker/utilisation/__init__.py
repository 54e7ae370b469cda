"""What the processes of trials use of this host: CPU, memory and GPUs, sampled into the trials' metrics.

Nobody's training waits for it, nothing is decided by it, and what cannot be seen or told is left out.
"""

from worker.utilisation.reporting import watch

__all__ = ["watch"]
