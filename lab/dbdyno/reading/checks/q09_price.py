"""Q09: machines of different classes have different prices."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.checks.p10_hosts import instance_classes
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_PRICE = linear(
    r"[$€£¥₩]\s?\d|\d\s?(?:USD|EUR|KRW|원|元|円)\b|per hour|/hour|/hr\b|\bpric(?:e|ing)\b|"
    r"\bcosts?\b|가격|비용|价格|成本|価格|料金|\bPreis|\bprix\b|цен[аы]",
    re.IGNORECASE,
)


def find(reading: Reading) -> Iterator[Finding]:
    """Looks for a price, if the document compares classes of instances.

    Catches a class that is faster and dearer. A published benchmark compares two generations of instances of
    different prices, and concludes from the throughput alone.
    """
    classes = instance_classes(reading)
    if len(classes) < 2 or len(reading.series) < 2:
        return
    if any(_PRICE.search(text) for _, text in reading.document.lines()):
        return
    yield finding(
        reading,
        "Q09",
        "note",
        compose("{classes} may have different prices, which are not stated", classes=", ".join(classes)),
        classes.values(),
        fix=compose("State the throughput per price too"),
    )


CHECK = DocumentCheck("Q09", find)
