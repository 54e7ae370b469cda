"""What all trainers share: how far to train, the boundaries on the way, counters, settings, the code.

Nothing here imports a framework; `determined.pytorch`, `.pytorch.deepspeed` and `.keras` do.
"""
