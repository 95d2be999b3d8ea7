"""Where the programs of servers come from: this machine, a folder, or versions that dbdyno has installed.

`installed` keeps the versions; `source` has those that can be installed, and what provides them.
"""
