"""Coded findings about a model and a table: problem, tip or passed, why, and what to do."""

# The modules register their findings.
from qmedoid.model_report.findings import figures as _figures
from qmedoid.model_report.findings import model as _model
from qmedoid.model_report.findings import table as _table
from qmedoid.model_report.findings import training as _training
from qmedoid.model_report.findings.facts import Facts, gather
from qmedoid.model_report.findings.registry import FINDINGS, Finding, Verdict, check_codes, judged

__all__ = ["FINDINGS", "Facts", "Finding", "Verdict", "check_codes", "gather", "judged"]
del _figures, _model, _table, _training
