"""Writes what was decided: sentences, caveats, and how numbers are printed."""
