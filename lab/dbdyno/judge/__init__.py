"""The judge: a stored run goes in, verdict.json comes out. It measures nothing and talks to no server."""

from dbdyno.judge.judgement import judge

__all__ = ["judge"]
