from collections.abc import Iterator

import grpc
import pytest

import retryd

from .fake_retryd import FakeRetryd, fake
from .service import Service, service
from .testbed import Testbed

__all__ = ["fake", "service", "testbed"]


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    testbed = Testbed()
    yield testbed
    testbed.close()


@pytest.fixture
def client(fake: FakeRetryd) -> Iterator[retryd.Client]:
    with retryd.Client(target=fake.address, tenant="shop", ask_timeout=5) as client:
        yield client


@pytest.fixture
def channel(client: retryd.Client, service: Service) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(service.address) as bare:
        yield grpc.intercept_channel(bare, client.interceptor())
