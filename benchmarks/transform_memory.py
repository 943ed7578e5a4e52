"""Peak memory of dre transform on Parquet files of more and more rows, each in a process of its own.

python benchmarks/transform_memory.py                                # results/transform-memory.json
python benchmarks/transform_memory.py --rows 20000 40000 --out FILE  # a try
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from record import record

ROWS = (600_000, 1_200_000, 2_400_000, 4_800_000)
COLUMNS, FITTED, GROUP_ROWS, SAMPLED = 20, 2_000, 2**16, 0.02


def make_file(path: Path, rows: int) -> None:
    """Write random rows with an id, one row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(COLUMNS)]
    schema = pa.schema([("id", pa.string()), *((name, pa.float32()) for name in names)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP_ROWS):
            count = min(GROUP_ROWS, rows - start)
            values = rng.standard_normal((COLUMNS, count), dtype=np.float32)
            writer.write_table(pa.table([[f"row {i}" for i in range(start, start + count)], *values], schema=schema))


def watched(command: list[str]) -> dict[str, float]:
    """Run a command; return its seconds and the peak of its anonymous memory."""
    began, peak = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            lines = [line for line in status.read_text().splitlines() if line.startswith("RssAnon")]
            peak = max([peak, *(int(line.split()[1]) * 1024 / 1e6 for line in lines)])
            time.sleep(SAMPLED)
        if process.returncode:
            raise SystemExit(process.stderr.read() if process.stderr else f"exit code {process.returncode}")
    return {"anonymous_mb": round(peak), "seconds": round(time.perf_counter() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        data, model, out = (Path(folder, name) for name in ("rows.parquet", "model.safetensors", "embedding.parquet"))
        make_file(data, FITTED)
        command = [sys.executable, "-m", "dre"]
        words = ["fit", str(data), "-o", str(model), "--recipe", "fast", "--seed", "0"]
        subprocess.run([*command, *words], check=True, capture_output=True)
        for rows in arguments.rows:
            make_file(data, rows)
            out.unlink(missing_ok=True)
            found.append({"rows": rows, **watched([*command, "transform", str(model), str(data), "-o", str(out)])})
            print(found[-1], flush=True)
    record(arguments.out or "transform-memory", found, seed=0)


if __name__ == "__main__":
    main()
