"""Records as JSON: names in lowerCamelCase, defaults written out (REST spec, section 1)."""
