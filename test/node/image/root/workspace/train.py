"""Trains a small model with DistributedDataParallel and proves in every step that the world is whole.

In each step the workers add up rank + 1 and whether they were asked to stop. The first is n(n+1)/2 only if the ranks
are exactly 0 to n-1, the second makes all stop after the same step: touch /tmp/stop in any of their pods. Rank 0 writes
the model and the step into $CHECKPOINT_DIR and alone reads them again, so that the others need no volume.
"""
import argparse
import datetime
import json
import os
import time

from events import tell

STOP = "/tmp/stop"
FEATURES = 8


def arguments():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between steps")
    return parser.parse_known_args()[0]  # jobs pass what their own programs know, such as --epochs


def load(folder, model):
    """Reads the checkpoint into the model and returns the step that it was written after."""
    try:
        with open(os.path.join(folder, "step"), encoding="utf-8") as file:
            saved = json.load(file)
    except FileNotFoundError:
        return 0
    model.load_state_dict({name: torch.tensor(value) for name, value in saved["model"].items()})
    return saved["step"]


def save(folder, model, step):
    """Writes the checkpoint whole or not at all: the process may be killed at any time."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "step")
    part = f"{path}.{os.getpid()}"  # a world that was given up may still write for a moment
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"step": step, "model": {name: value.tolist() for name, value in model.state_dict().items()}}, file)
    os.replace(part, path)


def together(numbers):
    numbers = torch.tensor(numbers, dtype=torch.float64)
    dist.all_reduce(numbers)
    return numbers.tolist()


def short(loss):
    return float(f"{loss.item():.4g}")


def train(options):
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
    rank, size = dist.get_rank(), dist.get_world_size()
    folder = os.environ.get("CHECKPOINT_DIR")
    torch.manual_seed(1)
    model = torch.nn.Linear(FEATURES, 1)
    step = load(folder, model) if folder and rank == 0 else 0
    step = int(together([step])[0])  # the others add nothing to rank 0's
    parallel = torch.nn.parallel.DistributedDataParallel(model)  # rank 0's weights become everyone's
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
    restart = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    tell("join", rank=rank, size=size, restart=restart, master=os.environ.get("MASTER_ADDR"), step=step)

    total, loss, stop = 0, None, False
    while step < options.steps and not stop:
        draw = torch.Generator().manual_seed(step * 4096 + rank)
        inputs = torch.randn(32, FEATURES, generator=draw)
        loss = (parallel(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        total, stop = together([rank + 1, os.path.exists(STOP)])
        if total != size * (size + 1) / 2:
            raise RuntimeError(f"step {step}: the sum over {size} ranks is {total}")
        if folder and rank == 0:
            save(folder, model, step)
        tell("step", step=step, size=size, rank=rank, sum=int(total), loss=short(loss))
        time.sleep(options.pause)
    dist.barrier()
    tell("done", step=step, size=size, rank=rank, restart=restart, loss=None if loss is None else short(loss))


def main():
    try:
        train(arguments())
    except Exception as err:
        tell("lost", error=str(err).strip().split("\n")[0])
        # At once, so that the agent forms a new world: taking a broken process group apart may wait for its peers.
        os._exit(1)


if __name__ == "__main__":
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        import mpi

        mpi.main()
    elif "HOROVOD_GLOO_IFACE" in os.environ:
        import mesh

        mesh.main()
    else:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        main()
