"""Log lines of trials and tasks, from sending to paging, and what they say about a failure."""
