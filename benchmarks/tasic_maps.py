"""Neighborhood hit of published maps of the RNA-Seq cells, over classes and over clusters.

python benchmarks/tasic_maps.py --data FOLDER

The maps of de Bodt et al. (2025) show the cells of Tasic et al. (2018), which the paper embeds too. They show which hits are
possible at either level.
"""

from __future__ import annotations

import argparse

from dre.datasets.tasic2018 import reference_maps
from dre.metrics import neighborhood_hit_by_level
from record import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder with the files of the data sets; otherwise they are downloaded")
    reference = reference_maps(parser.parse_args().data)
    results = {}
    for name, Y in reference.maps.items():
        hits = neighborhood_hit_by_level(Y, reference.labels.levels, protocol="paper")
        results[name] = {level: round(hit, 4) for level, hit in hits.items()}
        print(name, results[name], flush=True)
    record("tasic-maps", results, protocol="paper", cells=len(reference.labels.samples))


if __name__ == "__main__":
    main()
