"""Does the same to a TCPStore, operation by operation, and prints what became of each, a line each.

With "own" as its argument it makes torch's own server, otherwise it is a client of the one at HOST:PORT. Lines of two
servers that are one to their clients are equal. An operation that this torch does not have is left out. A second
argument is how many bytes the longest value has.
"""
import datetime
import random
import socket
import sys
import threading

import torch.distributed as dist

PATIENCE = datetime.timedelta(seconds=30)
HURRY = datetime.timedelta(milliseconds=400)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


where = sys.argv[1]
longest = int(sys.argv[2]) if len(sys.argv) > 2 else 7 << 20
if where == "own":
    port = free_port()
    server = dist.TCPStore("127.0.0.1", port, None, True, PATIENCE, wait_for_workers=False)
else:
    port = int(where.rsplit(":", 1)[1])


def client():
    return dist.TCPStore("127.0.0.1", port, None, False, PATIENCE, wait_for_workers=False)


def show(what, outcome):
    print(f"op {what}: {outcome}", flush=True)


def attempt(what, call):
    """Prints what a call returns, or that it fails: how, is the client's own affair."""
    try:
        show(what, call())
    except Exception:
        show(what, "error")


def has(name):
    return hasattr(dist.TCPStore, name)


def late(call):
    """Runs a call beside what follows, and waits for it in the end."""
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def basics(a, b):
    a.set("k", "v1")
    attempt("get", lambda: b.get("k"))
    attempt("compare_set equal", lambda: a.compare_set("k", "v1", "v2"))
    attempt("compare_set other", lambda: a.compare_set("k", "zz", "v3"))
    attempt("compare_set new", lambda: b.compare_set("new", "", "x"))
    attempt("compare_set absent", lambda: a.compare_set("absent", "zz", "x"))
    attempt("check absent", lambda: a.check(["absent"]) if has("check") else None)
    for text in ("7", " 7", "3abc", "+5", "-2", "\t12 x"):
        a.set("number", text)
        attempt(f"add to {text!r}", lambda: b.add("number", 1))
        attempt(f"add to {text!r} left", lambda: a.get("number"))
    attempt("add new", lambda: a.add("fresh", 0))
    attempt("num_keys", a.num_keys)
    attempt("delete", lambda: b.delete_key("k"))
    attempt("delete again", lambda: a.delete_key("k"))
    attempt("num_keys after delete", b.num_keys)
    a.set("empty", "")
    attempt("empty value", lambda: b.get("empty"))
    a.set("long key " + "k" * 8000, "v" * longest)
    attempt("long value", lambda: len(b.get("long key " + "k" * 8000)))
    if has("append"):
        a.append("grown", "1")
        a.append("grown", "23")
        attempt("append", lambda: b.get("grown"))
    if has("multi_set"):
        a.multi_set(["m1", "m2"], ["x", ""])
        attempt("multi_get", lambda: b.multi_get(["m1", "m2", "new"]))
    if has("list_keys"):
        attempt("list_keys", lambda: sorted(key[:20] for key in a.list_keys() if not key.startswith("init")))


def waiting(a, b):
    thread = late(lambda: b.set("w1", "late"))
    attempt("wait", lambda: a.wait(["w1"], PATIENCE))
    thread.join()
    attempt("wait for two of which one is there", lambda: a.wait(["w1", "w2"], HURRY))
    fresh = client()
    fresh.set("w2", "x")
    fresh.delete_key("w1")
    attempt("wait for what is gone again", lambda: client().wait(["w1"], HURRY))

    # Whoever waits for two hears of each once: that the first is deleted again does not take it back.
    patient, writer = client(), client()
    writer.add("w5", 0)
    done = []
    thread = late(lambda: (patient.wait(["w3", "w4"], PATIENCE), done.append(1)))
    threading.Event().wait(0.5)
    writer.set("w3", "x")
    attempt("delete while one waits", lambda: writer.delete_key("w3"))
    writer.set("w4", "x")
    thread.join(5)
    show("woken by both", done)
    writer.set("w3", "x")
    thread.join()


