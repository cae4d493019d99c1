// npm run test:debian [-- [--programs | --tests] SUITE ...]: follows the README on a fresh Debian (bookworm and trixie, unless one is
// named). For each, debootstrap makes a root with no more than a fresh machine has, and in it the committed tree of this checkout goes
// through npm ci, npm start, programs on libibverbs by `weir run`, a lab that stays; with --programs through the tests of
// docs/reference/programs.md, with --tests through npm test. Needs root and debootstrap. Mirror, certificates and npm's settings are those
// of this host. Steps have mounts and processes of their own, which end with them.
import { spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const checkout = fileURLToPath(new URL("..", import.meta.url));
const who = "npm run test:debian";
const kSuites = ["bookworm", "trixie"];
const tests = process.argv.includes("--tests");
const programs = process.argv.includes("--programs");
const kMinute = 60_000;

/** Tests that docs/reference/programs.md names. */
const kProgramTests = "test/live/program test/live/lab_mpi test/live/device_tree";

/** If the distribution's own Node.js is too old, npm brings one. */
const kNode = {
  bookworm: "apt-get install -y --no-install-recommends npm && npm install -g node@22 npm@10",
  trixie: "apt-get install -y --no-install-recommends nodejs npm",
};

const kPrograms = `
ip netns add a && ip netns add b
ip link add weir0 netns a mtu 4200 type veth peer name weir0 netns b mtu 4200
for side in a b; do
  ip -n $side link set lo up && ip -n $side link set weir0 up
  [ $side = a ] && last=1 || last=2
  printf 'name: roce-%s\\ninterface: weir0\\naddress: 10.0.0.%s\\nrate: 1Gbps\\nprograms: true\\n' $side $last > /tmp/$side.yaml
  ip netns exec $side ./weir nic -c /tmp/$side.yaml > /tmp/$side.log 2>&1 &
done
for i in $(seq 60); do ./weir run -- true > /dev/null 2>&1 && break; sleep 1; done
ip netns exec b ./weir run --nic roce-b -- ib_write_bw -R -n 1000 > /tmp/server.log 2>&1 &
sleep 5
ip netns exec a ./weir run --nic roce-a -- ib_write_bw -R -n 1000 10.0.0.2 || { cat /tmp/*.log; exit 1; }
`;

const kLab = `
./weir lab up examples/leaf-spine.yaml | tee /tmp/lab
set -- $(awk '$2 ~ /^10\\./ { print $1 }' /tmp/lab)
first=$1; shift 4; other=$1
./weir lab exec $first -- ping -c 3 $other
./weir lab exec $other -- ib_write_bw -n 100 > /tmp/server.log 2>&1 &
sleep 5
./weir lab exec $first -- ib_write_bw -n 100 $other || { cat /tmp/server.log; exit 1; }
./weir lab down
`;

/** Their limits are for a machine that has other things to do. */
const stepsOf = (suite) => [
  {
    name: "Node.js and npm",
    limit: 15 * kMinute,
    script: `apt-get update && ${kNode[suite]} && node --version && npm --version`,
  },
  { name: "npm ci without a compiler", limit: 10 * kMinute, script: "npm ci" },
  {
    // The machine's other load decides whether the run is valid (status 3: it is not).
    name: "npm start",
    limit: 40 * kMinute,
    script:
      "status=0; npm start > /tmp/start 2>&1 || status=$?; cat /tmp/start; [ $status = 0 ] || { [ $status = 3 ] && grep -q '^fidelity: ' /tmp/start; }",
  },
  {
    name: "programs between two namespaces",
    limit: 5 * kMinute,
    script: `apt-get install -y --no-install-recommends perftest ibverbs-utils iputils-ping >/dev/null\n${kPrograms}`,
  },
  { name: "weir lab up, exec, down", limit: 5 * kMinute, script: kLab },
  ...(programs
    ? [{ name: "RDMA programs", limit: 40 * kMinute, script: `CI=1 npm test -- --project live ${kProgramTests}` }]
    : []),
  ...(tests ? [{ name: "npm test", limit: 90 * kMinute, script: "CI=1 npm test" }] : []),
];

const named = process.argv.slice(2).filter((word) => !["--programs", "--tests"].includes(word));
const suites = named.length > 0 ? named : kSuites;
const obstacle = whyNot(suites);
if (obstacle !== undefined) {
  console.error(`${who}: ${obstacle}`);
  process.exit(1);
}
for (const suite of suites) await test(suite);
console.log(`${who}: ${suites.join(", ")}: all passed`);

function whyNot(suites) {
  const unknown = suites.find((suite) => !kSuites.includes(suite));
  if (unknown !== undefined) return `no suite ${unknown}: there are ${kSuites.join(" and ")}`;
  if (process.getuid() !== 0) return "needs root";
  if (!["/usr/sbin/debootstrap", "/usr/bin/debootstrap"].some((path) => existsSync(path)))
    return "needs debootstrap: apt install debootstrap";
  if (mirror() === undefined) return "no mirror of Debian in /etc/apt";
}

/** Makes a suite's root, and takes all steps in it. Ends the process if one fails. */
async function test(suite) {
  const root = mkdtempSync(join(tmpdir(), `weir-debian-${suite}-`));
  const remove = () => rmSync(root, { recursive: true, force: true });
  const stop = () => {
    remove();
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, stop);
  const failure = await (async () => {
    const made = await step(suite, "debootstrap", 15 * kMinute, "debootstrap", [
      "--variant=minbase",
      "--include=ca-certificates",
      `--cache-dir=${cache(suite)}`,
      suite,
      root,
      mirror(),
    ]);
    if (made !== undefined) return made;
    // Ordinary users, and daemons that distrust a root that is not as usual, are there, too.
    chmodSync(root, 0o755);
    prepare(root);
    for (const { name, limit, script } of stepsOf(suite)) {
      const failed = await step(suite, name, limit, "unshare", inRoot(root, script));
      if (failed !== undefined) return failed;
    }
  })();
  for (const signal of ["SIGINT", "SIGTERM"]) process.off(signal, stop);
  remove();
  if (failure === undefined) return;
  console.error(`${who}: ${suite}: ${failure}`);
  process.exit(1);
}

/** Takes a step; returns undefined, or says what failed. */
function step(suite, name, limit, command, args) {
  console.log(`\n== ${suite}: ${name} (at most ${limit / kMinute} min)`);
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
    // unshare takes all of its processes along.
    const timer = setTimeout(() => child.kill("SIGKILL"), limit);
    child.on("error", ({ message }) => resolve(`${name}: ${message}`));
    child.on("close", (status, signal) => {
      clearTimeout(timer);
      const seconds = Math.round((Date.now() - started) / 1000);
      if (status === 0) console.log(`== ${suite}: ${name}: passed, ${seconds} s`);
      resolve(
        status === 0 ? undefined : `${name}: ${signal ? "took too long" : `status ${status}`}, after ${seconds} s`,
      );
    });
  });
}

