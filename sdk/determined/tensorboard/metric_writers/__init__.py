"""Writers of event files, under the names that scripts import."""
