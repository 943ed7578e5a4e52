"""Readings of the paper: its recipe with what the text leaves open read in other ways, on MNIST and Fashion-MNIST.

    python benchmarks/readings.py --data FOLDER
    python benchmarks/readings.py --data FOLDER --only "as published" "test rows alone" --seeds 2
    python benchmarks/readings.py --merge FILE [FILE ...]      # add results of other files, of runs that went on at once
    python benchmarks/readings.py --list

FOLDER holds mnist.npz and fashion-mnist.npz with images X, Xt and labels y, yt of the training and the test set. Maps are
scored as in the paper's Table 1: k = 7, the neighborhood hit counts the point itself. Needs a GPU, but for ``--quick``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from dre import DRE, Recipe, Schedule
from dre.compare.record import write_json
from dre.encoder import Encoder
from dre.encoder.network import Network
from dre.metrics import evaluate
from readings_parts import Continued, Exaggerated, FuzzyRanks, NormalizedCE, Recut, Variant, reading_pixels, trained
from record import RESULTS, record

Array = np.ndarray[Any, Any]
Results = dict[str, Any]
DATA = ("mnist", "fashion-mnist")
MAPS = ("deep t-SNE", "DRE t-SNE", "DRE")  # without recursion; with recursions; with UMAP's loss at the end
COLUMNS = ("neighborhood_hit", "trustworthiness", "continuity", "one_minus_stress", "shepard_goodness")
PRINTED = {  # Table 1
    "mnist": {
        "deep t-SNE": (0.93, 0.94, 0.97, 0.53, 0.34),
        "DRE t-SNE": (0.96, 0.94, 0.97, 0.54, 0.29),
        "DRE": (0.97, 0.92, 0.96, 0.52, 0.29),
    },
    "fashion-mnist": {
        "deep t-SNE": (0.73, 0.97, 0.99, 0.62, 0.63),
        "DRE t-SNE": (0.76, 0.97, 0.98, 0.60, 0.60),
        "DRE": (0.77, 0.97, 0.98, 0.62, 0.59),
    },
}
SAMPLE = 10_000  # rows that are drawn from more for a protocol
FIT_SECONDS = 14.0  # of the recipe as published on 60,000 images, on an H200
BATCH_SEARCH_SECONDS = 0.02  # for the bandwidths of a batch of 2,500
PROTOCOLS = {
    "test": "the 10,000 test images",
    "train sample": "10,000 of the training images, drawn at random",
    "mixed sample": "10,000 of all 70,000 images, drawn at random",
    "train": "all training images",
    "all": "all 70,000 images",
}
CHEAP = ("test", "train sample", "mixed sample")  # the others take seconds, and are for the last map alone
SHAPE = (1, 28, 28)

P = "gaussian(30, scope=batch) -> kl"
V = "fuzzy(15, scope=batch) -> ce(min_dist=0.001)"
PUBLISHED = "as published"


@dataclass(frozen=True)
class Reading:
    """The paper's recipe with one thing read in another way."""

    name: str
    leaves_open: str
    options: dict[str, Any] = field(default_factory=dict)  # of DRE, beside recipe="paper"
    after: int | None = None  # continue PUBLISHED behind this stage; the schedule then has the rest of the stages
    network: Variant | None = None
    pixels: float | None = None  # the largest value of a pixel; None: centered and divided by their standard deviation
    rows: str = "train"  # what is fitted: "train", "test" or "all"
    protocols: tuple[str, ...] = CHEAP
    slower: float = 1.0  # than Model B by the package's kernels
    searches: int = 0  # rounds over all batches of the bandwidth search, in all

    def plan(self, rows: int) -> Recipe:
        """The recipe, without the parts that depend on the data."""
        return DRE("paper", **self.options).plan((rows, 28, 28))

    @property
    def seconds(self) -> float:
        """Estimated time for both data sets, with the scores."""
        rows = {"train": 60_000, "test": 10_000, "all": 70_000}[self.rows]
        epochs = sum(stage.epochs for stage in self.plan(rows).schedule)
        scores = 7.5 if "all" in self.protocols else 2.5
        searches = self.searches * rows / 2500 * BATCH_SEARCH_SECONDS
        return 2 * (FIT_SECONDS * epochs / 350 * rows / 60_000 * self.slower + searches + scores)


