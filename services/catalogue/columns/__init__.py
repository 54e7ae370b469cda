"""One table of columns for each list: what a row of it is, how it is read from tables, how it is shown.

To add a column is to add one row to `experiments.COLUMNS` or `trials.COLUMNS`: filters, orders, JSON, the
OpenAPI document and the list of columns that pages ask for are made of the rows. One that is to be kept in
the tables too, for the lists of 0.25, needs a revision in `migrations/` besides.
"""
