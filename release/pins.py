"""Read a list of pins: lines ``name==version``, and after ``#`` the reason for an exception.

>>> parse("# tools\\ntorch==2.13.0  # no hash: every build has its own")
[Pin(name='torch', version='2.13.0', note='no hash: every build has its own')]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LISTS = (ROOT / "constraints.txt", ROOT / "release" / "minimal.txt", ROOT / "release" / "audit.txt")
NO_HASH = "no hash: "
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.!+]+)(\s+#\s*(?P<note>.+))?")


@dataclass(frozen=True)
class Pin:
    """One package at one version."""

    name: str  # normalized, as an index has it: typing-extensions
    version: str
    note: str = ""

    @property
    def hashed(self) -> bool:
        """Whether the lock file has the hashes of this package."""
        return not self.note.startswith(NO_HASH)


def normalized(name: str) -> str:
    """Return the name as an index has it.

    >>> normalized("typing_extensions")
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(text: str) -> list[Pin]:
    """Return the pins of a text. A line that is neither a pin nor a comment is an error."""
    pins = []
    for line in text.splitlines():
        found = PIN.fullmatch(line.strip())
        if found:
            pins.append(Pin(normalized(found["name"]), found["version"], found["note"] or ""))
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"{line!r} is not a pin: write name==version")
    return pins


def lock_of(pins: Path) -> Path:
    """Return the file with the hashes of these pins: constraints.lock for constraints.txt."""
    return pins.with_suffix(".lock")
