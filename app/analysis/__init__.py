"""Pure functions on rows of the ledger: no database, no clock, no web."""
