"""Code that runs in a template, in the scripts' interpreter: only the standard library and the shim."""
