"""The launchers under a spelling that one published guide uses. Prefer `determined.launch`."""
