"""Names of TensorBoard files."""

import pathlib

_PROFILER_ENDINGS = (
    ".input_pipeline.pb",
    ".memory_profile.json.gz",
    ".tensorflow_stats.pb",
    ".xplane.pb",
    ".kernel_stats.pb",
    ".overview_page.pb",
    ".pt.trace.json.gz",
    ".pt.trace.json",
    ".trace.json.gz",
    ".trace.json",
)


def get_rank_aware_path(path: pathlib.Path, rank: int) -> pathlib.Path:
    """Put the rank behind the host in the name of a profiler's file, so that ranks keep apart.

    `host.xplane.pb` becomes `host#3.xplane.pb`; other files keep their name.
    """
    path = pathlib.Path(path)
    if not path.name.endswith(_PROFILER_ENDINGS):
        return path
    host, dot, rest = path.name.partition(".")
    return path.with_name(f"{host}#{rank}{dot}{rest}")
