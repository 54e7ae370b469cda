"""One table of columns per list: what a column means, and how it is stored and shown.

To add a column, add an entry to `experiments.COLUMNS` or `trials.COLUMNS`. Filters, sort orders, JSON, the
OpenAPI document and the list of columns for pages are derived from the entries. A column that is also stored
in the tables, for the lists of 0.25, needs a revision in `migrations/`.
"""
