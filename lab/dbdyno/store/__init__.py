"""The store: one run is one folder of plain files, written as results come and readable without dbdyno."""

from dbdyno.store.files import ChangedRun, StoreProblem
from dbdyno.store.run import EXPLAINED, JUDGED, MEASURED, VERDICT, Run
from dbdyno.store.trial import StoredTrial

__all__ = ["EXPLAINED", "JUDGED", "MEASURED", "VERDICT", "ChangedRun", "Run", "StoreProblem", "StoredTrial"]
