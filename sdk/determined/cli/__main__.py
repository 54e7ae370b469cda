"""`python -m determined.cli` is `det`."""

import sys

from determined.cli.cli import main

sys.exit(main())
