"""Exit codes of the commands, beside 0 and 1."""

USAGE_ERROR = 2
INTERRUPTED = 130  # that of shells for Ctrl-C
