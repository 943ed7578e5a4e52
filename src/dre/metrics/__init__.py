"""How good a map is: the six measures of the paper and more, exact at full size, and where the map lies."""

from dre.metrics.centroids import CentroidDistances, centroid_correlation, centroid_distances
from dre.metrics.evaluation import Evaluation, evaluate
from dre.metrics.nearest_neighbor import nearest_neighbor
from dre.metrics.neighborhood_hit import neighborhood_hit, neighborhood_hit_by_level
from dre.metrics.recall import neighbor_agreement, neighbor_recall
from dre.metrics.shepard import shepard_goodness
from dre.metrics.shepard_diagram import ShepardDiagram, shepard_diagram
from dre.metrics.silhouette import silhouette
from dre.metrics.stability import laid_over, procrustes_distance
from dre.metrics.stress import normalized_stress
from dre.metrics.trustworthiness import continuity, trustworthiness

__all__ = [
    "CentroidDistances",
    "Evaluation",
    "ShepardDiagram",
    "centroid_correlation",
    "centroid_distances",
    "continuity",
    "evaluate",
    "laid_over",
    "nearest_neighbor",
    "neighbor_agreement",
    "neighbor_recall",
    "neighborhood_hit",
    "neighborhood_hit_by_level",
    "normalized_stress",
    "procrustes_distance",
    "shepard_diagram",
    "shepard_goodness",
    "silhouette",
    "trustworthiness",
]
