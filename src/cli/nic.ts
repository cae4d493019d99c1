/** `weir nic`: a soft NIC in the foreground. */
import { daemonVerb } from "./switch.js";

export const addNic = daemonVerb("nic", "run a software RoCEv2 NIC on an interface of this host");
