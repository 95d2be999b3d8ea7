"""Where the programs of servers come from: this machine, a folder, or versions that dbdyno has installed.

`installed` keeps the versions; `source` is the interface of what provides them, one module for each.
"""
