"""Reads other people's benchmark documents: outputs, tables, commands, settings and sentences, and what they
show.

document -> formats (results) + calls + settings -> attribution (variants) -> judgement and checks. Pure: it
reads text and starts nothing.
"""
