"""A map as one page of HTML that needs nothing else: to be opened by a double click, looked into and passed on."""

from dre.explore.built import explorer
from dre.explore.page import Explorer, Stage, write_page

__all__ = ["Explorer", "Stage", "explorer", "write_page"]
