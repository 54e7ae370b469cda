"""Sign-in with an OpenID Connect provider (docs/decisions/0040)."""
