"""How numbers are put into the sentence."""

from __future__ import annotations

from typing import Any

import pytest

from dbdyno.judge.sentence import caveats, decimals_for, signed


@pytest.mark.parametrize(
    ("values", "delta", "decimals"),
    [
        ((-9.2, -10.4, -8.1), 2.0, 1),
        ((0.5, 0.04, 0.9), 2.0, 2),
        ((0.5, 0.004, 0.9), 2.0, 3),
        ((1.0, 0.2, 1.96), 2.0, 2),
        ((1.0, 0.2, 2.03), 2.0, 2),
        ((1.0, 0.2, 1.9), 2.0, 1),
        ((0.0, 0.0, 0.0), 2.0, 1),
        ((1e-9,), 2.0, 4),
    ],
)
def test_rounding_never_moves_a_bound_to_the_other_side(
    values: tuple[float, ...], delta: float, decimals: int
) -> None:
    assert decimals_for(values, delta) == decimals


def test_signs() -> None:
    assert [signed(value) for value in (-9.24, 9.25, 0.0, -0.04)] == ["-9.2", "+9.2", "0.0", "0.0"]


def test_every_caveat_is_said_once() -> None:
    def finding(code: str, level: str, override: str | None = None, **evidence: Any) -> dict[str, Any]:
        return {"code": code, "level": level, "override": override, "evidence": evidence}

    assert caveats(
        [
            finding("R01", "warn"),
            finding("R01", "warn"),
            finding("P02", "note"),
            finding("P08", "stop", "why not"),
            finding("P09", "stop"),
            finding("X1", "warn"),
            finding("P11", "warn", busy=[1]),
            finding("P11", "warn", busy=[2]),
            finding("P11", "note", cpus="0"),
        ]
    ) == [
        "check P08 overridden: “why not”",
        "another database server was busy",
        "steady state not reached in every trial",
        "warning X1",
    ]
