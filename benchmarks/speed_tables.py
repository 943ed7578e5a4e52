"""Tables of SPEED.md from the JSON files in results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from paper.load_spec import load_spec
from paper.report.formatting import number
from record import RESULTS
from result_text import load, machine, table

MILLION = {"dre": "DRE()", "umap": "UMAP"}
SCORES = {
    "nearest_neighbor": "1-NN", "neighborhood_hit": "neighborhood hit", "trustworthiness": "trustworthiness",
    "shepard_goodness": "Shepard goodness",
}  # fmt: skip
TRIED = {  # maps of 8.1 million digits, by the names of their records
    "mnist8m-batches": "inside each batch of all digits, 2,048 wide, a recursion",
    "mnist8m-narrow": "free coordinates of the first million, 256 wide, 2 + 2 epochs; timed beside other fits",
    "mnist8m": "free coordinates of the first million, 1,024 wide, 5 + 5 epochs: the default",
}
TIMED = ("dre", "umap", "open-tsne", "fit-sne", "dl-umap")  # methods timed on a CPU


def steps() -> str:
    step, ceilings, streamed = load("gpu-step"), load("gpu-ceilings")["results"], load("gpu-stream")
    rows = [[what, f"{milliseconds:.2f}"] for what, milliseconds in step["results"].items()]
    rows += [
        [f"Model B with batch norm, shuffled batches {where}", f"{took:.2f}"] for where, took in streamed["results"].items()
    ]
    known = [name for name in ("float32", "tf32", "bfloat16") if f"{name}_tflops" in ceilings]
    products = ", ".join(f"{name} {ceilings[f'{name}_tflops']:.0f}" for name in known)
    commands = f"`{step['command']}` and `{streamed['command']}`, {machine(step)}"
    return table(["a step, from sampling to the update", "ms"], rows) + (
        f"\n{commands}. Limits of this card, in TFLOP/s: {products}; it copies at {ceilings['copy_gb_per_s']:,} GB/s.\n"
    )


def fits() -> str:
    result = load("gpu-fit")
    rows = [
        [recipe, *(f"{runs[when]['seconds']:.1f}" if when in runs else "–" for when in ("new", "cold", "warm")),
         " / ".join(number(runs["new"][score]) for score in ("1nn", "nh_paper", "trustworthiness")),
         f"{runs['new']['peak_gib']:.1f}"]
        for recipe, runs in result["results"].items()
    ]  # fmt: skip
    head = ["recipe, precision", "very first fit, s", "first of a process, s", "the next, s"]
    return table([*head, "1-NN / hit / trustworthiness", "peak, GiB"], rows) + (
        f"\n`{result['command']}`, MNIST, {machine(result)}; imports are not counted. The very first fit also compiles "
        "kernels, which stay on the disk.\n"
    )


def sizes() -> str:
    result = load("gpu-sizes")
    rows = [
        [f"{found['n']:,}", f"{found['fit_seconds']:.1f}", f"{found['of_which_graphs']:.1f}",
         f"{found['transform_seconds']:.2f}", f"{found['peak_gib']:.1f}", number(found["1nn"])]
        for found in result["results"]
    ]  # fmt: skip
    head = ["deformed digits", "fit, s", "of which neighbors, s", "transform, s", "peak, GiB", "1-NN of MNIST's test set"]
    return table(head, rows) + f"\n`{result['command']}`, {machine(result)}.\n"


def graphs() -> str:
    result = load("gpu-graph")
    rows = [
        [f"{found['n']:,} × {found['d']}", f"{found['seconds']:.2f}", f"{found['tflops_of_all_pairs']:.0f}",
         f"{found['recall']:.6f}", f"{found['peak_gib']:.1f}"]
        for found in result["results"]
    ]  # fmt: skip
    head = ["rows", "90 neighbors of each, s", "2n²d / s, TFLOP/s", "recall against float64", "peak, GiB"]
    return table(head, rows) + f"\n`{result['command']}`, {machine(result)}.\n"


def million() -> str:
    result = load("gpu-transform")
    parts = [f"`{name}` {min(took):.2f} s" for name, took in result["results"].items()]
    return f"A million images from the memory of the host: {', '.join(parts)} (`{result['command']}`, {machine(result)}).\n"


def eight_million() -> str:
    result = load("mnist8m")
    found, took = result["results"], result["results"]["seconds"]
    return (
        f"{found['digits']:,} digits: fitted on the first {found['fitted']:,} in {took['fit']:.0f} s, all embedded in "
        f"{took['embed']:.0f} s, counted into pixels in {took['count']:.0f} s, {found['peak_gib']:.0f} GiB at most; of 500 × "
        f"500 pixels {found['pixels_with_a_point']:.0%} have a point, and MNIST's test set has a 1-NN of "
        f"{number(found['1nn_of_the_test_set'])} in the map (`{result['command']}`, {machine(result)}).\n"
    )


def eight_million_tried() -> str:
    """Maps of 8.1 million digits by several recipes."""
    rows = []
    for name, title in TRIED.items():
        found = load(name)["results"]
        occupied = found.get("pixels_with_a_point")
        rows.append(
            [title, f"{found.get('fitted', found['digits']):,}", f"{found['seconds']['fit']:.0f}",
             f"{found['peak_gib']:.0f}", number(found["1nn_of_the_test_set"]), "–" if occupied is None else f"{occupied:.0%}"]
        )  # fmt: skip
    result = load("mnist8m")
    head = [
        "8.1 million digits",
        "digits that were fitted",
        "fit, s",
        "peak, GiB",
        "1-NN of MNIST's test set",
        "pixels with a point",
    ]
    return table(head, rows) + f"\n`{result['command']}`, {machine(result)}.\n"


def million_rows() -> str:
    """A million rows on a CPU: seconds, memory and scores of each method."""
    result = load("million")
    rows = [
        [f"{name}, {MILLION[method]}", f"{found['whole_seconds']:.0f}", f"{found['peak_mb']:,.0f}",
         *(number(found[score]) for score in SCORES)]
        for name, methods in result["results"].items()
        for method, found in methods.items()
        if "failed" not in found
    ]  # fmt: skip
    head = ["Gaussian clusters", "whole process, s", "peak memory, MB", *SCORES.values()]
    return table(head, rows) + f"\n`python benchmarks/million.py`, {machine(result)}.\n"


def cpu_fits() -> str:
    """Fits on a CPU: seconds, their ratio to UMAP's, memory and score."""
    titles = {name: method.title for name, method in load_spec(RESULTS.parent).methods.items()}
    records = {name: _cell(name) for name in TIMED}
    rows = [
        [titles[name], f"{cell['fit_seconds']:.0f}", f"{cell['fit_seconds'] / records['umap']['fit_seconds']:.2f} ×",
         f"{cell['transform_seconds']:.2f}", f"{cell['peak_memory_mb']:,.0f}",
         number(cell["stages"][-1]["scores"]["nearest_neighbor"])]
        for name, cell in records.items()
        if "scores" in cell["stages"][-1]
    ]  # fmt: skip
    head = ["MNIST", "fit, s", "of UMAP's", "transform of 10,000, s", "peak memory, MB", "1-NN, held out"]
    return table(head, rows) + f"\n`python benchmarks/bench.py --panels cpu --only-data mnist`, {machine(records['dre'])}.\n"


