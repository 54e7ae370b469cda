"""`python -m services.metrics`"""

from services.kit.host import main
from services.metrics.app import SERVICE

main(SERVICE)
