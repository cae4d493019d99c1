#pragma once
// Answers, in place of the kernel's RDMA netlink (NETLINK_RDMA), about the devices that programs under `weir run` have. The
// kernel's own is not asked: it does not know them, and may have others. Such a socket is one of NETLINK_USERSOCK, by which
// processes may speak to each other without privilege: all that a program does with it works, but for its questions, which are
// answered here before it returns.
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <optional>

namespace weir {

// @returns A descriptor, or -1 with errno.
int open_rdma_netlink(int type);

// Are these the first bytes of a question? Cheap, for all that a program sends passes here.
bool may_be_rdma_question(const iovec* pieces, size_t count);

// Answers a question as a current kernel would: messages that wait to be received.
// @returns As send(2), with errno; nothing: the socket is of another kind.
std::optional<ssize_t> answer_rdma_question(int descriptor, const iovec* pieces, size_t count);

}  // namespace weir
