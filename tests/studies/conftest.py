"""What tests of the studies share."""

import pytest


@pytest.fixture
def two_classes():
    """Rows of the study of quality."""
    from quality_tables import two_class_rows

    return two_class_rows()
