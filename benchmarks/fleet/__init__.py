"""A fleet of load generators on three hosts, which are network namespaces of this machine.

`hosts` makes the hosts, and `scene` servers on a fourth one; `faults` breaks them and makes the table of
docs/fleet.md; `scaling` measures what merging and carrying records costs.
"""
