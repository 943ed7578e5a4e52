"""Quality metrics of an embedding: the six of the paper and more, exact at full size, per embedding or per point."""

from dre.metrics.centroids import CentroidDistances, centroid_correlation, centroid_distances
from dre.metrics.evaluation import Evaluation, evaluate, quick_scores
from dre.metrics.neighborhood_hit import nearest_neighbor, neighborhood_hit, neighborhood_hit_by_level
from dre.metrics.procrustes import align, align_stages, procrustes_distance
from dre.metrics.recall import neighbor_agreement, neighbor_recall
from dre.metrics.shepard import shepard_goodness
from dre.metrics.shepard_diagram import ShepardDiagram, shepard_diagram
from dre.metrics.silhouette import silhouette
from dre.metrics.stress import normalized_stress
from dre.metrics.trustworthiness import continuity, trustworthiness

__all__ = [
    "CentroidDistances",
    "Evaluation",
    "ShepardDiagram",
    "align",
    "align_stages",
    "centroid_correlation",
    "centroid_distances",
    "continuity",
    "evaluate",
    "nearest_neighbor",
    "neighbor_agreement",
    "neighbor_recall",
    "neighborhood_hit",
    "neighborhood_hit_by_level",
    "normalized_stress",
    "procrustes_distance",
    "quick_scores",
    "shepard_diagram",
    "shepard_goodness",
    "silhouette",
    "trustworthiness",
]