def _then(*stages: str) -> dict[str, Any]:
    return {"schedule": "; ".join(stages)}


READINGS = (  # the most promising and the cheapest first
    Reading(PUBLISHED, "Which rows Table 1 was computed on.", protocols=tuple(PROTOCOLS)),
    Reading("test rows alone", "Whether the test images were embedded by a network that was fitted on them.", rows="test"),
    Reading("test rows alone, batch norm", "The same, and whether Model B has batch norm.", {"encoder": "model-b(norm=true)"},
            rows="test"),
    Reading("CE at 0.001", "The learning rate of stage 2; the authors' code has 0.0001.", _then(f"h3: {V} * 100"), after=3),
    Reading("CE of x", "What stage 2 takes V from.", _then(f"x: {V} * 100 @ 0.0001"), after=3),
    Reading("CE of h1", "What stage 2 takes V from.", _then(f"h1: {V} * 100 @ 0.0001"), after=3),
    Reading("CE after one recursion", "How many recursions precede stage 2.", _then(f"h1: {V} * 100 @ 0.0001"), after=1),
    Reading("CE of sums 1", "Nothing: the authors' programs divide V and W by their sums.",
            _then("h3: fuzzy(15, scope=batch) -> normalized-ce * 100 @ 0.0001"), after=3, slower=2),
    Reading("CE of ranks 15 to 29", "Nothing: the authors' programs take these neighbors, and divide V and W by their sums.",
            _then("h3: fuzzy-ranks(15, 29) -> normalized-ce * 100 @ 0.0001"), after=3, slower=2),
    Reading("min_dist 0.1", "a and b of UMAP's curve.", _then("h3: fuzzy(15, scope=batch) -> ce * 100 @ 0.0001"), after=3),
    Reading("batch norm", "Whether Model B has batch norm, which the text praises.", {"encoder": "model-b(norm=true)"}),
    Reading("batch norm, perplexity 10", "Both.", {"encoder": "model-b(norm=true)", "perplexity": 10}),
    Reading("batch norm, min_dist 0.1", "Both.",
            {"encoder": "model-b(norm=true)", **_then(f"x: {P} * 100", *(f"h{i}: {P} * 50" for i in (1, 2, 3)),
                                                      "h3: fuzzy(15, scope=batch) -> ce * 100 @ 0.0001")}),
    Reading("before activation", "Whether the output of a dense layer is taken before or after its ReLU.",
            _then(f"h1.0: {P} * 50", f"h2.0: {P} * 50", f"h3.0: {P} * 50", f"h3.0: {V} * 100 @ 0.0001"), after=0),
    Reading("linear dense layers", "Whether the dense layers have an activation.", network=Variant(dense="linear")),
    Reading("perplexity 10", "Nothing (30), but a batch of 2,500 has few near neighbors.", {"perplexity": 10}),
    Reading("Model A", "Nothing (Model B); Model A reads the images as vectors.", {"encoder": "model-a"}),
    Reading("h3 h2 h1", "The order of the recursions.",
            _then(f"h3: {P} * 50", f"h2: {P} * 50", f"h1: {P} * 50", f"h1: {V} * 100 @ 0.0001"), after=0),
    Reading("cut at each stage", "Whether the rows are shuffled once in all or once per stage.",
            {**_then(f"h1: {P} * 50", f"h2: {P} * 50", f"h3: {P} * 50", f"h3: {V} * 100 @ 0.0001"), "batch_size": Recut(2500)},
            after=0),
    Reading("cut every 10 epochs", "Whether batches are fixed: 'randomly selected data points'.",
            {"batch_size": Recut(2500, 10)}, searches=35),
    Reading("batches of 5,000", "Nothing (2,500; larger if memory allows).", {"batch_size": 5000}),
    Reading("Adam without restarts", "Whether each stage restarts Adam.",
            {"optimizer": Continued(1e-3, eps=1e-7, policy="constant")}),
    Reading("half of the epochs", "Nothing (100, 50, 50, 50, 100).",
            _then(f"x: {P} * 50", *(f"h{i}: {P} * 25" for i in (1, 2, 3)), f"h3: {V} * 50 @ 0.0001")),
    Reading("learning rate 0.0001", "How the 'initial' rate of 0.001 goes on.", {"learning_rate": 1e-4}),
    Reading("early exaggeration", "Whether t-SNE's exaggeration is used; the authors' program cancels it.",
            _then("x: gaussian(30, scope=batch) -> exaggerated(12) * 25", f"x: {P} * 75",
                  *(f"h{i}: {P} * 50" for i in (1, 2, 3)), f"h3: {V} * 100 @ 0.0001"), slower=1.3),
    Reading("late exaggeration", "The same, behind the recursions.",
            _then("h3: gaussian(30, scope=batch) -> exaggerated(4) * 50", f"h3: {V} * 100 @ 0.0001"), after=3, slower=1.3),
    Reading("stale P", "Nothing: in one of the authors' programs a last stage keeps the P before it.",
            _then(f"h2: {P} * 100", f"h3: {V} * 100 @ 0.0001"), after=1),
    Reading("perplexity 50", "Nothing (30).", {"perplexity": 50}),
    Reading("norm behind dense ReLU", "Whether Model A's order, ReLU and then batch norm, holds for the dense layers too.",
            network=Variant(dense="relu norm")),
    Reading("norm of convolutions", "Whether the convolutions alone have batch norm.", network=Variant(conv_norm=True)),
    Reading("pixels from 0 to 1", "The range of the input.", pixels=1.0),
    Reading("pixels from 0 to 255", "The range of the input.", pixels=255.0),
    Reading("weights as in Keras", "The initial weights.", network=Variant(keras_weights=True), pixels=1.0),
    Reading("convolutions without padding", "The padding; Keras has none by default.", network=Variant(valid=True), slower=2.5),
    Reading("all rows", "Whether test images were among the fitted ones.", rows="all"),
    Reading("batches of 1,000", "Nothing (2,500).", {"batch_size": 1000}, slower=1.3),
    Reading("batches of 500", "Nothing (2,500).", {"batch_size": 500}, slower=1.8),
    Reading("twice the epochs", "Nothing (100, 50, 50, 50, 100).",
            _then(f"x: {P} * 200", *(f"h{i}: {P} * 100" for i in (1, 2, 3)), f"h3: {V} * 200 @ 0.0001")),
    Reading("shuffled every epoch", "Whether batches are fixed: 'randomly selected data points'.",
            {"batch_size": "shuffled(2500)"}, searches=350),
)  # fmt: skip
BY_NAME = {reading.name: reading for reading in READINGS}
OWN_LOSSES = (Exaggerated, NormalizedCE, FuzzyRanks)  # imported so that schedules can name them


