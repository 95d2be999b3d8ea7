"""What all unit tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.stored_run import without_sync


@pytest.fixture(scope="session", autouse=True)
def _fast_files() -> Iterator[None]:
    with without_sync():
        yield
