"""The table of fits under several metrics, from results/metric-speed.json."""

from __future__ import annotations

from collections.abc import Callable

from result_text import load, machine, table


def metric_speed() -> str:
    """Seconds of a fit under each metric, as multiples of those under the Euclidean one."""
    result = load("metric-speed")
    found = result["results"]
    euclidean = found["median_seconds"]["euclidean"]
    times = {"euclidean": 1.0, "cosine": found["cosine_to_euclidean"]}
    times |= {metric: run["seconds"] / euclidean for metric, run in found["others"].items()}
    repeats = len(found["seconds"]["cosine"])
    rows = [[f"`{metric}`", f"{ratio:.2f} ×"] for metric, ratio in times.items()]
    about = f"{found['rows']:,} reviews as sentence vectors of {found['columns']} numbers, {machine(result)}"
    return table(["metric", "fit, of the Euclidean"], rows) + (
        f"\n`{result['command']}`, {about}; cosine and Euclidean in turns, the median of {repeats} ratios, the others once.\n"
    )


TABLES: dict[str, Callable[[], str]] = {"metric-speed": metric_speed}