class Images(NamedTuple):
    """A data set: images and labels to fit and to test."""

    train: Array
    labels: Array
    test: Array
    test_labels: Array

    def fitted(self, rows: str) -> Array:
        return {"train": self.train, "test": self.test}[rows] if rows != "all" else np.concatenate([self.train, self.test])


class Fitted(NamedTuple):
    """A fit, and the scores of the map after each of its stages."""

    model: DRE
    stages: list[Results]


def load(folder: Path, name: str, rows: int | None) -> Images:
    with np.load(folder / f"{name}.npz") as file:
        return Images(*(file[key][:rows] for key in ("X", "y", "Xt", "yt")))


def network_of(recipe: Recipe, reading: Reading, images: Images, seed: int) -> Encoder | Network:
    """The encoder of a reading, or a network with initial weights where the package has no such encoder."""
    if reading.network is None and reading.pixels is None:
        assert isinstance(recipe.encoder, Encoder)
        return recipe.encoder
    network: Network = (reading.network or Variant()).build(SHAPE, seed)
    return network if reading.pixels is None else reading_pixels(network, images.fitted(reading.rows), reading.pixels)


def fit(reading: Reading, images: Images, seed: int, before: Fitted | None, *, quick: bool) -> DRE:
    """Fit the images, from the start or behind a stage of the fit ``before``."""
    rows = images.fitted(reading.rows)
    recipe = reading.plan(len(rows))
    if reading.after is None:
        encoder: Any = network_of(recipe, reading, images, seed)
    else:
        assert before is not None
        weights, published = before.model.stages_[reading.after], before.model.recipe_.encoder
        assert weights is not None
        assert isinstance(published, Encoder)
        network = published.build(SHAPE, 2)
        assert isinstance(network, Network)
        encoder = trained(network, weights)
    if isinstance(recipe.optimizer, Continued):
        recipe = replace(recipe, optimizer=replace(recipe.optimizer, last=[]))
    if quick:
        recipe = replace(recipe, schedule=Schedule(*(replace(stage, epochs=1) for stage in recipe.schedule)))
    return DRE(replace(recipe, encoder=encoder), random_state=seed, verbose=False).fit(rows)


