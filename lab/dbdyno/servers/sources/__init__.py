"""Finding the programs of a server."""
