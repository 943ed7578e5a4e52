"""The tables of messy files and of units, from results/messy.json and results/units.json."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from result_text import load, machine, table

LONGEST = 130  # characters of a printed line
USUAL = re.compile(r"^\d[\d,]* features|^not features|squared distances")  # lines that are the same for most files


def messy() -> str:
    """What becomes of each file."""
    results = load("messy")
    rows = []
    for each in results["results"]:
        options = f"`{each['options']}`" if each["options"] else ""
        rows.append([f"`{each['file']}`", each["about"], options, _outcome(each)])
    note = (
        f"`python benchmarks/messy.py`, {machine(results)}; 1-NN accuracy of the fitted rows, of 240 shops of four kinds. The "
        "features are the same four measures in all tables of shops, and their units are standardized."
    )
    return f"{table(['file', 'what is messy', 'options of `dre fit`', 'what happens'], rows)}\n{note}\n"


def _outcome(found: dict[str, Any]) -> str:
    lines = [line for line in found["printed"] if not USUAL.search(line)]
    printed = "; ".join(line if len(line) <= LONGEST else f"{line[:LONGEST].rpartition(' ')[0]} …" for line in lines)
    printed = printed.replace("|", "\\|")
    if found["exit"]:
        return f"refused: {printed}"
    return f"mapped, 1-NN {found['accuracy']:.2f}" + (f": {printed}" if printed else "")


def units() -> str:
    """Maps of tables in their units and standardized."""
    results = load("units")
    rows = []
    for name, each in results["results"].items():
        few, raw, standardized = each["dominant"], each["as it is"], each["standardized"]
        weight = "–" if few is None else f"{few['columns']} of {each['columns']} columns, {100 * few['share']:.0f} %"
        rows.append(
            [name, weight, *(f"{raw[k]:.3f} → {standardized[k]:.3f}" for k in ("nearest_neighbor", "neighborhood_hit"))]
        )
    head = ["table", "outweigh all others", "1-NN, as it is → standardized", "neighborhood hit"]
    return (
        table(head, rows)
        + '\n`python benchmarks/units.py --data FOLDER`, `DRE("fast")`, held-out rows, means of three splits.\n'
    )


TABLES: dict[str, Callable[[], str]] = {"messy": messy, "units": units}
