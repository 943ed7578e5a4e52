"""Pictures for the report: inside the page itself, and as files beside the Markdown."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from pathlib import Path

from dre.compare.plans import Plans

KINDS = {".png": "png", ".webp": "webp", ".jpg": "jpeg", ".svg": "svg+xml"}
# Pictures that are drawn without a plan.
UNPLANNED = {
    "figure-1": ("Figure 1: the two networks", "Drawn from the modules as they are built for MNIST."),
    "figure-2": ("Figure 2: the schematic", "Drawn from the schedule of the paper's recipe."),
    "figure-5-published": (
        "Figure 5, continued: published maps of the RNA-Seq cells",
        "Maps that others computed of the same cells, in the published colours of their classes and of their clusters.",
    ),
}


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    about: str
    path: Path

    def relative_to(self, folder: Path) -> str:
        return Path(os.path.relpath(self.path, folder)).as_posix()

    def uri(self) -> str:
        """All of it as an address."""
        if self.path.suffix not in KINDS:
            raise ValueError(f"{self.path}: a page can show {', '.join(KINDS)}; save the picture as one of these")
        return f"data:image/{KINDS[self.path.suffix]};base64,{base64.b64encode(self.path.read_bytes()).decode()}"


def pictures(figures: dict[str, Path], plans: Plans) -> list[Picture]:
    """Those of the plans with what they say, any others with their names."""
    told = {figure.name: (figure.title, " ".join(figure.about.split())) for figure in plans.figures}
    found = []
    for name, path in figures.items():
        title, about = {**UNPLANNED, **told}.get(name, (name.replace("-", " ").capitalize(), ""))
        found.append(Picture(name, title, about, path))
    return found