def is_tsne(stage: str) -> bool:
    return "-> kl" in stage or "-> exaggerated" in stage


def map_stages(stages: list[str]) -> dict[str, int]:
    """Number of the stage after which each of the paper's maps is drawn, by the text of the stages."""
    found = {}
    first = [i for i, stage in enumerate(stages) if stage.startswith("x:") and is_tsne(stage)]
    tsne = [i for i, stage in enumerate(stages) if is_tsne(stage)]
    if first:
        found["deep t-SNE"] = first[-1]
    if tsne:
        found["DRE t-SNE"] = tsne[-1]
    if not is_tsne(stages[-1]):
        found["DRE"] = len(stages) - 1
    return found


def score_stages(reading: Reading, images: Images, model: DRE, before: Fitted | None) -> list[Results]:
    """Scores after every stage on the test rows, for the maps that the paper's table has by the other protocols too."""
    stages = [] if before is None or reading.after is None else list(before.stages[: reading.after + 1])
    first = len(stages)
    texts = [*(stage["stage"] for stage in stages), *map(str, model.schedule_)]
    compared = map_stages(texts).values()
    for i, text in enumerate(texts[first:]):
        is_last = first + i + 1 == len(texts)
        protocols = reading.protocols if is_last else CHEAP if first + i in compared else CHEAP[:1]
        stages.append({"stage": text, "scores": score(reading, images, model, i, protocols)})
    return stages


def score(reading: Reading, images: Images, model: DRE, stage: int, protocols: tuple[str, ...]) -> dict[str, Results]:
    """Scores of the map after a stage, by protocol; the columns of Table 1, and the 1-NN accuracy.

    Test rows that were not fitted have their nearest neighbor among the training rows; all others, among themselves.
    """
    rows = np.concatenate([images.train, images.test])
    labels = np.concatenate([images.labels, images.test_labels])
    n = len(images.train)
    rng = np.random.default_rng(0)
    ids = {
        "test": np.arange(n, len(rows)),
        "train sample": rng.permutation(n)[:SAMPLE],
        "mixed sample": rng.permutation(len(rows))[:SAMPLE],
        "train": np.arange(n),
        "all": np.arange(len(rows)),
    }
    needed = len(protocols) > 1  # the map of the training rows too
    Y = model.transform(rows, stage=stage) if needed else np.full((len(rows), 2), np.nan, np.float32)
    if not needed:
        Y[n:] = model.transform(images.test, stage=stage)
    found = {}
    for protocol in protocols:
        at = ids[protocol]
        reference = (Y[:n], labels[:n]) if protocol == "test" and needed and reading.rows != "test" else None
        scores = evaluate(
            rows[at].reshape(len(at), -1).astype(np.float32), Y[at], labels[at], protocol="paper", reference=reference
        )
        found[protocol] = {
            "nearest_neighbor": scores["nearest_neighbor"],
            **{name: scores[name] for name in COLUMNS if name in scores},
            "one_minus_stress": 1 - scores["normalized_stress"],
        }
        if protocol == "test" and reference is None and reading.rows != "test":
            del found[protocol]["nearest_neighbor"]
    return found


