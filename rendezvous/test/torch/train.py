"""A worker that sums in a loop and writes down each sum, so that a reader can tell that a world is whole.

In every step the workers add up rank + 1, whether they were asked to stop, and a number that rank 0 drew when the world
began. The first is the proof: it is n(n+1)/2 only if the ranks are exactly 0 to n-1. The second makes all stop after
the same step. The third names the world, whatever ports and counters its agents chose.
"""
import datetime
import json
import os
import random
import signal
import time

import torch
import torch.distributed as dist

if os.environ.get("TEGEN_TORCH_TERM"):  # as a program that writes a checkpoint when it is told to end
    signal.signal(signal.SIGTERM, lambda *_: print("SIGTERM", flush=True))
folder = os.environ["TEGEN_TORCH_DIR"]
run = os.environ["TEGEN_TORCH_RUN"]
began = time.monotonic()

limits = {}
if os.environ.get("TEGEN_TORCH_LIMIT") != "torch":  # which is half an hour by default
    limits["timeout"] = datetime.timedelta(seconds=60)
dist.init_process_group("gloo", **limits)
rank, size = dist.get_rank(), dist.get_world_size()
drawn = float(random.randrange(1, 1 << 40)) if rank == 0 else 0.0
out = os.open(os.path.join(folder, run + ".sums"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
step = 0
while time.monotonic() - began < 600:  # whoever started us may be gone
    stop = float(os.path.exists(os.path.join(folder, run + ".stop")))
    numbers = torch.tensor([rank + 1.0, stop, drawn], dtype=torch.float64)
    dist.all_reduce(numbers)
    total, stop, world = numbers.tolist()
    line = {
        "world": int(world),
        "node": os.environ["TEGEN_TORCH_NODE"],
        "torch": torch.__version__,
        "restarts": int(os.environ["TORCHELASTIC_RESTART_COUNT"]),
        "size": size,
        "rank": rank,
        "step": step,
        "time": time.time(),
        "sum": int(total),
    }
    os.write(out, (json.dumps(line) + "\n").encode())  # one write, so that lines of several workers do not mix
    if stop:
        break
    step += 1
    time.sleep(0.2)
else:
    raise SystemExit("nobody has asked the workers to stop")
