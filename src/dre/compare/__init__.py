"""Methods side by side on the same rows, fitted, embedded and scored in the same way."""

from __future__ import annotations
