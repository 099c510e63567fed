"""Stands for a program of MXNet's: finds its peers as ps-lite does, by the DMLC_* variables, and sums over them.

The scheduler listens where DMLC_PS_ROOT_URI and _PORT say. Servers and workers dial it by that name, tell it where they
are reached, and get their ranks and the list of servers once all are there. Each worker pushes rank + 1 to every server
and pulls the sum over all workers, n(n+1)/2. The scheduler ends when all have said goodbye, and so do they when it has.

What is read, who listens where and how ranks are assigned is as in dmlc/ps-lite (src/van.cc, src/zmq_van.h): no
variable asks for a rank there, DMLC_WORKER_ID is BytePS's. It differs in this: ps-lite misses nobody and waits for
ever for a peer that is lost, where this one fails; a port of one's own cannot be asked for; and the messages are
simpler.
"""
import json
import os
import socket
import sys
import time

from events import tell

PATIENCE = 300  # seconds until a peer that is not there fails the run: images may still be pulled


class Peer:
    """A connection that carries a JSON value a line."""

    def __init__(self, connection):
        connection.settimeout(PATIENCE)
        self.connection, self.lines = connection, connection.makefile("r", encoding="utf-8")

    def send(self, **message):
        self.connection.sendall((json.dumps(message) + "\n").encode())

    def receive(self):
        line = self.lines.readline()
        if not line:
            raise ConnectionError("a peer hung up")
        return json.loads(line)


def dial(host, port):
    """Tries until the name resolves and somebody listens: pods start in any order."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return Peer(socket.create_connection((host, port), timeout=5))
        except OSError as err:
            if time.monotonic() > deadline:
                raise ConnectionError(f"dialling {host}:{port}: {err}") from err
            time.sleep(0.5)


def listen(host, port):
    return socket.create_server((host, port), backlog=1024)


def accept(listener):
    listener.settimeout(PATIENCE)
    return Peer(listener.accept()[0])


def root():
    return os.environ["DMLC_PS_ROOT_URI"], int(os.environ["DMLC_PS_ROOT_PORT"])


def count(role):
    return int(os.environ["DMLC_NUM_" + role.upper()])


def rank_all(group):
    """Ranks by address, in whatever order the peers came."""
    order = sorted(range(len(group)), key=lambda i: group[i]["address"])
    return [order.index(i) for i in range(len(group))]


def schedule():
    host, port = root()
    # A pod's own name is not always an address that it has, so ps-lite listens everywhere on Kubernetes.
    everywhere = int(os.environ.get("DMLC_USE_KUBERNETES", "0")) > 0
    listener = listen("" if everywhere else host, port)
    peers = {"server": [], "worker": []}
    while len(peers["server"]) < count("server") or len(peers["worker"]) < count("worker"):
        peer = accept(listener)
        known = peer.receive()
        if len(peers[known["role"]]) == count(known["role"]):
            raise RuntimeError(f"one {known['role']} too many: {known}")
        peers[known["role"]].append((known, peer))
    # All are counted before any may go on: servers wait for workers, not for the scheduler.
    ranks = {role: rank_all([known for known, _ in group]) for role, group in peers.items()}
    for role, group in peers.items():
        for rank, (_, peer) in zip(ranks[role], group):
            peer.send(rank=rank, servers=[known["address"] for known, _ in peers["server"]])
    everyone = [peer for group in peers.values() for _, peer in group]
    for peer in everyone:
        peer.receive()  # goodbye
    for peer in everyone:
        peer.send(goodbye=True)
    tell("mxnet", role="scheduler", rank=0, sum=None, servers=count("server"), workers=count("worker"))


def register(role, listener):
    scheduler = dial(*root())
    # What the variable says, else the address of the interface that leads outside.
    own = os.environ.get("DMLC_NODE_HOST") or scheduler.connection.getsockname()[0]
    scheduler.send(role=role, address=[own, listener.getsockname()[1]])
    return scheduler, scheduler.receive()


def leave(scheduler):
    scheduler.send(goodbye=True)
    scheduler.receive()


def serve():
    listener = listen("", 0)
    scheduler, reply = register("server", listener)
    workers = [accept(listener) for _ in range(count("worker"))]
    total = sum(worker.receive()["push"] for worker in workers)
    for worker in workers:
        worker.send(pull=total)
    tell("mxnet", role="server", rank=reply["rank"], sum=total)
    leave(scheduler)


def work():
    scheduler, reply = register("worker", listen("", 0))
    servers = [dial(*address) for address in reply["servers"]]
    for server in servers:
        server.send(push=reply["rank"] + 1)
    sums = {server.receive()["pull"] for server in servers}
    expected = count("worker") * (count("worker") + 1) // 2
    if sums != {expected}:
        raise RuntimeError(f"the servers' sums are {sorted(sums)}, not {expected}")
    tell("mxnet", role="worker", rank=reply["rank"], sum=expected, servers=len(servers),
         number=os.environ.get("DMLC_WORKER_ID"))
    leave(scheduler)


if __name__ == "__main__":
    roles = {"scheduler": schedule, "server": serve, "worker": work}
    role = os.environ.get("DMLC_ROLE")
    if role not in roles:
        sys.exit(f"DMLC_ROLE is {role}, not one of {', '.join(roles)}")
    roles[role]()
