"""`python -m services.gateway`"""

from services.gateway.app import SERVICE
from services.kit.host import main

main(SERVICE)