def barriers():
    a, b = client(), client()
    attempt("barrier of one", lambda: a.barrier("b1", 1, PATIENCE))
    attempt("barrier's key", lambda: b.get("b1"))
    attempt("num_keys with a barrier", lambda: a.num_keys() - b.num_keys())
    thread = late(lambda: attempt("barrier of two, first", lambda: a.barrier("b2", 2, PATIENCE)))
    threading.Event().wait(0.5)
    b.barrier("b2", 2, PATIENCE)
    thread.join()
    attempt("barrier's key after", lambda: a.get("b2"))
    attempt("barrier met before", lambda: a.barrier("b2", 2, HURRY))
    attempt("barrier alone", lambda: a.barrier("b3", 2, HURRY))
    attempt("barrier counted", lambda: client().get("b3"))
    attempt("barrier after one who gave up", lambda: client().barrier("b3", 2, HURRY))


def queues():
    a, b = client(), client()
    try:
        a.queue_push("probe", "")
    except NotImplementedError:  # by clients of builds without libuv, whatever the server
        return
    attempt("queue_len", lambda: a.queue_len("q"))
    for v in ("1", "2", "3"):
        a.queue_push("q", v)
    attempt("queue_len of three", lambda: b.queue_len("q"))
    attempt("queue_pop", lambda: b.queue_pop("q"))
    attempt("delete of a queue", lambda: a.delete_key("q"))
    attempt("queue_pop after", lambda: a.queue_pop("q"))
    attempt("queue_pop last", lambda: a.queue_pop("q"))
    attempt("queue_pop of none", lambda: a.queue_pop("q", False))


def order(rounds=300):
    """SET has no reply: what is done next by another client of the process must find it all the same."""
    setter, other = client(), client()
    missed = 0
    for i in range(rounds):
        setter.set(f"o{i}", "41")
        missed += other.add(f"o{i}", 1) != 42
    show("additions that missed a set", missed)
    missed = 0
    for i in range(rounds):
        other.set("o", "old")
        other.get("o")
        setter.set("o", str(i))
        missed += other.get("o") != str(i).encode()
    show("gets that missed a set", missed)


def by_chance(seed, steps=300):
    """One client after another, so that there is one right answer to each.

    Where the first of two clients asked for something without a reply, torch's own server may serve the second first:
    it serves whoever has sent something in the order in which they connected. So the first is waited for, by a request
    that has a reply. order is about what it keeps.
    """
    dice = random.Random(seed)
    clients = [client() for _ in range(3)]
    for c in clients:
        c.add(f"{seed}", 1)
    # One server forgets keys with the last of their clients, the other keeps them.
    before, last = clients[0].num_keys(), None
    for i in range(steps):
        c, key = dice.choice(clients), f"c{seed}.{dice.randrange(6)}"
        v, old = str(dice.randrange(4)), dice.choice(["", "0", "1", "2", "3"])
        op = dice.choice(["set", "get", "add", "compare_set", "delete_key", "num_keys", "check", "append"])
        what = f"{i} {op} {key}"
        if last not in (None, c):
            last.add(f"{seed}", 0)
        last = c if op in ("set", "append") else None
        if op == "set":
            c.set(key, v)
        elif op == "append":
            if has("append"):
                c.append(key, v)
        elif op == "get":
            if c.add(f"is {key}", 0) or c.delete_key(key):  # of what is absent GET waits
                c.compare_set(key, "", v)
                attempt(what, lambda: c.get(key))
        elif op == "add":
            attempt(what, lambda: c.add(key, int(v)))
        elif op == "compare_set":
            attempt(what, lambda: c.compare_set(key, old, v))
        elif op == "delete_key":
            attempt(what, lambda: c.delete_key(key))
        elif op == "check":
            attempt(what, lambda: c.check([key, f"{seed}"]) if has("check") else None)
        else:
            attempt(what, lambda: c.num_keys() - before)


def cut():
    """Who counts where there is no number is cut off."""
    a, b = client(), client()
    a.set("text", "x")
    b.get("text")
    attempt("add to a text", lambda: a.add("text", 1))
    attempt("afterwards", lambda: a.add("n", 1))
    attempt("others", lambda: b.get("text"))


basics(client(), client())
waiting(client(), client())
if has("barrier"):
    barriers()
if has("queue_push"):
    queues()
order()
for seed in range(3):
    by_chance(seed)
cut()
