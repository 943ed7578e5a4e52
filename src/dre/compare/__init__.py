"""Compare embedding methods on the same rows: fit, embed and score each in the same way."""

from __future__ import annotations

from dre.compare.comparison import Comparison
from dre.compare.run import compare

__all__ = ["Comparison", "compare"]
