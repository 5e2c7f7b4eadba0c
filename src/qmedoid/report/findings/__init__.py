"""Coded findings about a model and a table: problem, tip or passed, why, and what to do."""

# The modules register their findings.
from qmedoid.report.findings import model as _model
from qmedoid.report.findings import table as _table
from qmedoid.report.findings.facts import FINDINGS, ReportFacts, check_codes, evaluate_findings

__all__ = ["FINDINGS", "ReportFacts", "check_codes", "evaluate_findings"]
del _model, _table
