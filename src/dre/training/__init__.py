"""The loop that carries a plan out, and how its steps are made."""
