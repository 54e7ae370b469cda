"""Code shared by all trainers: training lengths, boundaries, counters, settings, user code.

Nothing here imports a framework; `determined.pytorch`, `.pytorch.deepspeed` and `.keras` do.
"""
