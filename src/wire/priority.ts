/** The priorities of Ethernet (802.1Q), which PFC pauses one by one. */
export const kPriorities = [0, 1, 2, 3, 4, 5, 6, 7] as const;
/** Keys of mappings by priority. */
export const kPriorityKeys = kPriorities.map((priority) => `${priority}` as const);

/** Priority of RDMA that says none: that of flows of scenarios, and of programs on their hosts. */
export const kRdmaPriority = 3;
