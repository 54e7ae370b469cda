"""The launchers under a name that one published guide spells so; use `determined.launch`."""
