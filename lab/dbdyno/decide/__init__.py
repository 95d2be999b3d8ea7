"""Questions -> effects -> families -> verdicts. It measures nothing and connects to no server."""
