"""Measures the precision per minute: the half width of the 95 % interval after 10 and 20 minutes."""
