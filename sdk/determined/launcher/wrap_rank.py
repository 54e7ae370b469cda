"""`determined.launch.wrap_rank` under another name."""

import sys

from determined.launch.wrap_rank import main

if __name__ == "__main__":
    sys.exit(main())
