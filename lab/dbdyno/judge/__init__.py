"""The judge: reads a stored run and writes verdict.json. It measures nothing and connects to no server."""

from dbdyno.judge.verdict import judge

__all__ = ["judge"]
