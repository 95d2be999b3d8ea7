"""Designs a run before it begins: its number of blocks, how its variants alternate, what it will cost."""
