"""The comparison of the paper as data: plans say what is run, one runner runs it, and a report is read off its records."""
