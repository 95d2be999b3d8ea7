"""One module for each database product that runs as a private server."""
