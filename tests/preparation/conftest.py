"""What tests of `prepare` on disk and in stores share."""

import pytest

from noisegen.preparation import prepare


@pytest.fixture
def made(monkeypatch):
    """Return the numbers of the portions that runs in this process make."""
    numbers, make = [], prepare.make_candidates

    def counted(job, portion):
        numbers.append(portion.number)
        return make(job, portion)

    monkeypatch.setattr(prepare, "make_candidates", counted)
    return numbers
