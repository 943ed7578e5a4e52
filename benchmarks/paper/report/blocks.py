"""What a table on the page is made of: texts, shades and notes, ready to be laid out."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shown:
    """One cell: a text, its shade (0 to 8, or none), and the numbers of the notes below that belong to it."""

    text: str
    shade: int | None = None
    small: str = ""  # the spread over the seeds
    hint: str = ""  # each seed's value and its record
    notes: tuple[int, ...] = ()
    best: bool = False
    square: str = ""


@dataclass(frozen=True)
class Entry:
    here: Shown
    paper: Shown | None = None
    difference: Shown | None = None


@dataclass(frozen=True)
class Column:
    title: str
    has_paper: bool
    has_difference: bool
    compared: str = "diff."

    @property
    def heads(self) -> list[str]:
        return ["here", *(["paper"] if self.has_paper else []), *([self.compared] if self.has_difference else [])]


@dataclass(frozen=True)
class Line:
    title: str
    ours: bool
    in_sample: bool
    seeds: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Block:
    """A table on the page: one of a table's panels or data sets, or all of them where each is one column."""

    title: str
    facts: tuple[str, ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]

    @property
    def any_in_sample(self) -> bool:
        return any(line.in_sample for line in self.lines)

    @property
    def any_spread(self) -> bool:
        return any(entry.here.small for line in self.lines for entry in line.entries)


@dataclass(frozen=True)
class Page:
    name: str
    title: str
    about: str
    blocks: tuple[Block, ...]


@dataclass
class Notes:
    """Numbers the notes of a block; the same text has the same number."""

    texts: list[str] = field(default_factory=list)

    def number(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1
