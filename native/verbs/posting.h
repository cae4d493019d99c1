// Work that a program posts, as the transport wants it.
#pragma once

#include "verbs/provider.h"

namespace weir {

// Reads a work request. Returns errno: EINVAL if the queue pair has no such work, or it is too long.
int understand(const ProgramQueuePair& qp, const ibv_send_wr& wr, SendWork& work);
// Posts it, with the NIC's lock. Returns errno.
int post_one(ProgramNic& nic, ProgramQueuePair& qp, const ibv_send_wr& wr);
// Whether the queue pair takes work now.
bool takes_work(const ProgramQueuePair& qp);
// Takes, with the NIC's lock, a receive of at most `most_pieces`, as the transport wants it; it is in `receives` then, where
// there must be room. Returns errno.
int take_receive(PostedReceives& receives, uint32_t most_pieces, const ibv_recv_wr& wr, ReceiveWork& work);
// Binds or invalidates, with the NIC's lock, when the work is posted. Returns errno.
int bind_window(ProgramNic& nic, ProgramQueuePair& qp, ibv_mw* window, uint32_t key, const ibv_mw_bind_info& info);
int invalidate_locally(ProgramNic& nic, const ProgramQueuePair& qp, uint32_t key);

// ibv_qp_ex: work is gathered between wr_start() and wr_complete(). False: it has operations that there are not.
bool add_batch(ProgramQueuePair& qp, uint64_t operations);

}  // namespace weir
