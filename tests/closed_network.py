"""No connection beyond this machine: tests pass without a network, and one that would need it fails and says so."""

import ctypes
import ipaddress
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

NOWHERE = "http://127.0.0.1:9"
"""A port that nothing listens on: what asks a proxy is refused at once."""


def close_network() -> None:
    """Forbid connections of this process, and of processes that it starts where the system can."""
    sys.addaudithook(_refuse)
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy"):
        os.environ[name] = os.environ[name.upper()] = NOWHERE
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1,::1"
    if sys.platform == "linux" and os.geteuid() == 0 and Path("/proc/self/ns/net").exists():
        _enter_empty_network()


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """The audit hook: a name is looked up, a stream is connected or a packet is sent."""
    if event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
        if _as_number(host) is not None:
            return
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        used, address = arguments[:2]
        # A datagram socket that is connected sends nothing: one asks so for the address of this machine.
        asks_only = event == "socket.connect" and used.type == socket.SOCK_DGRAM
        if used.family not in (socket.AF_INET, socket.AF_INET6) or address is None or asks_only:
            return
        host = address[0]
    else:
        return
    if not is_here(host):
        pytest.fail(
            f"This test asks for {host!r}, which is not on this machine. Tests open no connection: use a table that "
            "ships with the package, or skip the test with a message that says how to get the data."
        )


def is_here(host: str | bytes | None) -> bool:
    """Whether a host is this machine, by its loopback."""
    number = _as_number(host)
    if number is not None:
        return number.is_loopback or number.is_unspecified
    name = host.decode() if isinstance(host, bytes) else host
    return name in (None, "", "localhost", socket.gethostname())


def _as_number(host: str | bytes | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host or "")
    except ValueError:
        return None


def _enter_empty_network() -> None:
    """Leave the machine's network for one of a loopback alone, where this user may: child processes are there too."""
    import fcntl  # not on every system

    system, network = ctypes.CDLL(None, use_errno=True), 0x40000000  # CLONE_NEWNET
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        if system.unshare(network) == 0:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up and running
    except OSError:
        system.setns(before, network)  # without its loopback no test would pass
    finally:
        os.close(before)
