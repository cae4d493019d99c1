/**
 * The network of the HPCC paper with 320 hosts under web search (scenarios.ts), as a scenario file on stdout:
 *
 *   npx tsx bench/simulation/hpcc_fabric.ts 2ms > hpcc-320.yaml
 *   weir versus hpcc-320.yaml --set warmup=200us --algorithms file,swift,hpcc
 */
import { stringify } from "yaml";
import { hpccFabric } from "./scenarios.js";

const [duration] = process.argv.slice(2);
if (duration === undefined) throw new Error("usage: npx tsx bench/simulation/hpcc_fabric.ts DURATION, such as 2ms");
process.stdout.write(stringify(hpccFabric(duration)));
