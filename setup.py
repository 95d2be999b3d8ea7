"""The engine as part of the wheel, beside what pyproject.toml says.

It is here and not there because an installation in place (`make build`) must be able to leave it out: there
the engine's binary comes from `make`, whose `target/` is kept between builds.
"""

import os

from setuptools import setup
from setuptools_rust import RustBin

ENGINE = RustBin("dbdyno-engine", path="engine/cli/Cargo.toml", args=["--locked"], debug=False)

setup(rust_extensions=[] if os.environ.get("DBDYNO_LAB_ONLY") else [ENGINE])
