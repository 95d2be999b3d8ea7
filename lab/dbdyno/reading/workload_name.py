"""The names of workloads: a heading or a column that has one names no variant."""

from __future__ import annotations

import re

from dbdyno.reading.patterns import linear

_WORD = (
    r"oltp\w*|point|select|insert|update|delete|replace|lookup|range|scan|join|mixed|reads?|writes?|readonly|"
    r"readwrite|only|heavy|tpc[ _-]?[a-z]{0,2}|ycsb|tatp|smallbank|bulk|index|non|key|random|points|ranges|"
    r"simple|"
    r"like|workload[ _-]?[a-f]|workload|order|sum|distinct|full|table|primary|secondary|by|pk|and|selects|"
    r"inserts|updates|deletes|"
    r"읽기|쓰기|전용|혼합|조회|삽입|삭제|갱신|只读|只写|读写|点查|点选|查询|插入|更新|删除|混合|読み取り|"
    r"書き込み|読み書き|専用|参照|"
    r"чтение|запись|только"
)
_NAME = linear(
    rf"(?:(?:{_WORD})(?:(?<=[^\x00-\x7f])|(?![a-zA-Z]))[ _\-/+.,&()]{{0,3}}){{1,8}}", re.IGNORECASE
)


def is_workload(text: str) -> bool:
    """Whether a text is the name of a workload and nothing else."""
    return _NAME.fullmatch(text.strip("*_` ")) is not None