def _cell(run: str) -> dict[str, Any]:
    cell: dict[str, Any] = json.loads((RESULTS / "cells" / f"cpu--mnist--{run}--0.json").read_text())
    return cell


def latency() -> str:
    result = load("cpu")
    found, both = result["results"], result["results"]["transform"]
    took = found["seconds_to_import"]
    return (
        f"`import dre` takes {took['import dre']:.2f} s beyond torch and scikit-learn, all that `DRE` needs "
        f"{took['from dre import DRE']:.2f} s. One row goes through a fitted map in {found['milliseconds_of_one_row']:.1f} ms, "
        f"{both['rows']:,} in {both['dre_seconds']:.2f} s, {both['times_as_fast']:.0f} times as fast as UMAP "
        f"({both['umap_seconds']:.1f} s; `{result['command']}`, {machine(result)}).\n"
    )


TABLES: dict[str, Callable[[], str]] = {
    "gpu-steps": steps,
    "gpu-fits": fits,
    "gpu-sizes": sizes,
    "gpu-graphs": graphs,
    "gpu-million": million,
    "cpu-million": million_rows,
    "gpu-eight-million": eight_million,
    "eight-million-tried": eight_million_tried,
    "cpu-fits": cpu_fits,
    "cpu-latency": latency,
}
