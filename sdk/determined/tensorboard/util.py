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
    """Insert the rank after the host in a profiler file's name, so that ranks do not overwrite each other.

    `host.xplane.pb` becomes `host#3.xplane.pb`. Other files keep their names.
    """
    path = pathlib.Path(path)
    if not path.name.endswith(_PROFILER_ENDINGS):
        return path
    host, dot, rest = path.name.partition(".")
    return path.with_name(f"{host}#{rank}{dot}{rest}")


def get_pytorch_profiler_file_extension(path: pathlib.Path) -> str | None:
    """Return the extension that marks a file of PyTorch's profiler, or None for other files."""
    return next((end for end in _PROFILER_ENDINGS if pathlib.Path(path).name.endswith(end)), None)


def find_tb_files(base_dir: pathlib.Path) -> list[pathlib.Path]:
    """Return all TensorBoard files below a directory: events and profiler output. Empty if it is missing."""
    files = (path for path in pathlib.Path(base_dir).rglob("*") if path.is_file())
    return [path for path in files if "tfevents" in path.name or path.name.endswith(_PROFILER_ENDINGS)]
