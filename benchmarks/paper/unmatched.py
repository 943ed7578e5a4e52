"""Why a selection asks for no cell: which part of it matches nothing, and what could be chosen instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dre.compare.jobs import Selection, jobs
from dre.compare.plan import ANYWHERE
from dre.compare.plans import Plans

NO_PANEL = "none"  # what ANYWHERE is called on the command line


def check_matches(plans: Plans, selection: Selection) -> None:
    """Data, methods and panels are looked at in turn: the first that leaves nothing is named.

    A figure that is drawn without any measurement asks for no cell, and rightly so.
    """
    so_far = Selection(selection.plans)
    if jobs(plans, selection) or not jobs(plans, so_far):
        return
    panels = dict.fromkeys([ANYWHERE, *(panel for table in plans.tables for panel in table.panels)])
    for part, word, option, known in (
        ("data", "data", "--only-data", plans.data),
        ("methods", "method", "--only-methods", plans.methods),
        ("panels", "panel", "--panels", panels),
    ):
        asked = getattr(selection, part)
        narrowed = replace(so_far, **{part: asked})
        if not jobs(plans, narrowed):
            choices = [name for name in known if jobs(plans, replace(so_far, **{part: (name,)}))]
            raise ValueError(
                f"nothing to run: no cell of {_described(so_far)} has the {word} {_listed(asked, ' or ')}; "
                f"{option} can be {_listed(choices, ', ')}"
            )
        so_far = narrowed


def _described(selection: Selection) -> str:
    """What was left before the part that matches nothing."""
    kinds = (("data", selection.data), ("methods", selection.methods))
    narrowed = "".join(f" with the {kind} {', '.join(names)}" for kind, names in kinds if names)
    return (", ".join(selection.plans) or "the plans") + narrowed


def _listed(names: Iterable[str], between: str) -> str:
    return between.join(NO_PANEL if name == ANYWHERE else name for name in names)