def differences(runs: list[Results], protocol: str, maps: tuple[str, ...] = MAPS) -> list[float] | None:
    """Measured minus printed values of one reading, over data sets, maps and columns; means over the seeds.

    None unless both data sets have all of these maps, scored by this protocol.
    """
    found = []
    for data in DATA:
        of_data = [run for run in runs if run["data"] == data]
        for name in maps:
            scores = [run["stages"][run["maps"][name]]["scores"].get(protocol) for run in of_data if name in run["maps"]]
            if not scores or None in scores:
                return None
            for column, printed in zip(COLUMNS, PRINTED[data][name], strict=True):
                found.append(mean(each[column] for each in scores) - printed)
    return found


def distance(runs: list[Results], protocol: str, maps: tuple[str, ...] = MAPS) -> float | None:
    """Root mean square of the differences."""
    found = differences(runs, protocol, maps)
    return None if found is None else float(np.sqrt(np.mean(np.square(found))))


def distances(runs: list[Results]) -> list[Results]:
    """Distances to the printed values of all readings and protocols: of the last map, and of all three; the smallest first."""
    found = []
    for name in dict.fromkeys(run["reading"] for run in runs):
        of_reading = [run for run in runs if run["reading"] == name]
        for protocol in BY_NAME[name].protocols:
            last = distance(of_reading, protocol, MAPS[-1:])
            if last is not None:
                all_maps = distance(of_reading, protocol)
                found.append({"reading": name, "protocol": protocol, "distance": last, "distance_of_maps": all_maps})
    return sorted(found, key=lambda each: float(each["distance"]))


def show(run: Results) -> None:
    print(f"\n{run['reading']}, {run['data']}, seed {run['seed']}: {run['fit_seconds']:.1f} s", flush=True)
    for name, stage in run["maps"].items():
        print(f"  {name:13s} {'printed':13s}      ", "  ".join(f"{value:5.2f} " for value in PRINTED[run["data"]][name]))
        for protocol, scores in run["stages"][stage]["scores"].items():
            near = scores.get("nearest_neighbor")
            first = "     " if near is None else f"{near:.3f}"
            print(f"  {'':13s} {protocol:13s} {first}", "  ".join(f"{scores[column]:6.3f}" for column in COLUMNS), flush=True)


def with_parents(names: list[str]) -> list[Reading]:
    """The readings of these names, with the one that some of them continue in front."""
    chosen = [BY_NAME[name] for name in names]
    if any(reading.after is not None for reading in chosen) and PUBLISHED not in names:
        return [BY_NAME[PUBLISHED], *chosen]
    return chosen


def measure(arguments: argparse.Namespace) -> list[Results]:
    began = time.perf_counter()
    readings = sorted(with_parents(arguments.only), key=lambda reading: reading.name != PUBLISHED)
    images = {name: load(arguments.data, name, arguments.rows) for name in arguments.sets}
    runs: list[Results] = []
    for seed in range(arguments.seeds):
        published: dict[str, Fitted] = {}
        for reading in readings:
            for data in arguments.sets:
                if time.perf_counter() - began > arguments.limit_seconds:
                    print(f"stopped after {arguments.limit_seconds:.0f} s, before {reading.name}, {data}, seed {seed}")
                    return runs
                try:
                    runs.append(measure_one(reading, data, images[data], seed, published, quick=arguments.quick))
                except (RuntimeError, ValueError) as problem:  # a reading that diverges is a result; the others go on
                    runs.append({"reading": reading.name, "data": data, "seed": seed, "failed": str(problem)})
                    print(f"\n{reading.name}, {data}, seed {seed}: {problem}", flush=True)
                    if reading.name == PUBLISHED:
                        raise
                save(arguments.out, runs, readings)
    return runs


