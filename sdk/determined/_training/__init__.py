"""Code shared by all trainers: training lengths, the boundaries between windows, counters, settings, user
code.

Nothing here imports a framework; `determined.pytorch`, `.pytorch.deepspeed` and `.keras` do.
"""
