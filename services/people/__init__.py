"""Users, their credentials and rights, and the workspaces and projects they use."""
