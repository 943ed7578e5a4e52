"""The tables of labels for new cells, from results/ingest.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paper.report.formatting import number
from result_text import load, machine, table

SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
KINDS = ("seconds", "cpu")


def ingest() -> str:
    """Scores of each method's labels, means over the splits."""
    results = load("ingest")
    rows = []
    for data, methods in results["results"]["labels"].items():
        for name, each in methods.items():
            refused = f"{100 * each['refused']:.1f} %" if each["refused"] else "–"
            cells = f"{data}, {results['results']['cells'][data]:,} cells"
            rows.append([cells, name, *(number(each[key]) for key in SCORES), refused])
    head = ["", "method", "accuracy", "balanced accuracy", "macro F1", "refused"]
    libraries = ", ".join(f"{name} {version}" for name, version in results["libraries"].items())
    return table(head, rows) + f"\n{_command()}, {libraries}; a held-out quarter, means of three splits.\n"


def times() -> str:
    """Times of each method as multiples of those of scanpy."""
    results = load("ingest")
    rows = []
    for data, methods in results["results"]["times"].items():
        theirs = methods["sc.tl.ingest"]
        for name, each in methods.items():
            if each is not theirs:
                parts = [(f"ingest {kind}",) for kind in KINDS] + [(f"reference {kind}", f"ingest {kind}") for kind in KINDS]
                rows.append([data, name, *(_ratio(each, theirs, keys) for keys in parts)])
    head = ["", "method", "ingest, by the clock", "ingest, CPU time", "reference and ingest, by the clock", "CPU time"]
    return table(head, rows) + f"\nMultiples of what scanpy takes, on {machine(results)} that do other work too.\n"


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
