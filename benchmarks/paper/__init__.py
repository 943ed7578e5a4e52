"""The tables, figures and claims of the paper as data: plans, one runner, records, and a report on them."""
