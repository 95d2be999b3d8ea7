"""Administrative connections, one module for each protocol."""
