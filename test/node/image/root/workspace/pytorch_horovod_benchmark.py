"""Stands for ByteScheduler's example of that name, where what starts it is of interest."""
import mpi

mpi.main()
