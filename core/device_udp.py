"""A device behind a socket: how a vendor's driver that is a program of its own is plugged in.

The driver sends datagrams with the number of the message, place [m] and unit quaternion (w, x, y, z) of its handle,
eight little-endian doubles, as often as it likes, to the port of this device; whoever was heard last gets a datagram
with the torque [N m] and force [N] to exert, six of them, after every turn. What is lost or late is missed by nobody.
"""

from __future__ import annotations

import contextlib
import math
import socket
import struct
from collections.abc import Sequence

from .port import Limits

POSE, FORCE = struct.Struct("<8d"), struct.Struct("<6d")


class UdpDevice:
    """Listens on a `port` of this `host`, 0 for any that is free, which `port` then tells; `refused` counts datagrams
    that are none of ours."""

    def __init__(
        self, port: int = 0, host: str = "127.0.0.1", *, rate: float = 1000.0, limits: Limits | None = None
    ) -> None:
        self.rate, self.limits = rate, limits or Limits()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind((host, port))
        self.port: int = self._socket.getsockname()[1]
        self.refused, self._number, self._driver = 0, -math.inf, None

    def pose(self, now: float) -> Sequence[float] | None:
        newest = None
        # more than a few at once are answered in the next turn
        for _ in range(16):
            try:
                datagram, driver = self._socket.recvfrom(2 * POSE.size)
            except (BlockingIOError, ConnectionResetError):
                break
            if len(datagram) != POSE.size:
                self.refused += 1
                continue
            number, *pose = POSE.unpack(datagram)
            if driver != self._driver or number > self._number:
                self._driver, self._number, newest = driver, number, pose
        return newest

    def push(self, force: Sequence[float], now: float) -> None:
        if self._driver is not None:
            # who cannot be reached now may be there again in the next turn
            with contextlib.suppress(OSError):
                self._socket.sendto(FORCE.pack(*force), self._driver)

    def close(self) -> None:
        self._socket.close()
