"""A program of Open MPI's: every rank says the sum of rank + 1 over all of them, n(n+1)/2 if none is missing."""
from events import tell


def main():
    from mpi4py import MPI  # starts MPI

    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    tell("mpi", rank=rank, size=size, sum=world.allreduce(rank + 1))


if __name__ == "__main__":
    main()