function inRoot(root, script) {
  const mounts = [
    `mount --bind ${root} ${root}`,
    `mount --rbind /dev ${root}/dev`,
    `mount -t proc proc ${root}/proc`,
    `mount --rbind /sys ${root}/sys`,
    `mount -t tmpfs tmpfs ${root}/run`,
  ];
  writeFileSync(join(root, "step.sh"), `set -eu\ncd /weir\n${script}\n`);
  const variables = [
    "NODE_EXTRA_CA_CERTS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
  ]
    .filter((name) => process.env[name])
    .map((name) => `${name}=${process.env[name]}`);
  const environment = ["HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", ...variables];
  const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const words = [...environment, path].map((word) => `'${word}'`).join(" ");
  // chroot would not do: a process that enters the namespaces of a lab would be outside of it.
  const enter = [
    `mkdir -p ${root}/host && cd ${root} && pivot_root . host && cd /`,
    "umount --lazy /host",
    `exec env -i ${words} bash /step.sh`,
  ];
  return ["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", [...mounts, ...enter].join("\n")];
}

/** Gives the root what a machine of this site has: the committed tree, certificates, names, npm's settings. */
function prepare(root) {
  mkdirSync(join(root, "weir"));
  const archive = spawnSync("sh", ["-ec", `git archive HEAD | tar -x -C ${root}/weir`], {
    cwd: checkout,
    stdio: "inherit",
  });
  if (archive.status !== 0) throw new Error("git archive failed");
  for (const file of [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/ssl/certs/ca-certificates.crt",
    process.env.NODE_EXTRA_CA_CERTS,
  ])
    if (file !== undefined && existsSync(file)) cpSync(file, join(root, file), { dereference: true });
  for (const file of readdirSync("/etc/apt/apt.conf.d")) {
    const from = join("/etc/apt/apt.conf.d", file);
    if (/Acquire::/.test(readFileSync(from, "utf8"))) cpSync(from, join(root, from));
  }
  // A path of this host's Node.js headers means nothing in the root.
  const settings = ["globalconfig", "userconfig"]
    .map((name) => spawnSync("npm", ["config", "get", name], { cwd: "/", encoding: "utf8" }).stdout.trim())
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, "utf8").split("\n"))
    .filter((line) => !/^\s*(nodedir|prefix)\s*=/.test(line));
  writeFileSync(join(root, "root/.npmrc"), `${settings.join("\n")}\n`, { mode: 0o600 });
}

/** Folder for packages, which is kept for the next run. */
function cache(suite) {
  const folder = join(tmpdir(), "weir-debian-packages", suite);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Mirror from which this host has its own packages. */
function mirror() {
  const files = ["/etc/apt/sources.list", ...sourcesIn("/etc/apt/sources.list.d")].filter((file) => existsSync(file));
  const addresses = files.flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(\S+)/gm)].map((match) => match[1]),
  );
  return addresses.find((address) => /\/debian\/?$/.test(address));
}

function sourcesIn(folder) {
  return existsSync(folder) ? readdirSync(folder).map((file) => join(folder, file)) : [];
}
