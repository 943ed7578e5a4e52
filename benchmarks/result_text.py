"""Result files as text: read JSON, format Markdown tables, name the machine."""

from __future__ import annotations

import json
from typing import Any

from record import RESULTS


def load(name: str) -> dict[str, Any]:
    """Read results/NAME.json."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


def table(head: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def machine(result: dict[str, Any]) -> str:
    """Name the GPU of a result, or its CPU cores."""
    return str(result["machine"]["gpu"] or f"{result['machine']['cpus']} CPU cores")
