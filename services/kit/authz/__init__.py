"""Who may do what: one table of rights, and the judge that applies it (docs/rights.md).

`permissions.py` lists the permissions and the roles that grant them. Each route declares which one a request
needs, and on what (`needs.py`); `commands.py` says it of commands. `people.py` folds what the check must know
from the log, and `access_check.py` decides.
"""
