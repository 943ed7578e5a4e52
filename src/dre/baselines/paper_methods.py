"""The paper's own methods under one name each, and the package's default: DRE with preset parameters.

>>> from dre.baselines import make
>>> make("paper-deep-tsne", random_state=0)
DRE(random_state=0, recipe='paper-tsne', recursions=0)

``paper-deep-tsne`` and ``paper-deep-umap`` are the paper's networks before any recursion, ``paper-tsne`` adds the recursions
and ``paper`` the final UMAP stage, all trained as published. They are not the recipes ``deep-tsne`` and ``deep-umap``, which
use this package's own training. ``dre`` is ``DRE()``. Options are those of ``DRE`` and override the preset.

Z. Zhou, X. Zu, Y. Wang, B. P. F. Lelieveldt, Q. Tao: Deep recursive embedding for high-dimensional data. IEEE Transactions on
Visualization and Computer Graphics 28 (2022).
"""

from __future__ import annotations

from typing import Any

DRE_PRESETS: dict[str, dict[str, Any]] = {
    "paper-deep-tsne": {"recipe": "paper-tsne", "recursions": 0},
    "paper-deep-umap": {"recipe": "paper-umap", "recursions": 0},
    "paper-tsne": {"recipe": "paper-tsne"},
    "paper": {"recipe": "paper"},
    "dre": {},
}
