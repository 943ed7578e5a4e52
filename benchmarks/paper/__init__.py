"""The paper's tables, figures and claims: the spec as data, a runner, stored results and a report."""
