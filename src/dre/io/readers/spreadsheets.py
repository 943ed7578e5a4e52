"""Spreadsheets: the first sheet or a named one, as a table, whose header may stand below titles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dre.io.readers.frames import open_frame
from dre.io.readers.options import ReadOptions
from dre.io.readers.source import INSTALL, Source, SourceError, SourceFormat, as_source_error
from dre.io.readers.table import NUMBER
from dre.io.readers.workbook import checked_workbook
from dre.notation import unknown

OTHERS = (".xls", ".xlsb", ".ods")  # spreadsheets that are not read, since nothing checks what their sheets unfold to
MOST_TITLES, UNNAMED = 5, "__UNNAMED__"  # lines above a header, and the name that polars gives a column without one


def _open_spreadsheet(path: Path, part: str | None, options: ReadOptions) -> Source:
    try:
        import fastexcel  # polars reads spreadsheets by it
    except ImportError as problem:
        raise ImportError(f"{path} needs fastexcel: {INSTALL}") from problem

    with as_source_error(path):
        content = checked_workbook(path)
        sheets = fastexcel.read_excel(content).sheet_names
        if part is not None and part not in sheets:
            raise SourceError(f"{path}: {unknown('sheet', part, sheets)}")
        frame, above = _sheet(content, part or sheets[0])
        try:
            source = open_frame(path, _numbers_in_texts(frame), None, options)
        except SourceError as problem:
            if len(sheets) == 1 or part is not None:
                raise
            raise SourceError(f"{problem}.\n{_other_sheets(path, sheets)}") from problem
    notes = [_other_sheets(path, sheets)] if len(sheets) > 1 and part is None else []
    notes += [f"{above} line{'s' * (above > 1)} above the table left out"] if above else []
    return replace(source, messages=[*([] if options.features else notes), *source.messages])


def _sheet(content: bytes, name: str) -> tuple[Any, int]:
    """A sheet, and how many lines above its header are left out: titles, and headers over several columns."""
    import polars as pl

    for above in range(MOST_TITLES):
        frame = pl.read_excel(content, engine="calamine", sheet_name=name, read_options={"header_row": above})
        unnamed = sum(column.startswith(UNNAMED) for column in frame.columns)
        if unnamed <= len(frame.columns) / 3:
            return frame, above
    return pl.read_excel(content, engine="calamine", sheet_name=name), 0


def _other_sheets(path: Path, sheets: list[str]) -> str:
    return f"the first of {len(sheets)} sheets is read, {sheets[0]!r}; {path.name}:{sheets[1]} reads another one"


def _numbers_in_texts(frame: Any) -> Any:
    """Columns of texts that are numbers, which spreadsheets often hold, as numbers."""
    import polars as pl

    from dre.io.readers.typed import decimal_mark, typed_columns

    texts = frame.select(pl.col(pl.String)).fill_null("")
    if not texts.width:
        return frame
    columns, _, _ = typed_columns(texts.columns, texts, decimal_mark(texts))
    numbers = {each.name: pl.Series(each.name, each.values, nan_to_null=True) for each in columns if each.kind == NUMBER}
    return frame.with_columns(**numbers)


FORMATS = (SourceFormat((".xlsx",), part="sheet", open_with=_open_spreadsheet),)
