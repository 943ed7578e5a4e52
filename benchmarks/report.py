"""Writes the tables of the README from the JSON files in results, so that no figure is typed by hand.

python benchmarks/report.py            write them
python benchmarks/report.py --check    fail if a table is not what the files say
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from record import RESULTS

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"(<!-- results: (?P<name>[\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


def load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def three(value: float) -> str:
    """.974 for 0.9738: scores lie between 0 and 1."""
    return f"{value:.3f}".removeprefix("0")


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def along(values: list[float]) -> str:
    return " → ".join(map(three, values))


def machine(result: dict[str, Any]) -> str:
    return str(result["machine"]["gpu"] or f"{result['machine']['cpus']} CPU cores")


def mnist() -> str:
    rows = []
    for recipe in ("paper", "auto"):
        result = load(f"mnist-{recipe}")
        found, seconds = result["results"], result["results"]["fit_seconds"]
        scores = [along(found["mean"][score]) for score in ("1nn", "nh_paper", "trustworthiness")]
        rows.append([f"`{recipe}`", *scores, f"{min(seconds):.0f}–{max(seconds):.0f}"])
    head = ["recipe", "1-NN", "neighbourhood hit, paper's protocol", "trustworthiness", f"fit, s ({machine(result)})"]
    return table(head, rows) + f"\n`benchmarks/mnist.py`, mean of {result['seeds']} seeds.\n"


def digits() -> str:
    result = load("digits")
    rows = [[found["name"], along(found["mean"]), f"{found['seconds']:.0f}"] for found in result["results"]]
    head = ["method", "held-out 1-NN", f"fit, s ({machine(result)})"]
    return table(head, rows) + f"\n`{result['command']}`, mean of {result['splits']} stratified 75/25 splits.\n"


def neighbors() -> str:
    result = load("neighbors")
    rows = [
        [f"{found['n']:,} × {found['d']}", f"{found['exact_seconds']:.1f}", f"{found['approximate_seconds']:.1f}",
         three(found["recall"]), found["chosen"]]
        for found in result["results"]
    ]  # fmt: skip
    head = ["rows", "exact, s", "approximate, s", "recall of its 90 neighbours", "chosen"]
    return table(head, rows) + f"\n`{result['command']}`, {machine(result)}.\n"


TABLES = {"mnist": mnist, "digits": digits, "neighbors": neighbors}


def filled(text: str) -> str:
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match['name']]()}{match[3]}", text)


def main() -> None:
    text = README.read_text()
    wanted = filled(text)
    if "--check" in sys.argv:
        sys.exit(0 if wanted == text else "README.md does not say what benchmarks/results say: run `make readme`")
    README.write_text(wanted)


if __name__ == "__main__":
    main()
