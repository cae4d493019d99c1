/** NICs that QEMU 7.2 has, and what their drivers have in Debian's kernel (6.1). igb is in QEMU 8.0 and later. */

export interface NicDriver {
  /** The kernel's module. */
  name: string;
  /** QEMU's device, with its properties. */
  device: string;
  /** Queues of the tap below. */
  tapQueues: number;
  /** XDP programs run in the driver; elsewhere above it. */
  nativeXdp: boolean;
}

export const kDrivers: readonly NicDriver[] = [
  // A queue for each CPU, and as many to spare: of those the driver makes queues of XDP, by which frames arrive as well.
  { name: "virtio_net", device: "virtio-net-pci,mq=on,vectors=10", tapQueues: 4, nativeXdp: true },
  // XDP is in this driver from Linux 6.6 on.
  { name: "vmxnet3", device: "vmxnet3", tapQueues: 1, nativeXdp: false },
  { name: "e1000e", device: "e1000e", tapQueues: 1, nativeXdp: false },
];
