"""What runs in a template, in the interpreter of the scripts: standard library only, and the shim."""
