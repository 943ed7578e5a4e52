"""The plan of a run as data: schedules, recipes, and what users override."""
