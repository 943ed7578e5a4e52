"""Tables of SCALE.md and docs/scale.md from the JSON files in results; a file that is not there yet is named as such."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import mean, median
from typing import Any

import scale_plan as plan
from dre.plan.schedule import Schedule
from paper.report.formatting import number
from record import RESULTS
from result_text import load, machine, table
from ring_model import BYTES

SHOWN_RANKS = (1, 2, 8, 64, 256)
COMMANDS = {
    "out-of-core": "out_of_core.py --data FOLDER",
    "ten-million": "ten_million.py --data FOLDER",
    "ten-million-gpu": "ten_million.py --device cuda --rows 30000000 --columns 128 --ways sample --out FILE",
    "ten-million-gpu-parts": "ten_million.py --device cuda --rows 30000000 --columns 128 --ways parts --out FILE",
    "ranks": "ranks.py --data FOLDER",
    "ranks-gpu": "ranks.py --data FOLDER --device cuda",
    "ranks-gpu-nccl": "ranks.py --data FOLDER --device cuda --nccl",
    "transform-memory": "transform_memory.py",
    "scale-simulation": "scale_simulation.py",
    "scale-simulation-gpu": "scale_simulation.py --device cuda",
}
EXCHANGED_MS = 0.005  # below, nothing was exchanged
SCORES = {"nearest_neighbor": "1-NN", "neighborhood_hit": "neighborhood hit", "trustworthiness": "trustworthiness",
          "shepard_goodness": "Shepard goodness"}  # fmt: skip


def is_there(name: str) -> bool:
    """Whether results/NAME.json exists."""
    return (RESULTS / f"{name}.json").exists()


def not_yet(name: str) -> str:
    """Say that results are missing, and which command makes them."""
    return f"Not measured yet: `results/{name}.json`, by `python benchmarks/{COMMANDS[name]}`.\n"


def source(result: dict[str, Any]) -> str:
    return f"\n`{result['command']}`, {machine(result)}.\n"


def size(nbytes: float) -> str:
    """Format bytes.

    >>> size(3.072e12), size(850)
    ('3.1 TB', '850 B')
    """
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.1f} {name}"
    return f"{nbytes:.0f} B"


def duration(seconds: float) -> str:
    """Format seconds.

    >>> duration(30), duration(300), duration(7200)
    ('30 s', '5.0 min', '2.0 h')
    """
    if seconds < 1:
        return f"{seconds:.2g} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def count(n: float) -> str:
    return f"{n:.0e}".replace("e+0", "e").replace("e+", "e") if n in plan.SIZES else f"{float(f'{n:.2g}'):,.0f}"


# SCALE.md


def out_of_core() -> str:
    """Files against memory: the large one, and the smaller one both ways."""
    if not is_there("out-of-core"):
        return not_yet("out-of-core")
    result = load("out-of-core")
    whole, subset = result["results"]["whole"], result["results"]["subset"]
    large = {name: found for name, found in whole.items() if isinstance(found, dict)}
    fits = [(f"{size(whole['file_bytes'])}, `{name}`, from the file", found) for name, found in large.items()]
    for name, both in subset.items():
        if isinstance(both, dict):
            fits += [(f"{size(subset['file_bytes'])}, `{name}`, {_way(way)}", both[way]) for way in ("file", "memory")]
    rows = [[title, *_out_of_core_cells(found)] for title, found in fits]
    head = ["Parquet, sorted by class", "rows", "rows/s in training", "steps/s", "peak of anonymous memory, MB",
            "of which graph, MB", "1-NN, held out"]  # fmt: skip
    ratios = [
        f"`{name}` from the file makes {both['file_to_memory']['steps_per_second']:.0%} of the steps per second in memory"
        for name, both in subset.items()
        if isinstance(both, dict) and "file_to_memory" in both
    ]
    ratios += [
        f"`{name}` from {size(whole['file_bytes'])} makes {found['steps_per_second'] / _in_memory(subset, name):.0%} of them"
        for name, found in large.items()
        if "file_to_memory" in subset.get(name, {}) and "failed" not in found
    ]
    seeds = [
        f"its 1-NN, by seed, is {_listed(both['seeds']['file'])} from the file and {_listed(both['seeds']['memory'])} in memory"
        for name, both in subset.items()
        if isinstance(both, dict) and len(both.get("seeds", {}).get("file", [])) > 1
    ]
    return table(head, rows) + f"\n{'; '.join([*ratios, *seeds])}.\n" + source(result)


def _in_memory(subset: dict[str, Any], name: str) -> float:
    return float(subset[name]["memory"]["steps_per_second"])


def _listed(scores: list[float]) -> str:
    return " / ".join(f"{score:.3f}" for score in scores)


def _way(way: str) -> str:
    return "from the file" if way == "file" else "in memory"


def _out_of_core_cells(found: dict[str, Any]) -> list[str]:
    if "failed" in found:
        return [f"failed: {found['failed']}", "–", "–", "–", "–", "–"]
    return [
        f"{found['rows']:,}", f"{found['rows_per_second']:,.0f}", f"{found['steps_per_second']:.1f}",
        f"{max(found['peak_anonymous_mb'].values()):,.0f}", f"{found['graph_mb']:,.0f}", number(found["nearest_neighbor"]),
    ]  # fmt: skip


def many_rows(*names: str) -> str:
    """A sample and parts, from one file or several: minutes, memory and scores."""
    missing = [name for name in names if not is_there(name)]
    if missing:
        return not_yet(missing[0])
    results = [load(name) for name in names]
    rows = [
        [f"{found['rows']:,} × {found['columns']}, {way}", f"{found['fitted']:,}", f"{found['fit_minutes']:.1f}",
         ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in found["phase_seconds"].items()),
         f"{found['graph'].get('gib', 0):.1f}", " / ".join(f"{kind} {gib:.1f}" for kind, gib in found["peak_gib"].items()),
         *(number(found[score]) for score in SCORES)]
        for result in results
        for way, found in result["results"].items()
    ]  # fmt: skip
    head = ["Gaussian clusters", "fitted rows", "fit, min", "phases, s", "graph, GiB", "peak, GiB", *SCORES.values()]
    return table(head, rows) + "".join(map(source, results))


def sample_or_parts() -> str:
    """A sample by coordinates and all rows in parts, scaled down: seconds and scores."""
    result = load("many-rows")
    rows = [[*_way_of_many(found), f"{found['seconds']:.0f}", *(number(found[score]) for score in SCORES)]
            for found in result["results"]]  # fmt: skip
    head = ["digits and deformations", "fitted", "epochs of the network", "fit, s", *SCORES.values()]
    return table(head, rows) + source(result)


def _way_of_many(found: dict[str, Any]) -> list[str]:
    n, size_of, stage = found["rows"], found["size"], Schedule.parse(found["schedule"]).stages[0]
    if found["way"] == "parts":
        fitted = f"all, edges, {max(1, n // size_of)} part{'s' * (size_of < n)}"
    else:
        fitted = f"{'all' if size_of >= n - 1 else f'a sample of {size_of:,}'}, coordinates"
    return [f"{n:,}", fitted, f"{stage.follow} + {stage.epochs}" if stage.follow else str(stage.epochs)]


def ranks(name: str) -> str:
    """One rank and two with the same global batch."""
    if not is_there(name):
        return not_yet(name)
    result = load(name)
    rows = [
        [way, number_of, " / ".join(number(run["nearest_neighbor"]) for run in runs),
         number(mean(run["nearest_neighbor"] for run in runs)),
         f"{median(run['fit_seconds'] for run in runs):.1f}", f"{runs[0]['weights']:,}",
         f"{median(run['exchange_ms'] for run in runs):.2f}" if max(run["exchange_ms"] for run in runs) > EXCHANGED_MS else "–"]
        for way, by_ranks in result["results"].items()
        for number_of, runs in by_ranks.items()
    ]  # fmt: skip
    head = [result["data"], "ranks", "1-NN of each seed, held out", "mean", "fit, s", "weights", "exchange of gradients, ms"]
    return table(head, rows) + source(result)


def transform_memory() -> str:
    """Peak memory of dre transform by the number of rows."""
    if not is_there("transform-memory"):
        return not_yet("transform-memory")
    result = load("transform-memory")
    rows = [[f"{found['rows']:,}", f"{found['anonymous_mb']:,.0f}", f"{found['seconds']:.0f}"] for found in result["results"]]
    return table(["rows of the Parquet file", "peak of anonymous memory, MB", "s"], rows) + source(result)


def stream() -> str:
    """A hundred million images: seconds and memory after every ten million."""
    result = load("infinite-stream-gpu")
    found = result["results"]
    pieces = found["seconds_of_each_piece"]
    each = len(pieces) // 10
    rows = [
        [f"{at['rows']:,}", f"{sum(pieces[i + 1 - each : i + 1]):.1f}", f"{at['anonymous_mb']:,.0f}", f"{at['gpu_mb']:,.0f}"]
        for i, at in enumerate(found["memory"])
        if (i + 1) % each == 0
    ]
    text = (
        f"\nFitted on {found['fitted']:,} images in {found['fit_seconds']:.0f} s; {found['rows']:,} others embedded in "
        f"{found['seconds']:.0f} s, {1e6 * found['seconds'] / found['rows']:.2f} s for each million, with a 1-NN of "
        f"{number(found['nearest_neighbor'])} among the first ones.\n"
    )
    head = ["images embedded", "the last tenth, s", "anonymous memory of the host, MB", "memory of the GPU, MB"]
    return table(head, rows) + text + source(result)


def predicted(name: str) -> str:
    """Steps of two ranks, predicted and measured."""
    if not is_there(name):
        return not_yet(name)
    result = load(name)
    found = result["results"]
    rows = [
        [f"{run['name']}, `{run['encoder']}`", f"{run['batch']:,}", f"{run['weights']:,}", size(run["sent_bytes"]),
         f"{run['alone_ms']:.2f}", f"{run['parts_ms']['step of the slower rank']:.2f}",
         f"{sum(run['parts_ms'].values()) - run['parts_ms']['step of the slower rank']:.2f}",
         f"{run['predicted_ms']:.2f}", f"{run['measured_ms']:.2f}", f"{run['error']:+.0%}"]
        for run in found["runs"]
    ]  # fmt: skip
    head = ["two ranks", "rows of a batch", "weights", "sent in a step", "step of one rank alone, ms",
            "of the slower of two, ms", "exchanges, ms", "predicted, ms", "measured, ms", "error"]  # fmt: skip
    within = sum(abs(run["error"]) <= found["tolerance"] for run in found["runs"])
    exchange = found["exchange"]
    return table(head, rows) + (
        f"\n{within} of {len(rows)} predictions are within {found['tolerance']:.0%}. An exchange of two ranks fits a latency "
        f"of {1e6 * exchange['latency']:.0f} µs and {exchange['bandwidth'] / 1e9:.2f} GB/s.\n" + source(result)
    )


def simulated(name: str) -> str:
    """Efficiency and rows per second of up to 256 ranks."""
    if not is_there(name):
        return not_yet(name)
    result = load(name)
    cells: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for each in result["results"]["simulation"]:
        cells.setdefault((each["what"], each["network"]), {})[each["ranks"]] = each
    rows = [
        [what, network, *(_simulated_cell(found.get(number_of)) for number_of in SHOWN_RANKS)]
        for (what, network), found in cells.items()
    ]
    links = "; ".join(
        f"{link['name']}: {size(link['bandwidth'])}/s, {1e6 * link['latency']:.0f} µs ({link['source']})"
        for link in result["results"]["links"]
    )
    numbers = [f"{number_of} rank{'s' * (number_of > 1)}" for number_of in SHOWN_RANKS]
    head = ["rows per second, and efficiency", "network", *numbers]
    return table(head, rows) + f"\n{links}.\n" + source(result)


def _simulated_cell(found: dict[str, Any] | None) -> str:
    return "–" if found is None else f"{found['rows_per_second']:,.0f}, {found['efficiency']:.0%}"


# docs/scale.md


def row_bytes() -> str:
    """Bytes of a row in each thing that is held."""
    k, columns, point = plan.NEIGHBORS, plan.COLUMNS, plan.COMPONENTS * BYTES
    rows: list[tuple[str, str, int, str]] = [
        (f"the row itself, {columns} columns", f"float32; float16 {2 * columns:,}", columns * BYTES, "disk, or memory"),
        ("its features behind the PCA front", f"{plan.FEATURES // BYTES} × float32", plan.FEATURES, "its rank"),
        (f"its {k} neighbors, inside batches",
         f"int32 id, float16 weight; {k * plan.EXACT_EDGE:,} bytes of a graph in one part",
         k * plan.EDGE, "its rank"),
        (f"its {k} neighbors, for coordinates and bank", "int32 id, float32 weight, at both ends", k * plan.LINKED,
         "the first rank has all, each rank its own"),
        ("its coordinates, or its place in the bank", f"{plan.COMPONENTS} × float32", point, "every rank"),
        ("its number among those that were dealt", "int64", plan.ID, "every rank"),
        ("its place in `embedding_`", f"{plan.COMPONENTS} × float32", point, "every rank"),
    ]  # fmt: skip
    return table(["of one row", "as", "bytes", "held by"], [[what, kind, f"{n:,}", who] for what, kind, n, who in rows])


def by_rows() -> str:
    """Seconds, memory and cost of a fit of all rows on ranks, by the number of rows."""
    rates = plan.measured()
    columns: list[list[str]] = []
    for n in plan.SIZES:
        ranks_of = plan.ranks_for(n)
        phases = plan.phases_by_ranks(n, ranks_of, rates)
        hours = plan.gpu_hours(phases, ranks_of)
        columns.append(
            [size(n * plan.COLUMNS * 4), size(n * plan.COLUMNS * 2), str(ranks_of), *map(duration, phases.values()),
             duration(sum(phases.values())), duration(plan.dealt_seconds(n)),
             size(plan.on_gpu(n, ranks_of)), size(plan.on_host(n, ranks_of)),
             size(plan.step_bytes(rates.weights, ranks_of)), f"{hours:.2g}", f"${hours * plan.PRICE:.2g}"]
        )  # fmt: skip
    names = [
        "float32 on disk", "float16 on disk", "ranks, one GPU each", f"read {plan.FIT_PASSES} times, own files", "PCA front",
        "neighbors, in parts", "training steps", "embed all rows", "in all",
        "instead of reading own files: dealt from Parquet", "GPU memory of a rank", "host memory of a rank, beside the rows",
        "sent by a rank in a step", "GPU hours", "cost",
    ]  # fmt: skip
    rows = [[name, *(column[i] for column in columns)] for i, name in enumerate(names)]
    return table([f"all rows on ranks, {plan.COLUMNS} columns", *map(count, plan.SIZES)], rows)


def by_sample() -> str:
    """Seconds and cost of a sample and shards, by the number of rows."""
    rates = plan.measured()
    columns: list[list[str]] = []
    for n in plan.SIZES:
        gpus = plan.ranks_for(n)
        phases = plan.phases_by_sample(n, gpus, rates)
        hours = plan.gpu_hours(phases, gpus, alone=("read the sample", "fit the sample"))
        columns.append(
            [f"{plan.sample_rows(n):,}", str(gpus), *map(duration, phases.values()), duration(sum(phases.values())),
             f"{hours:.2g}", f"${hours * plan.PRICE:.2g}"]
        )  # fmt: skip
    names = [
        "rows of the sample", "shards, one GPU each", f"read the sample {plan.FIT_PASSES} times", "fit it on one GPU",
        "embed all rows", "in all", "GPU hours", "cost",
    ]  # fmt: skip
    rows = [[name, *(column[i] for column in columns)] for i, name in enumerate(names)]
    return table([f"a sample, then shards, {plan.COLUMNS} columns", *map(count, plan.SIZES)], rows)


def rates() -> str:
    """The measured rates, and the assumptions."""
    found = plan.measured()
    rows = [
        ["embedding, rows from the memory of the host", f"{found.embedded:,.0f} rows/s", "`gpu-transform.json`"],
        ["embedding, images made on the GPU", f"{found.embedded_streamed:,.0f} rows/s", "`infinite-stream-gpu.json`"],
        [f"exact neighbors in a part of {found.part:,} rows, 784 columns", f"{found.searched:.1f} s", "`gpu-graph.json`"],
        [f"a step of {found.batch:,} rows, {found.weights:,} weights", f"{1e3 * found.step:.2f} ms",
         "`gpu-step.json`"],
        ["a fit by coordinates, of each million rows", f"{1e6 * found.fitted:.0f} s", "`mnist8m.json`"],
        ["products in float32", f"{found.float32 / 1e12:.0f} TFLOP/s", "`gpu-ceilings.json`"],
        ["reading, of each process", f"{size(plan.READ)}/s", "assumption"],
        ["network between ranks", f"{plan.LINK.name}, {1e6 * plan.LINK.latency:.0f} µs", "assumption"],
        ["memory of a GPU, and of the host for each rank", f"{size(plan.GPU_BYTES)}, {size(plan.HOST_BYTES)}", "assumption"],
        ["price of a GPU", f"${plan.PRICE:g} an hour", "assumption"],
    ]  # fmt: skip
    return table(["rate", "", "from"], rows) + f"\nAll measured rates are those of one {machine(load('gpu-step'))}.\n"


def limits() -> str:
    """What ends first, and where."""
    rows = [[each["what"], f"{each['row']:,.0f}", count(each["rows"]), each["why"]] for each in plan.limits()]
    return table(["what", "bytes of a row", "rows", "limit"], rows)


def checkpoint_sizes() -> str:
    """Bytes of a checkpoint by the number of rows."""
    weights = plan.measured().weights
    found = [plan.checkpoint_bytes(n, weights) for n in plan.SIZES]
    names = {"batches": "training inside batches", "coordinates": "following coordinates, or against the bank"}
    rows = [[title, *(size(each[name]) for each in found)] for name, title in names.items()]
    return table([f"checkpoint, {weights:,} weights", *map(count, plan.SIZES)], rows)


TABLES: dict[str, Callable[[], str]] = {
    "scale-out-of-core": out_of_core,
    "scale-ten-million": partial(many_rows, "ten-million"),
    "many-rows": sample_or_parts,
    "scale-thirty-million": partial(many_rows, "ten-million-gpu", "ten-million-gpu-parts"),
    "scale-ranks": partial(ranks, "ranks"),
    "scale-ranks-gpu": partial(ranks, "ranks-gpu"),
    "scale-ranks-nccl": partial(ranks, "ranks-gpu-nccl"),
    "scale-transform": transform_memory,
    "scale-stream": stream,
    "scale-predicted": partial(predicted, "scale-simulation"),
    "scale-predicted-gpu": partial(predicted, "scale-simulation-gpu"),
    "scale-simulated": partial(simulated, "scale-simulation"),
    "scale-row-bytes": row_bytes,
    "scale-rates": rates,
    "scale-by-rows": by_rows,
    "scale-by-sample": by_sample,
    "scale-limits": limits,
    "scale-checkpoints": checkpoint_sizes,
}
