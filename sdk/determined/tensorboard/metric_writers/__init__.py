"""Event file writers, under the names that scripts import."""
