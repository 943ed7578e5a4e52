"""Pictures of a map and of how far it can be believed; matplotlib is needed: the extra ``plot``."""

from dre.plot.centroids import centroids
from dre.plot.lies import where_it_lies
from dre.plot.recall import recall
from dre.plot.scatter import scatter
from dre.plot.shepard import shepard
from dre.plot.silhouette import silhouette
from dre.plot.stability import stability

__all__ = ["centroids", "recall", "scatter", "shepard", "silhouette", "stability", "where_it_lies"]
