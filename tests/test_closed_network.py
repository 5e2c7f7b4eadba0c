"""Tests open no connection beyond this machine, and one that tries is told."""

import os
import socket
import subprocess
import sys
import urllib.request

import pytest
from tests.closed_network import NOWHERE

ELSEWHERE = "192.0.2.1"  # of a block that documents use: it is no machine's


def connect_by_name():
    socket.create_connection(("data.example", 443), timeout=1)


def connect_by_number():
    socket.create_connection((ELSEWHERE, 443), timeout=1)


def connect_and_return_an_error():
    with socket.socket() as stream:
        stream.connect_ex((ELSEWHERE, 443))


def send_a_packet():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        packets.sendto(b"hello", (ELSEWHERE, 53))


def open_an_address():
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://data.example/table.csv", timeout=1)


@pytest.mark.parametrize(
    "attempt", [connect_by_name, connect_by_number, connect_and_return_an_error, send_a_packet, open_an_address]
)
def test_connection_beyond_this_machine_fails_the_test(attempt):
    # No handler of errors takes it for a network that is down: it is no Exception.
    with pytest.raises(pytest.fail.Exception, match=r"which is not on this machine. Tests open no connection"):
        attempt()


def test_child_process_asks_a_proxy_that_is_not_there():
    code = "import urllib.request; urllib.request.urlopen('http://data.example/table.csv', timeout=5)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 1
    assert "Connection refused" in child.stderr or "10061" in child.stderr
    assert os.environ["https_proxy"] == NOWHERE
