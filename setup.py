"""The two programs in Rust as part of the wheel; pyproject.toml says the rest.

It is here and not there because an installation in place (`make build`) must be able to leave it out: there
the binaries come from `make`, whose `target/` is kept between builds.
"""

import os

from setuptools import setup
from setuptools_rust import RustBin

PROGRAMS = [
    RustBin(name, path=f"{folder}/cli/Cargo.toml", args=["--locked"], debug=False)
    for name, folder in (("dbdyno-engine", "engine"), ("dbdyno-compat", "compat"))
]

setup(rust_extensions=[] if os.environ.get("DBDYNO_LAB_ONLY") else PROGRAMS)
