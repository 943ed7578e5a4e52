"""Pictures of a map and of how far it can be believed; matplotlib is needed: the extra ``plot``."""

from dre.plot.centroids import centroids
from dre.plot.history import history
from dre.plot.lies import where_it_lies
from dre.plot.palette import class_colours, hexes
from dre.plot.recall import recall
from dre.plot.save import save
from dre.plot.scatter import scatter
from dre.plot.shepard import shepard
from dre.plot.silhouette import silhouette
from dre.plot.stability import stability
from dre.plot.stages import stages

__all__ = [
    "centroids",
    "class_colours",
    "hexes",
    "history",
    "recall",
    "save",
    "scatter",
    "shepard",
    "silhouette",
    "stability",
    "stages",
    "where_it_lies",
]
