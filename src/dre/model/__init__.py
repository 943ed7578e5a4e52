"""What users hold: the estimators, the learned map, and its file."""
