"""Server variables: their differences between variants, and the tables of names and defaults by version."""
