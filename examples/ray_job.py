"""Fit and transform a folder of Parquet files on a Ray cluster.

ray job submit --address http://HEAD:8265 --working-dir examples -- \\
    python ray_job.py s3://bucket/cells s3://bucket/embedded --vector embedding --storage s3://bucket/runs --workers 8 --gpu

Without a cluster, ``python examples/ray_job.py cells embedded --vector embedding`` starts a local Ray.
"""

from __future__ import annotations

import argparse

import ray.data

import dre.ray


def main() -> None:
    """Read, fit, transform and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder of Parquet files")
    parser.add_argument("output", help="folder for the rows with their coordinates")
    columns = parser.add_mutually_exclusive_group(required=True)
    columns.add_argument("--columns", nargs="+", help="columns of numbers to map; the others are carried along")
    columns.add_argument("--vector", help="column of vectors to map")
    parser.add_argument("--workers", type=int, default=2, help="processes that fit (default: 2)")
    parser.add_argument("--gpu", action="store_true", help="give each of them a GPU")
    parser.add_argument("--storage", help="folder or address that all nodes reach, for the result of the fit")
    parser.add_argument("--recipe", default="auto", help="recipe of DRE (default: auto)")
    options = parser.parse_args()

    rows = ray.data.read_parquet(options.data)
    model = dre.ray.fit(
        rows,
        num_workers=options.workers,
        use_gpu=options.gpu,
        columns=options.columns,
        vector=options.vector,
        storage_path=options.storage,
        max_failures=3,
        recipe=options.recipe,
        random_state=0,
    )
    dre.ray.transform(rows, model, vector=options.vector).write_parquet(options.output)


if __name__ == "__main__":
    main()
