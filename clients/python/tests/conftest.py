from collections.abc import Iterator

import pytest

from .fake_retryd import fake
from .service import service
from .testbed import Testbed

__all__ = ["fake", "service", "testbed"]


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    testbed = Testbed()
    yield testbed
    testbed.close()
