"""Where the programs of a server come from."""
