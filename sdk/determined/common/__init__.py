"""Names that existing client scripts import from here."""
