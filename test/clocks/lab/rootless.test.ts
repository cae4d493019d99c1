import { describe, expect, it } from "vitest";
import { missingCapabilities, userNamespaceRemedy } from "../../../src/host/rootless.js";

describe("missingCapabilities", () => {
  it.each([
    ["000001ffffffffff", []],
    ["0000000000000000", ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"]],
    // Docker's default set: NET_RAW without NET_ADMIN and SYS_ADMIN.
    ["00000000a80425fb", ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"]],
    ["0000000000003000", ["CAP_SYS_ADMIN"]],
  ])("of %s: %j", (effective, expected) => {
    expect(
      missingCapabilities(`CapPrm:\t000001ffffffffff\nCapEff:\t${effective}\nCapBnd:\t000001ffffffffff\n`),
    ).toEqual(expected);
  });

  it("takes an unreadable status for no capabilities", () => {
    expect(missingCapabilities("")).toHaveLength(3);
  });
});

describe("userNamespaceRemedy", () => {
  it.each([
    ["kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"],
    ["user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=10000"],
    ["user/max_net_namespaces", "0", "sysctl user.max_net_namespaces=10000"],
    ["kernel/apparmor_restrict_unprivileged_userns", "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0"],
  ])("for %s = %s is %s", (name, value, remedy) => {
    expect(userNamespaceRemedy((setting) => (setting === name ? value : undefined))).toContain(remedy);
  });

  it("suspects a container where the kernel would allow it", () => {
    const allowing: Record<string, string> = {
      "user/max_user_namespaces": "62000",
      "kernel/unprivileged_userns_clone": "1",
    };
    expect(userNamespaceRemedy((setting) => allowing[setting])).toContain("docker run --cap-add NET_ADMIN");
  });
});
