/** Verbs for applications: a soft RoCEv2 NIC in the process, with queue pairs, memory and RDMA CM. See docs/guides/verbs.md. */

export { WeirError } from "../base/error.js";
export type { Disconnection } from "../wire/cm/parameters.js";
export { ConnectionRejected } from "../wire/cm/reject.js";
export { AddressHandle } from "./address_handle.js";
export {
  type AcceptOptions,
  Connection,
  type ConnectionAttributes,
  type ConnectOptions,
  connect,
  type Listening,
  listen,
  type Request,
} from "./connection.js";
export { Device } from "./device.js";
export type { InterfaceOptions } from "./interface_device.js";
export { MemoryRegion } from "./memory_region.js";
export type { NicOptions } from "./nic_device.js";
export { type DeviceOptions, openDevice } from "./open.js";
export { ProtectionDomain } from "./protection_domain.js";
export {
  CompletionQueue,
  type CompletionQueueOptions,
  QueuePair,
  type QueuePairOptions,
  type WorkCompletion,
} from "./queue_pair.js";
export type {
  Access,
  Destination,
  QueuePairAttributes,
  ReceiveRequest,
  RemoteMemory,
  Route,
  SendRequest,
  Slice,
  State,
  Status,
} from "./types.js";
