"""The controllers: a Deployment that is rolled, and the EndpointSlice that follows its pods."""

import asyncio
import time

from .pod import Pod
from .service import Service


class Deployment:
    """`replicas` pods; one more while it is rolled (maxSurge 1), never one less (maxUnavailable 0)."""

    def __init__(self, tools, service: Service, replicas: int) -> None:
        self.tools = tools
        self.service = service
        self.replicas = replicas
        self.pods: list[Pod] = []
        self.ending: list[asyncio.Task] = []
        self.kills_ms: list[int] = []

    async def start(self) -> None:
        for _ in range(self.replicas):
            await self.add()
        await self.service.until_published(len(self.pods))

    async def restart(self) -> None:
        """As `kubectl rollout restart` does it: the next pod goes when its successor is ready."""
        for old in list(self.pods):
            await self.add()
            self.delete(old)
        await asyncio.gather(*self.ending)
        self.ending.clear()

    async def crash(self) -> None:
        """Each pod dies in its turn. The kubelet notices, and a new one takes its place."""
        for victim in list(self.pods):
            self.pods.remove(victim)
            self.kills_ms.append(time.time_ns() // 1_000_000)
            victim.process.kill()
            await victim.ended()
            await self.add()
            await self.service.until_published(len(self.pods))

    async def add(self) -> None:
        pod = Pod(self.tools, self.publish)
        await pod.start()
        self.pods.append(pod)
        await pod.ready.wait()

    def delete(self, pod: Pod) -> None:
        """SIGTERM and the news that it is gone set out at the same time; the news arrive later."""
        self.pods.remove(pod)
        self.ending.append(asyncio.ensure_future(pod.terminate()))
        self.publish()

    def publish(self) -> None:
        self.service.publish([pod.address for pod in self.pods if pod.ready.is_set()])

    async def stop(self) -> None:
        await asyncio.gather(*(pod.terminate() for pod in self.pods), *self.ending)
        # Later news would be about nobody.
        self.service.close()
