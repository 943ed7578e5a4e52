"""Fit and transform a folder of Parquet files on a Ray cluster.

ray job submit --address http://HEAD:8265 --working-dir examples -- python ray_job.py s3://bucket/cells s3://bucket/embedded

Without a cluster, ``python examples/ray_job.py cells embedded`` starts a local Ray.
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
    parser.add_argument("--vector", help="column of vectors; by default all columns of numbers are mapped")
    parser.add_argument("--workers", type=int, default=2, help="processes that fit (default: 2)")
    parser.add_argument("--gpu", action="store_true", help="give each of them a GPU")
    parser.add_argument("--storage", help="folder or address that all nodes reach, for the result of the fit")
    parser.add_argument("--recipe", default="auto", help="recipe of DRE (default: auto)")
    options = parser.parse_args()

    rows = ray.data.read_parquet(options.data)
    columns = "numbers" if options.vector is None else None
    model = dre.ray.fit(
        rows,
        num_workers=options.workers,
        use_gpu=options.gpu,
        columns=columns,
        vector=options.vector,
        storage_path=options.storage,
        max_failures=3,
        recipe=options.recipe,
        random_state=0,
    )
    dre.ray.transform(rows, model, vector=options.vector).write_parquet(options.output)


if __name__ == "__main__":
    main()
