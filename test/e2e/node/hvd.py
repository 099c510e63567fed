"""Trains a small model with Horovod's own library. Every rank says the sum of rank + 1 over all."""
import sys

import horovod.torch as hvd
import torch

from events import tell

STEPS = 20


def main():
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    torch.manual_seed(rank)  # until rank 0's weights become everyone's
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    for step in range(STEPS):
        inputs = torch.randn(32, 8, generator=torch.Generator().manual_seed(step * 64 + rank))
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    weights = hvd.allgather(model.weight.detach())
    if not torch.equal(weights, weights[:1].expand_as(weights)):
        sys.exit("the ranks have different weights")
    total = hvd.allreduce(torch.tensor(float(rank + 1)), op=hvd.Sum)
    tell("horovod", rank=rank, size=size, sum=total.item(), mpi=hvd.mpi_enabled(), gloo=hvd.gloo_enabled())


if __name__ == "__main__":
    main()
