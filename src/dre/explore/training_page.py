"""A page that follows a training: it loads a script beside it every second, and ends as a page in one file."""

from __future__ import annotations

import base64
import os
import secrets
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from dre.atomic import WriteError, atomic_write, link_target
from dre.explore.encode import to_json
from dre.explore.page import Explorer, page, write_page
from dre.progress.activity import activities
from dre.progress.display import describe

Array = np.ndarray[Any, Any]
MARK = "/* dre follows a training. This file is removed when it ends. */"
BEAT = 1.0  # seconds from one version of the script to the next
STEPS = 2**16 - 1  # of a coordinate between the ends of its axis: finer than the pixels of a screen
OUTLIERS = 0.001  # of the points on each side of an axis may lie outside of the view


class TrainingPage:
    """The files of a page while a map is trained: the page, and a script with the latest frame.

    A browser refuses to read other files from a page on the disk, but it runs scripts that lie beside it, so that no server is
    needed. A thread writes the script, with the latest frame and what the program is doing.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.script = path.with_name(f"{path.stem}.training.js")
        self._part = path.with_name(f".{path.stem}.training.js.part")
        self._message: dict[str, Any] = {"id": secrets.token_hex(8), "state": "training", "losses": []}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._began, self._count = time.monotonic(), 0

    def check(self) -> None:
        """Raise an error if the script would overwrite a file of somebody else."""
        if self.script.exists() and not self.script.read_text(encoding="utf-8", errors="replace").startswith(MARK):
            raise FileExistsError(f"{self.script} is not a script of a training page: move it, or choose another page")

    def open(self, explorer: Explorer) -> None:
        """Write the page with its first points, and keep its script up to date from now on."""
        self.check()
        self._write()
        with atomic_write(self.path) as part:
            part.write_text(page(explorer, follow=quote(self.script.name)), encoding="utf-8")
        self._thread = threading.Thread(target=self._beat, name="dre training page", daemon=True)
        self._thread.start()

    def show(self, frame: dict[str, Any]) -> None:
        """Let the points move to a frame that `encode_frame` made."""
        self._message = {**self._message, "frame": frame}

    def tell(self, **facts: Any) -> None:
        """Change the state, the stage or the losses that are shown."""
        self._message = {**self._message, **facts}

    def finish(self, explorer: Explorer) -> None:
        """Replace the page by one that follows nothing, and remove the script: pages that are open load the new one."""
        self._end()
        write_page(self.path, explorer, force=True)
        self.script.unlink(missing_ok=True)

    def _end(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._part.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(BEAT):
            with suppress(OSError):  # a full disk does not end the training; the page says that it has no news
                self._write()

    def _write(self) -> None:
        """Write the script. A page never sees half of it."""
        self._count += 1
        doing = describe(activities(), time.monotonic() - self._began) if activities() else ""
        message = {**self._message, "count": self._count, "time": time.time(), "doing": doing}
        try:
            self._part.write_text(f"{MARK}\nwindow.dreTraining?.({to_json(message)});\n", encoding="utf-8")
            os.replace(self._part, self.script)
        except OSError as problem:
            if self._thread is None:  # the first time
                raise WriteError(f"{self.script} cannot be written: {problem.strerror}; choose another folder") from problem
            raise


def encode_frame(Y: Array, number: int) -> dict[str, Any]:
    """Encode coordinates (n, c) as whole numbers between the ends of each axis, one axis after the other.

    >>> frame = encode_frame(np.array([[0.0, 1.0], [2.0, 3.0]]), number=1)
    >>> frame["low"], frame["high"], np.frombuffer(base64.b64decode(frame["values"]), "<u2").tolist()
    ([0.0, 1.0], [2.0, 3.0], [0, 65535, 0, 65535])
    """
    points = Y.astype(np.float64)
    low, high = points.min(0), points.max(0)
    values = ((points - low) / np.maximum(high - low, 1e-300) * STEPS).round().astype("<u2")
    ends = np.quantile(points, [OUTLIERS, 1 - OUTLIERS], axis=0) if len(points) > 200 else np.stack([low, high])
    return {
        "number": number,
        "low": low.tolist(),
        "high": high.tolist(),
        "center": ends.mean(0).tolist(),
        "side": float((ends[1] - ends[0]).max()) or 1.0,
        "values": base64.b64encode(np.ascontiguousarray(values.T).tobytes()).decode("ascii"),
    }


def page_path(path: str | os.PathLike[str]) -> Path:
    """Return the file of a page, or raise an error if it has another suffix."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{target}: a page is an .html file")
    return Path(link_target(target))
