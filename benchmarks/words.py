"""How a result is read and told: a JSON file of results, a table, the machine."""

from __future__ import annotations

import json
from typing import Any

from record import RESULTS


def load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine(result: dict[str, Any]) -> str:
    return str(result["machine"]["gpu"] or f"{result['machine']['cpus']} CPU cores")
