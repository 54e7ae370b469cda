"""Who may do what: the one table, and the judge that goes by it (docs/rights.md).

`permissions.py` names what can be permitted, and to which role. `routes.py` and `commands.py` say which of
them a request or a command needs, and of what. `people.py` folds from the log what a judge must know, and
`judge.py` rules.
"""
