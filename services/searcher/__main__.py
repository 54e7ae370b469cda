"""`python -m services.searcher`"""

from services.kit.host import main
from services.searcher.app import SERVICE

main(SERVICE)
