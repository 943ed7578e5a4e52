"""The tables of labels for new cells, from results/ingest.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paper.report.formatting import number
from result_text import load, machine, table

SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
REFERENCE, INGEST = "reference seconds", "ingest seconds"


def ingest() -> str:
    """Scores of each method's labels, means over the splits."""
    results = load("ingest")
    rows = []
    for data, methods in results["results"]["labels"].items():
        for name, each in methods.items():
            refused = f"{100 * each['refused']:.1f} %" if each["refused"] else "–"
            cells = f"{data}, {results['results']['cells'][data]:,} cells"
            rows.append([cells, name, *(number(each[key]) for key in SCORES), refused])
    count = min(each["splits"] for methods in results["results"]["labels"].values() for each in methods.values())
    splits = "one split" if count == 1 else f"means of {count} splits"
    head = ["", "method", "accuracy", "balanced accuracy", "macro F1", "refused"]
    libraries = ", ".join(f"{name} {version}" for name, version in results["libraries"].items())
    return table(head, rows) + f"\n{_command()}, {libraries}; a held-out quarter, {splits}.\n"


def times() -> str:
    """Times of each method as multiples of those of scanpy."""
    results = load("ingest")
    rows = []
    for data, methods in results["results"]["times"].items():
        theirs = methods["sc.tl.ingest"]
        for name, each in methods.items():
            if each is not theirs:
                rows.append([data, name, *(_ratio(each, theirs, keys) for keys in ((INGEST,), (REFERENCE, INGEST)))])
    head = ["", "method", "ingest", "reference and ingest"]
    return table(head, rows) + f"\nMultiples of what scanpy takes, on {machine(results)}.\n"


def _ratio(own: dict[str, float], theirs: dict[str, float], keys: tuple[str, ...]) -> str:
    return f"{sum(own[key] for key in keys) / sum(theirs[key] for key in keys):.2f} ×"


def foreign() -> str:
    """What becomes of the cells of a type that the reference lacks."""
    rows = []
    for data, kinds in load("ingest")["results"]["foreign"].items():
        for kind, each in sorted(kinds.items(), key=lambda item: -item[1]["refused"]):
            instead = ", ".join(f"{name} ({count})" for name, count in list(each["instead"].items())[:2])
            cells = [f"{100 * each['refused']:.0f} %", f"{100 * each['refused_others']:.1f} %"]
            rows.append([f"{data}, {kind}", str(each["cells"]), *cells, instead or "–"])
    head = ["left out of the reference", "its new cells", "refused", "others refused", "labels of the rest"]
    return table(head, rows) + f"\n{_command()}, one split.\n"


def _command() -> str:
    command: Any = load("ingest")["command"]
    return f"`{command.split(' --only')[0]}`"


TABLES: dict[str, Callable[[], str]] = {"ingest": ingest, "ingest-times": times, "ingest-foreign": foreign}
