"""How a script speaks with the cluster: one protocol, several carriers."""
