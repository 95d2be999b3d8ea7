"""One module for each kind of server, and the processes and containers that they start."""
