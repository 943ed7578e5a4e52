"""The two ways to count: the textbook's, and that of the paper's Table 1."""

STANDARD, PAPER = "standard", "paper"
PROTOCOLS = (STANDARD, PAPER)
