// MPI: an all-reduce of much, and puts into windows that MPI allocates. Each rank tells what was wrong, and the host that it ran on.
#include <mpi.h>
#include <stdio.h>

enum { kCount = 50000, kMostRanks = 16 };

static double values[kCount];

int main(int count, char** arguments) {
  int rank, ranks, wrong = 0;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int i = 0; i < kCount; ++i) values[i] = rank + i;
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) wrong += values[i] != ranks * (ranks - 1) / 2 + (double)ranks * i;

  int* window;
  MPI_Win handle;
  MPI_Win_allocate(kMostRanks * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &handle);
  MPI_Win_fence(0, handle);
  const int own = 100 + rank;
  for (int peer = 0; peer < ranks; ++peer) MPI_Put(&own, 1, MPI_INT, peer, rank, 1, MPI_INT, handle);
  MPI_Win_fence(0, handle);
  for (int peer = 0; peer < ranks; ++peer) wrong += window[peer] != 100 + peer;
  MPI_Win_free(&handle);

  char host[MPI_MAX_PROCESSOR_NAME];
  int length;
  MPI_Get_processor_name(host, &length);
  printf("rank %d of %d on %s: %d wrong\n", rank, ranks, host, wrong);
  MPI_Finalize();
  return wrong != 0;
}
