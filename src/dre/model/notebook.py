"""A fitted model as a notebook shows it: its stages, time, scores and a small map. Every text in it is escaped."""

from __future__ import annotations

import html
from typing import Any

from dre.data.subsample import evenly_spaced_ids
from dre.model.fitted import Array, FittedMap
from dre.model.shown_labels import MOST_POINTS
from dre.model.stage_summary import StageSummary, summarize_stages
from dre.plot.colors import color_by
from dre.plot.raster import image_element, point_colors

MOST_STAGES = 40  # of the table
MOST_TEXT = 300  # characters of a text
SHOWN = 260  # pixels of the place where the map is shown
# Only colors that suit light and dark notebooks: those of the text, and gray lines.
LINE = "1px solid rgba(128,128,128,.35)"
CELL = f"padding:2px 14px 2px 0;border-top:{LINE};vertical-align:top;text-align:left"
NUMBER = f"padding:2px 14px 2px 0;border-top:{LINE};vertical-align:top;text-align:right;white-space:nowrap"


def model_html(
    title: str,
    code: str,
    fitted: FittedMap,
    embedding: Array | None,
    *,
    labels: Array | None = None,
    remarks: tuple[str, ...] = (),
) -> str:
    """Return the summary of a model.

    Parameters
    ----------
    title : str
        Name of its class.
    code : str
        The call that makes it, as ``repr`` returns it.
    fitted : FittedMap
    embedding : array of shape (n, n_components) or None
        Of the fitted rows; None for a model from a file.
    labels : array, optional
        Of the rows that are shown, by which they are colored: `shown_labels`.
    remarks : tuple of str
        More to say of the fit.
    """
    account = fitted.account
    stages = summarize_stages(
        fitted.history, fitted.recipe.schedule, len(fitted.stages), None if account is None else account.stages
    )
    facts = [*_facts(fitted, embedding), *remarks]
    left = [
        f'<div style="font-size:15px;font-weight:600;margin-bottom:2px">{_text(title)}, fitted</div>',
        *(f'<div style="margin:1px 0">{_text(fact)}</div>' for fact in facts),
        _table(stages, whole=account is not None),
        f'<div style="margin-top:8px;opacity:.75;font:12px ui-monospace,monospace;overflow-wrap:anywhere">{_text(code)}</div>',
    ]
    body = f'<div style="flex:1 1 380px;min-width:0">{"".join(left)}</div>{_picture(embedding, labels)}'
    style = "display:flex;flex-wrap:wrap;gap:20px;font:13px/1.45 system-ui,sans-serif;max-width:900px"
    return f'<div class="dre-model" style="{style}">{body}</div>'


def _facts(fitted: FittedMap, embedding: Array | None) -> list[str]:
    account = fitted.account
    shape = " × ".join(map(str, fitted.shape))
    parameters = sum(p.numel() for p in fitted.encoder.parameters())
    dimensions = "1 dimension" if fitted.n_components == 1 else f"{fitted.n_components} dimensions"
    if account is None or embedding is None:
        first = f"Rows of {shape} values → {dimensions}"
    else:
        first = f"{len(embedding):,} rows of {shape} values → {dimensions}"
        first += f" in {account.seconds:.1f} s on {account.runtime}" if account.runtime else ""
    facts = [first, f"{fitted.recipe.encoder}, {parameters:,} parameters"]
    if account is not None and embedding is not None and 0 < account.rows < len(embedding):
        facts.append(f"fitted to {account.rows:,} of them; the network has embedded the others")
    if account is not None and account.trust is not None:
        facts.append(f"trustworthiness {account.trust:.3f}, of a sample of the fitted rows")
    return facts


def _table(stages: list[StageSummary], *, whole: bool) -> str:
    heads = (("stage", CELL), ("", CELL), ("epochs", NUMBER), ("loss", NUMBER), ("time" if whole else "time in epochs", NUMBER))
    head = "".join(f'<th style="{style};border-top:0;opacity:.7;font-weight:400">{name}</th>' for name, style in heads)
    rows = [_row(stage) for stage in stages[:MOST_STAGES]]
    left = len(stages) - MOST_STAGES
    more = f'<tr><td colspan="5" style="{CELL}">and {left:,} more</td></tr>' if left > 0 else ""
    style = "border-collapse:collapse;margin:8px 0 0;font-size:12.5px;font-variant-numeric:tabular-nums"
    return f'<div style="overflow-x:auto"><table style="{style}"><tr>{head}</tr>{"".join(rows)}{more}</table></div>'


def _row(stage: StageSummary) -> str:
    notes = [stage.outcome] if stage.outcome else []
    if stage.trust is not None:
        before, after = stage.trust
        notes.append(f"trustworthiness {before:.3f} before it, {after:.3f} after")
    note = f'<div style="opacity:.7">{_text(", ".join(notes))}</div>' if notes else ""
    plan = f'<code style="background:none;color:inherit;overflow-wrap:anywhere">{_text(stage.plan)}</code>{note}'
    loss = "" if stage.loss is None else f"{stage.loss:.4g}"
    took = f"{stage.seconds:.1f} s" if stage.seconds else ""
    cells = ((str(stage.number), CELL), (plan, CELL), (str(stage.epochs or ""), NUMBER), (loss, NUMBER), (took, NUMBER))
    return "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for cell, style in cells) + "</tr>"


def _picture(embedding: Array | None, labels: Array | None) -> str:
    if embedding is None:
        remark = "The file of a model has no embedding: <code>transform(X)</code> computes the map."
        return f'<div style="flex:0 1 {SHOWN}px;opacity:.7">{remark}</div>'
    shown = embedding[evenly_spaced_ids(len(embedding), MOST_POINTS)]
    note = f"{len(shown):,} of {len(embedding):,} rows" if len(shown) < len(embedding) else ""
    if embedding.shape[1] > 2:
        note = ", ".join(filter(None, (note, f"the first two of {embedding.shape[1]} dimensions")))
    if labels is not None:
        note = ", ".join(filter(None, (note, "colored by y")))
    caption = f'<div style="opacity:.7;font-size:12px">{_text(note)}</div>' if note else ""
    image = image_element(shown, point_colors(color_by(labels, len(shown)), len(shown)), SHOWN)
    return f'<div style="flex:0 1 auto">{image}{caption}</div>'


def _text(value: Any) -> str:
    text = str(value)
    return html.escape(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…")
