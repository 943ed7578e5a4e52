"""Plots of an embedding and of its quality; they need matplotlib, the extra ``plot``."""

from dre.plot.diagrams import centroids, recall, shepard, silhouette
from dre.plot.distortion import distortion, stability
from dre.plot.history import history
from dre.plot.pairs import pairs
from dre.plot.save import save
from dre.plot.scatter import scatter
from dre.plot.stages import stages

__all__ = [
    "centroids",
    "distortion",
    "history",
    "pairs",
    "recall",
    "save",
    "scatter",
    "shepard",
    "silhouette",
    "stability",
    "stages",
]
