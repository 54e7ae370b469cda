"""Who may do what: one table of rights, and the judge that applies it (docs/rights.md).

`permissions.py` lists the permissions and the roles that grant them. `routes.py` and `commands.py` say which
permission a request or command needs, and on what. `people.py` folds what a judge must know from the log, and
`judge.py` decides.
"""
