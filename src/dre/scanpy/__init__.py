"""Maps of cells in scanpy's manner: ``dre.scanpy.tl.dre(adata)``, and new cells on the map of a reference.

Needs ``deep-recursive-embedding[scanpy]``.
"""

from dre.scanpy import tl
from dre.scanpy.stored import model

__all__ = ["model", "tl"]
