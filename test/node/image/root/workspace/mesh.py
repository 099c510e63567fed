"""A program of gloo's shape: every rank says the sum of rank + 1 over all, which it has from each other directly.

Like gloo, ranks tell their addresses to each other in the launcher's store, and then everyone dials everyone.
"""
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request

from events import tell

STORE = "http://{HOROVOD_GLOO_RENDEZVOUS_ADDR}:{HOROVOD_GLOO_RENDEZVOUS_PORT}/mesh/{{}}"
PATIENCE = 60


def put(key, value):
    url = STORE.format_map(os.environ).format(key)
    urllib.request.urlopen(urllib.request.Request(url, value.encode(), method="PUT"))


def get(key):
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(STORE.format_map(os.environ).format(key)) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as err:
            if err.code != 404 or time.monotonic() > end:
                raise
            time.sleep(0.2)


def main():
    rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
    interface = os.environ["HOROVOD_GLOO_IFACE"]
    show = ["ip", "-4", "-o", "address", "show", interface]
    said = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    with socket.create_server((said.split()[3].split("/")[0], 0), backlog=size) as server:
        server.settimeout(PATIENCE)
        host, port = server.getsockname()
        put(rank, f"{host} {port}")
        for other in range(size):
            host, port = get(other).split()
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as peer:
                peer.sendall(b"%d" % (rank + 1))
        total = 0
        for _ in range(size):
            peer, _ = server.accept()
            with peer:
                total += int(peer.makefile().read())
    tell("gloo", rank=rank, size=size, sum=total)


if __name__ == "__main__":
    main()
