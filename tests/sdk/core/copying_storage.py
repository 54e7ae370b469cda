"""A directory that behaves like an object store, and can fail."""

import pathlib
import shutil
import tempfile
from collections.abc import Callable

from determined.storage import SharedFSStorageManager


class Copying(SharedFSStorageManager):
    """Scratch directories lie beside the store; `fails` may raise after the bytes of an upload."""

    def __init__(self, base, fails: Callable[[], None] = lambda: None):
        super().__init__(base)
        self.fails = fails

    def store_path_is_direct_access(self):
        return False

    def pre_store_path(self, dst):
        return pathlib.Path(tempfile.mkdtemp(prefix=f"{self._base.name}-scratch-", dir=self._base.parent))

    def post_store_path(self, src, dst, paths=None):
        self.upload(src, dst, paths)
        shutil.rmtree(src)

    def upload(self, src, dst, paths=None, **how):
        super().upload(src, dst, paths, **how)
        if paths is None or list(paths):
            self.fails()

    def discard(self, src, dst):
        self.delete_quietly(dst)
        shutil.rmtree(src, ignore_errors=True)
