"""Why a command, a route or a field of Determined 0.25 is not the same here."""

COMMANDS = {
    "auth": "`det user login --provider` signs in with a provider",
    "deploy aws": "hosts are joined by `det deploy local agent-up`",
    "deploy gcp": "hosts are joined by `det deploy local agent-up`",
    "deploy gke-experimental": "hosts are joined by `det deploy local agent-up`",
    "dev bindings": "use `det dev curl`, or a `Session`",
    "experiment create": "ports of experiments are not published",
    "oauth": "it belonged to the enterprise edition",
}
"""By the command, or its first words."""

OUR_FIELDS = {"environment.warm"}
"""What the configuration has beyond 0.25."""
OUR_SEARCHERS = {"tpe", "pbt"}
