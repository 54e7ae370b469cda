"""`python -m services.scheduler`"""

from services.kit.host import main
from services.scheduler.app import SERVICE

main(SERVICE)
