"""A program of Open MPI's: every rank says the sum of rank + 1 over all of them, n(n+1)/2 if none is missing.

With --steps it says so again and again, until a rank finds /tmp/stop in its pod. Each also says the variable MARK that
it has from its own host.
"""
import argparse
import os
import time

from events import tell


def main(steps=0):
    from mpi4py import MPI  # starts MPI

    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    if not steps:
        tell("mpi", rank=rank, size=size, sum=world.allreduce(rank + 1))
        return
    tell("join", rank=rank, size=size, step=0, mark=os.environ.get("MARK"))
    for step in range(1, steps + 1):
        total, stop = world.allreduce(rank + 1), world.allreduce(os.path.exists("/tmp/stop"))
        tell("step", rank=rank, size=size, step=step, sum=total)
        if stop:
            break
        time.sleep(0.5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=0)
    main(parser.parse_args().steps)
