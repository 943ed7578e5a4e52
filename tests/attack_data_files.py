"""Attack the readers of data files: open hostile and damaged files, read all rows, and count what happens.

``python tests/attack_data_files.py 2000`` opens that many files in a process of its own, with limits of time and memory,
prints a table of the outcomes, and fails if one is not allowed. ``--record`` also writes them to benchmarks/results.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch

from data_file_attacks import HOSTILE
from dre.data.rows import chunk_length, is_rows
from dre.io.readers import open_source
from dre.io.readers.labels import read_labels

SECONDS = 5.0  # of computing; the machine may be busy
PATIENCE = 30.0  # seconds until a process that does not answer is ended
MEMORY = 2**30
ALLOWED = ("refused", "read")
FORBIDDEN = ("other error", "hang", "memory", "crash")
N = 40
ABOUT = "hostile and damaged data files of every format, opened and read in full within 5 s of computing and 1 GiB of memory"
Found = tuple[str, str, int]  # kind, outcome, number of the case


# Files to damage.


def sound_files(folder: Path) -> list[Path]:
    """One file or folder of each format, all of which can be read."""
    import pandas as pd
    import polars as pl

    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)).round(3)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=["x", "y"] * (N // 2), name=[f"row {i}" for i in range(N)])
    np.save(folder / "x.npy", X)
    np.savez_compressed(folder / "x.npz", X=X, y=np.arange(N))
    for name in ("x.csv", "x.csv.gz", "x.tsv"):
        frame.to_csv(folder / name, index=False, sep="\t" if ".tsv" in name else ",")
    frame.to_json(folder / "x.json", orient="records")
    frame.to_json(folder / "x.jsonl", orient="records", lines=True)
    frame.to_excel(folder / "x.xlsx", index=False, engine="xlsxwriter")
    frame.to_feather(folder / "x.feather")
    pl.from_pandas(frame).write_ipc(folder / "x.arrow", compression="zstd")
    frame.to_parquet(folder / "x.parquet")
    frame.assign(vector=list(X)).to_parquet(folder / "vectors.parquet", compression="gzip", write_page_checksum=True)
    _scientific_files(folder, X)
    _images(folder / "photos", rng)
    (folder / "y.txt").write_text("\n".join(frame["kind"]))
    (folder / "y.json").write_text(str(frame["kind"].tolist()).replace("'", '"'))
    return sorted(folder.iterdir())


def _scientific_files(folder: Path, X: np.ndarray) -> None:
    import h5py
    import scipy.sparse
    import zarr

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(8, 4), compression="gzip", fletcher32=True)
        file["y"] = np.arange(N)
    sparse = scipy.sparse.random(N, 6, 0.5, "csr", random_state=0)
    for name, matrix, encoding in (("rows", sparse, "csr_matrix"), ("columns", sparse.tocsc(), "csc_matrix")):
        with h5py.File(folder / f"{name}.h5ad", "w") as file:
            group = file.create_group("X")
            group.attrs.update({"encoding-type": encoding, "encoding-version": "0.1.0", "shape": [N, 6]})
            for part in ("data", "indices", "indptr"):
                group[part] = getattr(matrix, part)
            for table, count in (("obs", N), ("var", 6)):
                file.create_group(table).attrs["_index"] = "_index"
                file[table]["_index"] = [f"{table}{i}".encode() for i in range(count)]
            file["obs"].create_group("kind")["codes"] = np.arange(N) % 2
            file["obs/kind"]["categories"] = [b"a", b"b"]
    zarr.save_group(folder / "x.zarr", X=X, y=np.arange(N))


def _images(folder: Path, rng: np.random.Generator) -> None:
    from PIL import Image

    folder.mkdir()
    for suffix in ("png", "jpg", "gif", "bmp", "tif", "webp"):
        Image.fromarray(rng.integers(0, 255, (16, 16, 3), np.uint8)).save(folder / f"a.{suffix}")


def damage(sound: Path, seed: int, folder: Path) -> Path:
    """Copy a file, or a folder of which one file is chosen, and change some of its bytes."""
    rng = random.Random(seed)
    target = folder / sound.name
    if sound.is_dir():
        shutil.copytree(sound, target)
        chosen = rng.choice(sorted(each for each in target.rglob("*") if each.is_file()))
    else:
        chosen = Path(shutil.copyfile(sound, target))
    content = bytearray(chosen.read_bytes())
    for _ in range(rng.choice([1, 1, 3])):
        _change(rng, content)
    chosen.write_bytes(content)
    return target


def _change(rng: random.Random, content: bytearray) -> None:
    length = len(content)
    at = max(0, rng.choice([rng.randrange(max(1, length)), rng.randrange(200), length - 1 - rng.randrange(200)]))
    kind = rng.choice(["flip", "flip", "overwrite", "truncate", "insert", "remove"])
    if kind == "flip" and at < length:
        content[at] ^= 1 << rng.randrange(8)
    elif kind == "overwrite":
        content[at : at + 8] = rng.choice([bytes(8), b"\xff" * 8, b"9" * 8, b"\x7f" + b"\xff" * 7, rng.randbytes(4)])[
            : length - at
        ]
    elif kind == "truncate":
        del content[at:]
    elif kind == "insert":
        content[at:at] = rng.choice([b"9", b'"', b",", b"\n", b"[" * 3000, rng.randbytes(16), bytes(64)])
    elif kind == "remove":
        del content[at : at + rng.choice([1, 4, 64])]


# Outcomes.


def read(kind: str, path: Path) -> None:
    """Read everything that a command would."""
    if kind == "labels" or path.name.startswith("y."):
        read_labels(path, 4 if kind == "labels" else N)
        return
    rows = open_source(path).rows
    if is_rows(rows):
        n, step = rows.shape[0], chunk_length(rows.shape[1:])
        for start in range(0, n, step):
            rows.read(start, min(n, start + step))


def outcome(kind: str, path: Path) -> str:
    """Read a file within the limits of this process."""
    before, start = _peak(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(kind, path)
        found = "read"
    except ValueError as problem:  # SourceError, and that of labels
        named = path.name in str(problem) or path.parent.name in str(problem)
        is_ours = "dre" in (problem.__traceback__ and _last_module(problem))
        found = "refused" if named and is_ours else f"other error: {problem!r}"[:500]
    except BaseException as problem:
        found = f"other error: {problem!r}"[:500]
    if _peak() - before > MEMORY:
        return "memory"
    return "hang" if time.process_time() - start > SECONDS else found


def _last_module(problem: BaseException) -> str:
    """Name of the module that raised an error."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def prepare(case: int, sound: list[Path], folder: Path) -> tuple[str, Path]:
    """Write the file of a case: first all hostile ones, then damaged ones. Return its kind and path."""
    if case < len(HOSTILE):
        kind, write = HOSTILE[case]
        return kind, write(folder)
    chosen = sound[case % len(sound)]
    return f"damaged {''.join(chosen.suffixes) or chosen.name}", damage(chosen, case, folder)


