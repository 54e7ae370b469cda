"""Communication between scripts and the cluster: one protocol with several transports."""
