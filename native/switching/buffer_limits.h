// Limits to what one port has of the shared memory (switching/shared_buffer.h), made of the parameters so that frames mostly
// need no division.
#pragma once

#include <cstdint>

#include "switching/buffer_parameters.h"

namespace weir {

struct BufferLimits {
  // Bytes above which an ingress is paused, with so many free ones. >= 0.
  int64_t pfc_threshold(int64_t free_bytes) const;

  bool dynamic = true;
  int priorities = 8;
  double surely_free = 0;     // times the free bytes: never more than a dynamic t_PFC, whatever the rounding; 0 when it is fixed
  double beta = 0;            // 0 when it is fixed
  int64_t threshold = 0;      // when it is fixed
  int64_t most_headroom = 0;  // headroom with that for lateness
  double lossy_alpha = 1;
  int64_t lossy_minimum = 0;
  double frame_share = 1;          // part of the free packets that one ingress priority may take
  int64_t surely_fewer = 0;        // while there are fewer frames than this, nobody has more than that share ...
  int64_t surely_fewer_lossy = 0;  // ... or than lossy_alpha times the free ones
  int64_t xon_offset = 0;
  int64_t headroom = 0;
};
// Limits of ports that have `own` of a memory of so many packets. `lossless`: mask of priorities under PFC.
BufferLimits limits_from(const BufferParameters& parameters, const PortBuffer& own, uint8_t lossless, int64_t packets);

}  // namespace weir
