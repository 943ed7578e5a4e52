"""What tests of datasets can ask for."""

from __future__ import annotations

from stand_ins import network, real

__all__ = ["network", "real"]
