"""`python -m worker`"""

from worker.app import main

main()