def _serve(connection: Connection, sound: list[Path]) -> None:
    """Read the files that arrive, with at most as much more memory as is allowed."""
    torch.set_num_threads(1)
    for path in sound:
        read("", path)  # everything that is imported on first use
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection.send(None)
    while True:
        connection.send(outcome(*connection.recv()))


def attack(cases: list[int], folder: Path) -> list[Found]:
    """Read the files of these cases in another process, which is started anew after an outcome that is not allowed."""
    context = multiprocessing.get_context("spawn")
    (folder / "sound").mkdir()
    sound, found = sound_files(folder / "sound"), list[Found]()
    ours, process = None, None
    for case in cases:
        place = folder / "case"
        place.mkdir()
        kind, path = prepare(case, sound, place)
        if process is None or ours is None:
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, sound), daemon=True)
            process.start()
            theirs.close()
            ours.recv()
        ours.send((kind, path))
        try:
            result = ours.recv() if ours.poll(PATIENCE) else "hang"
        except EOFError:
            result = "crash"
        found.append((kind, result, case))
        if result not in ALLOWED:
            print(f"case {case}, {kind}, {path.name}: {result}", file=sys.stderr, flush=True)
            process.kill()
            process = None
        shutil.rmtree(place)
    if process is not None:
        process.kill()
    return found


def counts(found: list[Found]) -> dict[str, int]:
    """How often each outcome occurred, also those that did not."""
    counted = Counter(result.partition(":")[0] for _, result, _ in found)
    return {name: counted[name] for name in (*ALLOWED, *FORBIDDEN)}


def table(found: list[Found]) -> str:
    """Outcomes by kind of file, as a table."""
    lines = [f"{'files':24}" + "".join(f"{name:>13}" for name in (*ALLOWED, *FORBIDDEN))]
    for kind in [*sorted({kind for kind, _, _ in found}), "all"]:
        row = counts([each for each in found if kind in (each[0], "all")])
        lines.append(f"{kind:24}" + "".join(f"{count:13,}" for count in row.values()))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=2000)
    parser.add_argument("--first", type=int, default=0, help="first case")
    parser.add_argument("--record", action="store_true", help="write the outcomes to benchmarks/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = attack(list(range(options.first, options.first + options.count)), Path(folder))
    print(table(found))
    if options.record:
        from record import record

        record("reliability-data-files", {"about": ABOUT, "cases": len(found), "outcomes": counts(found)}, seed=0)
    return 0 if all(result in ALLOWED for _, result, _ in found) else 1


if __name__ == "__main__":
    sys.exit(main())
