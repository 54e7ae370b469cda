"""`python -m services.checkpoints`"""

from services.checkpoints.app import SERVICE
from services.kit.host import main

main(SERVICE)
