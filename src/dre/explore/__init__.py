"""Interactive HTML pages: one self-contained file that shows a map, its stages and its rows."""

from dre.explore.build import build_explorer
from dre.explore.page import Explorer, ShownMap, StageView, write_page
from dre.explore.watch import Watch

__all__ = ["Explorer", "ShownMap", "StageView", "Watch", "build_explorer", "write_page"]
