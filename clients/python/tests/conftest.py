from collections.abc import Iterator

import pytest

from .testbed import Testbed


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    testbed = Testbed()
    yield testbed
    testbed.close()
