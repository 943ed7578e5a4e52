"""Our own methods under the names that the tables of the paper have for them.

>>> from dre.baselines import make
>>> make("deep-tsne", random_state=0)
DRE(random_state=0, recipe='paper-tsne', recursions=0)

Those of the paper are carried out as published (``dre.plan``), and ``dre`` is what ``DRE()`` makes of the data. Options are
the parameters of ``DRE``; one that is passed takes the place of the one below.

Z. Zhou, X. Zu, Y. Wang, B. P. F. Lelieveldt, Q. Tao: Deep recursive embedding for high-dimensional data. IEEE Transactions on
Visualization and Computer Graphics 28 (2022).
"""

from __future__ import annotations

from typing import Any

OURS: dict[str, dict[str, Any]] = {
    "deep-tsne": {"recipe": "paper-tsne", "recursions": 0},
    "deep-umap": {"recipe": "paper-umap", "recursions": 0},
    "dr-tsne": {"recipe": "paper-tsne"},
    "dre-paper": {"recipe": "paper"},
    "dre": {},
}
