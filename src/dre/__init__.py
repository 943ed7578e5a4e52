"""Deep Recursive Embedding: maps of high-dimensional data by a network that learns the map.

Names are imported when they are first used, so that ``import dre`` alone costs nothing; ``__init__.pyi`` lists them.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
