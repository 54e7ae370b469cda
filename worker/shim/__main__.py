"""`python -I -S worker/shim/__main__.py RUN_DIR`; see the package docstring."""

import os
import sys

if __name__ == "__main__":
    # At the end of the path: nothing beside the package may shadow the standard library.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))
    from worker.shim.life import main

    sys.exit(main(os.path.abspath(sys.argv[1])))