def measure_one(
    reading: Reading, data: str, images: Images, seed: int, published: dict[str, Fitted], *, quick: bool
) -> Results:
    """Fit and score one reading; the one as published is kept for those that continue it."""
    before = published.get(data) if reading.after is not None else None
    began = time.perf_counter()
    model = fit(reading, images, seed, before, quick=quick)
    fitted = time.perf_counter()
    stages = score_stages(reading, images, model, before)
    if reading.name == PUBLISHED:
        published[data] = Fitted(model, stages)
    run = {
        "reading": reading.name,
        "data": data,
        "seed": seed,
        "fit_seconds": round(fitted - began, 2),  # of the stages that were not fitted before
        "score_seconds": round(time.perf_counter() - fitted, 2),
        "maps": map_stages([stage["stage"] for stage in stages]),
        "stages": stages,
    }
    show(run)
    return run


def save(path: Path, runs: list[Results], readings: list[Reading]) -> None:
    finished = [run for run in runs if "failed" not in run]
    record(
        path.resolve(),
        {"distances": distances(finished), "runs": runs},
        readings={reading.name: reading.leaves_open for reading in readings},
        protocols=PROTOCOLS,
        printed={
            data: {name: dict(zip(COLUMNS, row, strict=True)) for name, row in maps.items()} for data, maps in PRINTED.items()
        },
    )


def merge(path: Path, others: list[Path]) -> None:
    """Add the runs of other files, measured on the same machine; a reading of the same data and seed is replaced."""
    records = [json.loads(file.read_text()) for file in (path, *others)]
    runs = {(run["reading"], run["data"], run["seed"]): run for each in records for run in each["results"]["runs"]}
    finished = [run for run in runs.values() if "failed" not in run]
    names = {run["reading"] for run in runs.values()}
    merged = {
        **records[0],
        "date": max(each["date"] for each in records),
        "readings": {reading.name: reading.leaves_open for reading in READINGS if reading.name in names},
        "results": {"distances": distances(finished), "runs": list(runs.values())},
    }
    write_json(path, merged)


def list_readings() -> None:
    total = 0.0
    for reading in READINGS:
        total += reading.seconds
        print(f"{reading.seconds:5.0f} s, {total:5.0f} s in all  {reading.name}: {reading.leaves_open}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data/gpu"))
    parser.add_argument("--out", type=Path, default=RESULTS / "readings.json")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(BY_NAME), default=list(BY_NAME))
    parser.add_argument("--sets", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="start no fit after so many seconds")
    parser.add_argument("--rows", type=int, help="the first rows of each set alone")
    parser.add_argument("--quick", action="store_true", help="one epoch per stage, to see that everything works")
    parser.add_argument("--merge", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--list", action="store_true", help="list the readings with their estimated time, and end")
    arguments = parser.parse_args()
    if arguments.list:
        list_readings()
        return
    if arguments.merge:
        merge(arguments.out, arguments.merge)
        return
    warnings.filterwarnings("ignore", message="perplexity .* is too large")
    runs = measure(arguments)
    print("\nroot mean square difference from the printed values: DRE, all three maps")
    for found in distances([run for run in runs if "failed" not in run]):
        maps = found["distance_of_maps"]
        print(f"{found['distance']:.4f} {'      ' if maps is None else f'{maps:.4f}'}  {found['reading']}, {found['protocol']}")


if __name__ == "__main__":
    main()
